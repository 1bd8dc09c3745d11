"""From text to a syntax tree, or to an error that shows the spot."""

import re
from functools import cache, lru_cache

from ttlstore.errors import QueryError, shown
from ttlstore.query import grammar
from ttlstore.query.automaton import Automaton, Unexpected
from ttlstore.query.check import check
from ttlstore.query.expected import explained
from ttlstore.query.mistakes import Mistake, located
from ttlstore.query.syntax import Query, changed
from ttlstore.query.tree import TreeBuilder

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
    if not text or text.isspace():
        raise QueryError('the query is empty: write a SELECT, or a condition such as "c.total > 10"')
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise located(text, error.start, "this is half of a surrogate pair, which is no character") from None
    try:
        query = _tree(text)
        return changed(query, parameters=check(query), text=text)
    except Mistake as mistake:
        raise located(text, mistake.at, mistake.message) from None


_parse_once = lru_cache(maxsize=CACHED)(_parse)


def _tree(text: str) -> Query:
    start = "query" if _SELECT.match(text) else "condition"
    try:
        query: Query = _automaton().tree(text, start)
    except Unexpected as unexpected:
        raise explained(text, start, unexpected) from None
    return query


@cache
def _automaton() -> Automaton:
    return Automaton(grammar.read(), TreeBuilder())
