"""From text to a syntax tree, or to an error that shows the spot."""

import re
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from ttlstore.errors import QueryError, shown
from ttlstore.query.check import check
from ttlstore.query.mistakes import Mistake, located
from ttlstore.query.syntax import Query

if TYPE_CHECKING:
    from lark import Lark

MAX_LENGTH = 256 * 1024  # characters; the reference's limit
CACHED = 512  # texts; applications have some dozens, with parameters for what changes
CACHED_LENGTH = 4096  # characters; longer texts are made by programs, and seldom the same twice

_SELECT = re.compile(r"(?:\s+|--[^\n]*|/\*[^*]*+(?:\*(?!/)[^*]*+)*+\*/)*+SELECT\b", re.IGNORECASE)


def parse(text: str) -> Query:
    """The query that a text says. One that does not start with SELECT is a condition on `c`. Raises QueryError."""
    if not isinstance(text, str):
        raise QueryError(f"a query is a string, got {shown(text)}")
    if len(text) <= CACHED_LENGTH:
        return _parse_once(text)
    if len(text) <= MAX_LENGTH:
        return _parse(text)
    raise QueryError(f"a query has at most {MAX_LENGTH} characters, got {len(text)}: pass long values as parameters")


def _parse(text: str) -> Query:
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


_parse_once = lru_cache(maxsize=CACHED)(_parse)


def _tree(text: str) -> Query:
    from lark import UnexpectedInput

    parser = _lark()
    start = "query" if _SELECT.match(text) else "condition"
    try:
        query: Query = parser.parse(text, start=start)  # type: ignore[assignment]  # what the builder of the tree makes
    except UnexpectedInput as error:
        from ttlstore.query.expected import explained

        raise explained(parser, text, start, error) from None
    return query


@cache
def _lark() -> "Lark":
    # Not imported above: it takes 40 ms, and building the parser 100 more, which only those wait for who query.
    from lark import Lark

    from ttlstore.query.lexer import QueryLexer
    from ttlstore.query.tree import TreeBuilder

    grammar = FilePath(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer=QueryLexer, start=["query", "condition"], transformer=TreeBuilder())
