"""LIKE: % is any text, _ any character, [a-f] one of a set, [^a-f] one of none.

Not one regular expression, whose backtracking takes ages for `%a%a%a%a%b`: each piece between two % is sought from
where the last one ended, and never again.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from ttlstore.errors import QueryError

MAX_WILD = 1000  # characters of a piece that has _ or [ ]; it is tried at every place of a text

_ANY_TEXT: Final = None  # the token of %
_Token = str | re.Pattern[str] | None  # a character, a test of one, any text
_ANY_CHARACTER: Final = re.compile(".", re.DOTALL)


@lru_cache(maxsize=256)
def compile_like(pattern: str, escape: str | None = None) -> Callable[[str], bool] | None:
    """Whether a text fits the pattern; None if `escape` is not one character. Raises QueryError."""
    if escape is not None and len(escape) != 1:
        return None
    pieces: list[list[str | re.Pattern[str]]] = [[]]
    for token in _tokens(pattern, escape):
        if token is _ANY_TEXT:
            pieces.append([])
        else:
            pieces[-1].append(token)
    first, *rest = map(_Piece, pieces)
    if not rest:
        return lambda text: len(text) == first.length and first.stands(text, 0)
    *middle, last = rest

    def matches(text: str) -> bool:
        position, end = first.length, len(text) - last.length
        if position > end or not first.stands(text, 0) or not last.stands(text, end):
            return False
        for piece in middle:
            found = piece.find(text, position, end)
            if found < 0:
                return False
            position = found + piece.length
        return True

    return matches


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


class _Piece:
    """Characters and tests of characters, one after the other."""

    def __init__(self, tokens: list[str | re.Pattern[str]]) -> None:
        self.length = len(tokens)
        self._text = "".join(token for token in tokens if isinstance(token, str))
        self._pattern: re.Pattern[str] | None = None
        if len(self._text) < self.length:
            if self.length > MAX_WILD:
                raise QueryError(
                    f"a part of a LIKE pattern with _ or [ ] has at most {MAX_WILD} characters, got {self.length}"
                )
            tests = (re.escape(token) if isinstance(token, str) else token.pattern for token in tokens)
            self._pattern = re.compile("".join(tests), re.DOTALL)

    def stands(self, text: str, at: int) -> bool:
        if self._pattern is None:
            return text.startswith(self._text, at)
        return self._pattern.match(text, at) is not None

    def find(self, text: str, start: int, end: int) -> int:
        if self._pattern is None:
            return text.find(self._text, start, end)
        found = self._pattern.search(text, start, end)
        return -1 if found is None else found.start()


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
            tokens.append(_ANY_CHARACTER)
        elif char == "[" and (end := pattern.find("]", position + 1)) > 0:
            tokens.append(_one_of(pattern[position:end]))
            position = end + 1
        else:
            tokens.append(char)
    return tokens


def _one_of(inside: str) -> str | re.Pattern[str]:
    """What stands between brackets: characters and ranges of them, or all but those after a ^."""
    if len(inside) == 1:
        return inside
    excluded = inside.startswith("^")
    parts = re.findall("(.)-(.)|(.)", inside[excluded:], re.DOTALL)
    allowed = "".join(
        re.escape(single) if single else f"{re.escape(low)}-{re.escape(high)}"
        for low, high, single in parts
        if single or low <= high
    )
    if allowed:
        return re.compile(f"[{'^' * excluded}{allowed}]")
    return _ANY_CHARACTER if excluded else re.compile("(?!)")
