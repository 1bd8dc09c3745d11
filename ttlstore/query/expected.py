"""A text that is no query: what stands at the spot, and what could stand there, in words."""

import re
from collections.abc import Iterable
from typing import Final

from ttlstore.errors import shown
from ttlstore.query.automaton import Unexpected
from ttlstore.query.grammar import END
from ttlstore.query.lexer import STRAY
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
    END: "the end",
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


def explained(text: str, start: str, unexpected: Unexpected) -> Mistake:
    """What to tell the user of it."""
    piece, at = unexpected.token
    if unexpected.terminal == END:
        at, found = len(text.rstrip()), "the query ends here"
    elif unexpected.terminal == STRAY and piece in "\"'":
        return Mistake(at, f"this string has no closing {piece}")
    elif unexpected.terminal == STRAY and text.startswith("/*", at):
        return Mistake(at, "this comment has no closing */")
    else:
        found = f"found {shown(piece)}"
    expected = _in_words(unexpected.expected)
    hint = next((f": {hint}" for pattern, hint in _HINTS if pattern.match(text, at)), "")
    if start == "condition" and _CLAUSE.match(text, at):
        hint = ": a query with clauses starts with SELECT, this is only a condition"
    return Mistake(at, f"{found}, expected {expected}{hint}")


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
