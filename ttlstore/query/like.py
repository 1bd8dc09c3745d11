"""LIKE: % is any text, _ any character, [a-f] one of a set, [^a-f] one of none. Linear in pattern times text."""

from collections.abc import Callable
from functools import lru_cache

Matcher = Callable[[str], bool]
CharacterTest = Callable[[str], bool]
_ANY_TEXT = None  # the token of %


@lru_cache(maxsize=256)
def compile_like(pattern: str, escape: str | None = None) -> Matcher | None:
    """Whether a text fits the pattern; None if `escape` is not one character."""
    if escape is not None and len(escape) != 1:
        return None
    tokens = _tokens(pattern, escape)
    literal = "".join(token for token in tokens if isinstance(token, str))
    if len(tokens) == len(literal):
        return lambda text: text == literal
    if len(tokens) == len(literal) + 1 and tokens[-1] is _ANY_TEXT:
        return lambda text: text.startswith(literal)
    return lambda text: _matches(text, tokens)


def like_prefix(pattern: str, escape: str | None = None) -> tuple[str, bool] | None:
    """The text that everything that fits must start with, and whether that is all the pattern asks for.

    `abc%` gives `("abc", True)`, `abc_e` gives `("abc", False)`. None if `escape` is not one character.
    """
    if escape is not None and len(escape) != 1:
        return None
    tokens = _tokens(pattern, escape)
    length = next((position for position, token in enumerate(tokens) if not isinstance(token, str)), len(tokens))
    prefix = "".join(token for token in tokens[:length] if isinstance(token, str))
    return prefix, tokens[length:] == [_ANY_TEXT]


_Token = str | CharacterTest | None


def _tokens(pattern: str, escape: str | None) -> list[_Token]:
    tokens: list[_Token] = []
    position = 0
    while position < len(pattern):
        char = pattern[position]
        position += 1
        if char == escape and position < len(pattern):
            tokens.append(pattern[position])
            position += 1
        elif char == "%":
            if not tokens or tokens[-1] is not _ANY_TEXT:
                tokens.append(_ANY_TEXT)
        elif char == "_":
            tokens.append(lambda _: True)
        elif char == "[" and (end := pattern.find("]", position + 1)) > 0:
            tokens.append(_character_test(pattern[position:end]))
            position = end + 1
        else:
            tokens.append(char)
    return tokens


def _character_test(inside: str) -> _Token:
    """What stands between brackets: characters and ranges of them."""
    if len(inside) == 1:
        return inside
    excluded = inside.startswith("^")
    if excluded:
        inside = inside[1:]
    singles: set[str] = set()
    ranges: list[tuple[str, str]] = []
    position = 0
    while position < len(inside):
        if inside[position + 1 : position + 2] == "-" and position + 2 < len(inside):
            ranges.append((inside[position], inside[position + 2]))
            position += 3
        else:
            singles.add(inside[position])
            position += 1

    def test(char: str) -> bool:
        return (char in singles or any(low <= char <= high for low, high in ranges)) is not excluded

    return test


def _matches(text: str, tokens: list[_Token]) -> bool:
    """On a mismatch, only the last % is tried one character further: what earlier ones took needs no second look."""
    here = token = 0
    restart_here = restart_token = -1
    while here < len(text):
        wanted = tokens[token] if token < len(tokens) else ""
        if token < len(tokens) and wanted is _ANY_TEXT:
            restart_here, restart_token = here, token
            token += 1
        elif text[here] == wanted or (callable(wanted) and wanted(text[here])):
            here += 1
            token += 1
        elif restart_token >= 0:
            restart_here += 1
            here, token = restart_here, restart_token + 1
        else:
            return False
    return all(rest is _ANY_TEXT for rest in tokens[token:])
