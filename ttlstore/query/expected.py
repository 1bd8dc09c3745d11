"""A text that is no query: what stands at the spot, and what could stand there, in words."""

import re
from collections.abc import Iterable
from typing import Any, Final

from lark import Lark, UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from ttlstore.errors import shown
from ttlstore.query.mistakes import Mistake

# What the terminals of grammar.lark are called. The others are keywords.
_WORDS: Final = {
    "NAME": "a name",
    "PATH": "a path",
    "STRING": "a string",
    "NUMBER": "a number",
    "OPERATOR": "an operator",
    "PARAMETER": "a parameter",
    "STAR": "*",
    "LPAR": "(",
    "RPAR": ")",
    "LSQB": "[",
    "RSQB": "]",
    "RBRACE": "}",
    "COMMA": "a comma",
    "DOT": "a dot",
    "COLON": "a colon",
    "_GROUP": "GROUP BY",
    "_ORDER": "ORDER BY",
    "$END": "the end",
}
_EXPRESSION: Final = frozenset(("NAME", "PATH", "STRING", "NUMBER", "CONSTANT", "PARAMETER", "LPAR", "LSQB", "LBRACE"))
_EXPRESSION_ALSO: Final = frozenset(("SIGN", "NOT", "EXISTS", "ARRAY"))
_OPERATOR: Final = frozenset(("OPERATOR", "_IN", "_BETWEEN", "_LIKE"))
_OPERATOR_ALSO: Final = frozenset(("NOT", "AND", "OR", "COALESCE", "QMARK", "DOT", "LSQB", "LPAR"))

# What other dialects write, and this one writes differently.
_HINTS: Final = (
    (re.compile(r"(?<==)="), "one = is enough"),
    (re.compile(r"(?<=&)&"), "write AND"),
    (re.compile(r"(?<=COUNT\()\*", re.IGNORECASE), "write COUNT(1)"),
    (re.compile(r"IS\b", re.IGNORECASE), "write IS_NULL(…) or IS_DEFINED(…)"),
    (re.compile(r"LIMIT\b", re.IGNORECASE), "write OFFSET 0 LIMIT …, or TOP … after SELECT"),
    (re.compile(r"HAVING\b", re.IGNORECASE), "select from the groups: FROM (SELECT … GROUP BY …) AS g WHERE …"),
)
_CLAUSE: Final = re.compile(r"(?:FROM|WHERE|JOIN|GROUP|ORDER|OFFSET)\b", re.IGNORECASE)


def explained(parser: Lark, text: str, start: str, error: UnexpectedInput) -> Mistake:
    """What to tell the user of an error of the parser."""
    end = len(text.rstrip())
    if isinstance(error, UnexpectedCharacters):
        at = error.pos_in_stream or 0
        if text[at] in "\"'":
            return Mistake(at, f"this string has no closing {text[at]}")
        if text.startswith("/*", at):
            return Mistake(at, "this comment has no closing */")
        found = f"found {shown(text[at])}"
    elif isinstance(error, UnexpectedToken) and error.token.type != "$END":
        at = error.token.start_pos or 0
        found = f"found {shown(getattr(error.token, 'text', ''))}"
    else:
        at, found = end, "the query ends here"
    expected = _in_words(_accepted(parser, text, start, at))
    hint = next((f": {hint}" for pattern, hint in _HINTS if pattern.match(text, at)), "")
    if start == "condition" and _CLAUSE.match(text, at):
        hint = ": a query with clauses starts with SELECT, this is only a condition"
    return Mistake(at, f"{found}, expected {expected}{hint}")


def _accepted(parser: Lark, text: str, start: str, at: int) -> set[str]:
    """The terminals that can stand at a spot.

    The error does not tell: when the parser meets what it does not expect, it has closed what it can close before.
    """
    attempt: Any = parser.parse_interactive(text, start=start)  # Lark leaves most of it without types
    try:
        for token in attempt.lexer_thread.lex(attempt.parser_state):
            if token.start_pos is None or token.start_pos >= at:
                break
            attempt.feed_token(token)
    except UnexpectedCharacters:
        pass  # the spot itself
    accepted: set[str] = attempt.accepts()
    return accepted


def _in_words(terminals: Iterable[str]) -> str:
    """`an expression`, not the dozen ways in which one can begin."""
    names = set(terminals)
    words = []
    if names >= _EXPRESSION:
        words.append("an expression")
        names -= _EXPRESSION | _EXPRESSION_ALSO
    elif names >= _OPERATOR:
        words.append("an operator")
        names -= _OPERATOR | _OPERATOR_ALSO
    elif "OPERATOR" in names:
        names -= {"DOT", "LSQB", "LPAR"}
    elif {"NAME", "PATH"} <= names:
        names.remove("PATH")
    words += sorted(_WORDS.get(name, name.lstrip("_")) for name in names)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
