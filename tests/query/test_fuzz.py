"""Whatever comes in, a QueryError is all that comes out."""

from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.query import generating
from tests.query.asking import ask
from ttlstore import QueryError
from ttlstore.query.parser import parse

WORDS = (
    *("SELECT", "VALUE", "DISTINCT", "TOP", "FROM", "JOIN", "IN", "WHERE", "GROUP", "BY", "ORDER", "ASC", "DESC"),
    *("OFFSET", "LIMIT", "AS", "AND", "OR", "NOT", "BETWEEN", "LIKE", "ESCAPE", "EXISTS", "ARRAY", "null", "true"),
    *("undefined", "COUNT", "ABS", "c", "x", "root", "c.a.b", "c.items[0]", "1", "1.5e3", ".5", "'a'", '"b"', "@p"),
)
SIGNS = (
    *("(", ")", "[", "]", "{", "}", ",", ".", ":", ";", "?", "??", "=", "!=", "<>", "<", ">>>", "|", "||", "&", "^"),
    *("~", "+", "-", "*", "/", "%", "#", "`", "\\", "'", '"', "/*", "*/", "--", "\n", "\t", "\0", "é", "😀", "\ud800"),
)
PIECES = st.sampled_from(WORDS + SIGNS)
garbage = st.one_of(
    st.text(max_size=40),
    st.lists(PIECES, max_size=25).map(" ".join),
    st.lists(PIECES, max_size=25).map(lambda pieces: "SELECT " + " ".join(pieces)),
)


def parses(text: str) -> bool:
    try:
        parse(text)
    except QueryError:
        return False
    return True


@settings(max_examples=400)
@given(garbage)
@example(" " * 5000 + "#")
@example("/*" + "*" * 5000)
@example("'" + "\\a" * 3000)
@example("c.a = '\\u12'")
@example("\x00")
@example("@")
@example("c.a = 1" + "0" * 10_000)
@example("1e" + "9" * 3000)
@example("c" + "[" * 3000)
@example("\N{BOM}c.a = 1")
def test_garbage_raises_nothing_but_query_errors(text: str) -> None:
    parses(text)


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(generating.queries, st.data())
def test_a_damaged_query_raises_nothing_but_query_errors(text: str, data: Any) -> None:
    at = data.draw(st.integers(0, len(text)))
    parses(text[:at] + data.draw(PIECES) + text[at + data.draw(st.integers(0, 5)) :])
    parses(text[:at])


@settings(max_examples=250, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(generating.queries, generating.documents)
def test_a_query_gives_json_or_a_query_error(text: str, documents: list[dict[str, Any]]) -> None:
    assert parses(text), text
    try:
        results = ask(text, documents)
    except QueryError:
        return
    assert orjson.loads(orjson.dumps(results)) == results


@pytest.mark.parametrize("size", [10, 1000])
def test_random_bytes_are_refused(size: int) -> None:
    text = "".join(chr(number * 7919 % 0xD7FF) for number in range(1, size))
    assert not parses(text)
