"""From text to a syntax tree, or to an error that shows the spot."""

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Final

from ttlstore.errors import QueryError, shown
from ttlstore.query.check import check
from ttlstore.query.mistakes import Mistake, located
from ttlstore.query.syntax import Query

if TYPE_CHECKING:
    from lark import Lark, Token, UnexpectedInput

MAX_LENGTH = 256 * 1024  # characters; the reference's limit
CACHED = 512  # texts; applications have some dozens, with parameters for what changes

_SELECT = re.compile(r"(?:\s+|--[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)*SELECT\b", re.IGNORECASE)

# What could stand at a spot, in words. The terminals of grammar.lark that are not here are keywords.
_WORDS: Final = {
    "NAME": "a name",
    "STRING": "a string",
    "NUMBER": "a number",
    "PARAMETER": "a parameter",
    "OPERATOR": "an operator",
    "STAR": "*",
    "LPAR": "(",
    "RPAR": ")",
    "LSQB": "[",
    "RSQB": "]",
    "LBRACE": "{",
    "RBRACE": "}",
    "COMMA": ",",
    "DOT": ".",
    "COLON": ":",
    "QMARK": "?",
    "__ANON_0": "??",
    "$END": "the end",
}
_EXPRESSION = frozenset(("NAME", "STRING", "NUMBER", "CONSTANT", "PARAMETER", "LPAR", "LSQB", "LBRACE", "SIGN"))
_EXPRESSION_KEYWORDS = frozenset(("NOT", "EXISTS", "ARRAY"))
_CONTINUATION = frozenset(("OPERATOR", "_IN", "_BETWEEN", "_LIKE", "_AND", "_OR", "QMARK", "__ANON_0", "NOT"))


@lru_cache(maxsize=CACHED)
def parse(text: str) -> Query:
    """The query that a text says. One that does not start with SELECT is a condition on `c`. Raises QueryError."""
    if not isinstance(text, str):
        raise QueryError(f"a query is a string, got {shown(text)}")
    if len(text) > MAX_LENGTH:
        raise QueryError(
            f"a query has at most {MAX_LENGTH} characters, got {len(text)}: pass long values as parameters"
        )
    if not text.strip():
        raise QueryError('the query is empty: write a SELECT, or a condition such as "c.total > 10"')
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise located(text, error.start, "this is half of a surrogate pair, which is no character") from None
    try:
        query = _tree(text)
        return replace(query, parameters=check(query), text=text)
    except Mistake as mistake:
        raise located(text, mistake.at, mistake.message) from None


def _tree(text: str) -> Query:
    from lark import UnexpectedInput

    try:
        query: Query = _lark().parse(text, start="query" if _SELECT.match(text) else "condition")  # type: ignore[assignment]
    except UnexpectedInput as error:
        raise _unexpected(text, error) from None
    return query


@cache
def _lark() -> "Lark":
    # Not imported above: it takes 40 ms, and building the parser 100 more, which only those wait for who query.
    from lark import Lark

    from ttlstore.query.tree import TreeBuilder

    grammar = FilePath(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    return Lark(
        grammar, parser="lalr", start=["query", "condition"], maybe_placeholders=True, transformer=TreeBuilder()
    )


# --- errors ---------------------------------------------------------------------------------------------------------


def _unexpected(text: str, error: "UnexpectedInput") -> Mistake:
    from lark import UnexpectedCharacters, UnexpectedToken

    if isinstance(error, UnexpectedToken):
        at = len(text.rstrip()) if error.token.type == "$END" else error.token.start_pos or 0
        found = "the query ends here" if error.token.type == "$END" else f"found {_found(error.token)}"
        return Mistake(at, f"{found}, expected {_expected(error.accepts or error.expected)}")
    if isinstance(error, UnexpectedCharacters):
        at = error.pos_in_stream or 0
        if text[at] in "\"'":
            return Mistake(at, f"this string has no closing {text[at]}")
        if text.startswith("/*", at):
            return Mistake(at, "this comment has no closing */")
        return Mistake(at, f"found {shown(text[at])}, expected {_expected(error.allowed)}")
    return Mistake(len(text.rstrip()), "the query ends too early")


def _found(token: "Token") -> str:
    return shown(str(token))


def _expected(terminals: Iterable[str]) -> str:
    """The terminals in words: `an expression`, not the ten ways in which one can begin."""
    names = set(terminals)
    words: list[str] = []
    if names >= _EXPRESSION:
        words.append("an expression")
        names -= _EXPRESSION | _EXPRESSION_KEYWORDS
    elif names >= _CONTINUATION:
        words.append("an operator")
        names -= _CONTINUATION | {"DOT", "LSQB", "LPAR"}
    words += sorted(_WORDS.get(name, name.lstrip("_")) for name in names - {"SPACE", "COMMENT"})
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
