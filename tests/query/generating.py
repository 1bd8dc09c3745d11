"""Random queries and documents for property tests. The queries are well-formed; what they do need not make sense."""

import json
from typing import Any

from hypothesis import strategies as st

from ttlstore.query.functions import AGGREGATES, FUNCTIONS

OPERATORS = (
    *("=", "!=", "<", "<=", ">", ">=", "AND", "OR", "??", "||"),
    *("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", ">>>"),
)
NAMES = ("a", "b", "c", "list", "id")

# Where JSON has escapes, and texts that look like one: a backslash before `u0000` is not a NUL, and a NUL is.
_PIECES = ("\\", "\0", '"', "'", "\n", "\\u0000", "\\ud800", "\\ud801", "\\udc00", "u0000", "a", "😀")
escaped: st.SearchStrategy[str] = st.one_of(
    # Few enough that two are often the same, one in a document and one in a query.
    st.sampled_from(
        ["\\u0000", "\0", "\\", "\\\0", "a\\u0000\0", "\\\\u0000", "\\ud800", '"', '\\"', "a\0b", "a\\u0000"]
    ),
    st.lists(st.sampled_from(_PIECES), min_size=1, max_size=4).map("".join),
)
scalars: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    escaped,
    st.integers(-3, 3),
    st.sampled_from([0.5, -1.5, 2.0, 1e300, 2**53, 2**63 - 1, -(2**63)]),
    st.sampled_from(["", "a", "b", "ab", "A", "%", "é", "2020-01-01T00:00:00Z", "[1]", "yyyy"]),
)
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=6,
)
documents = st.lists(
    st.builds(
        lambda rest, elements: {**rest, "list": elements},
        st.dictionaries(st.sampled_from(NAMES), values, max_size=4),
        st.lists(values, max_size=3),
    ),
    min_size=1,
    max_size=4,
)


def _joined(separator: str, parts: st.SearchStrategy[str], least: int, most: int) -> st.SearchStrategy[str]:
    return st.lists(parts, min_size=least, max_size=most).map(separator.join)


def _calls(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def arguments(name: str) -> st.SearchStrategy[str]:
        function = FUNCTIONS[name]
        most = function.least + 2 if function.most is None else function.most
        return _joined(", ", inner, function.least, most).map(lambda given: f"{name}({given})")

    return st.sampled_from(sorted(FUNCTIONS)).flatmap(arguments)


def _paths(aliases: tuple[str, ...]) -> st.SearchStrategy[str]:
    step = st.one_of(st.sampled_from(NAMES).map(lambda name: f".{name}"), st.integers(0, 2).map(lambda at: f"[{at}]"))
    return st.tuples(st.sampled_from(aliases), _joined("", step, 0, 3)).map("".join)


def _subqueries(aliases: tuple[str, ...], depth: int) -> st.SearchStrategy[str]:
    if depth <= 0:
        return st.sampled_from(("(SELECT VALUE 1)", "ARRAY(SELECT 1 AS a)", "EXISTS(SELECT VALUE undefined)"))
    alias = f"x{depth}"
    inner = expressions((*aliases, alias), depth - 1)
    queries = st.builds(
        "SELECT {}VALUE {} FROM {} IN {}{}".format,
        st.sampled_from(("", "DISTINCT ", "TOP 1 ")),
        inner,
        st.just(alias),
        _paths(aliases),
        st.one_of(st.just(""), inner.map(lambda condition: f" WHERE {condition}")),
    )
    return st.builds("{}({})".format, st.sampled_from(("", "ARRAY", "EXISTS")), queries)


def expressions(aliases: tuple[str, ...], depth: int = 2) -> st.SearchStrategy[str]:
    """Expressions over aliases, as text."""
    leaves = st.one_of(values.map(json.dumps), _paths(aliases), _paths(aliases), st.just("undefined"))

    def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        operators = st.sampled_from(OPERATORS)
        negation = st.sampled_from(("", "NOT "))
        return st.one_of(
            st.builds("({} {} {})".format, inner, operators, inner),
            st.builds("({}({}))".format, st.sampled_from(("NOT ", "-", "+", "~")), inner),
            st.builds("({} {}IN ({}))".format, inner, negation, _joined(", ", inner, 1, 3)),
            st.builds("({} {}BETWEEN {} AND {})".format, inner, negation, inner, inner),
            st.builds("({} {}LIKE {})".format, inner, negation, inner),
            st.builds("({} ? {} : {})".format, inner, inner, inner),
            st.builds("({})[{}]".format, inner, inner),
            st.builds("[{}]".format, _joined(", ", inner, 0, 3)),
            st.builds("{{a: {}, b: {}}}".format, inner, inner),
            _calls(inner),
            _subqueries(aliases, depth),
        )

    return st.recursive(leaves, larger, max_leaves=5)


_of_c = expressions(("c",))
_windows = st.one_of(st.just(""), st.builds(" OFFSET {} LIMIT {}".format, st.integers(0, 2), st.integers(0, 3)))
_orders = st.one_of(
    st.just(""),
    st.builds(" ORDER BY {}{}".format, _of_c, st.sampled_from(("", " ASC", " DESC"))),
    st.builds(" ORDER BY {}, {} DESC".format, _paths(("c",)), _paths(("c",))),
)
# Most conditions are not true of most documents: half of those here are true whatever they say.
_wheres = st.builds(" WHERE {}{}".format, _of_c, st.sampled_from(("", " OR true"))) | st.just("")

plain_queries = st.builds(
    "SELECT {}{} FROM c{}{}{}".format,
    st.sampled_from(("", "DISTINCT ")),
    st.one_of(
        st.just("*"),
        _of_c.map(lambda expression: f"VALUE {expression}"),
        st.builds("{} AS a, {} AS b".format, _of_c, _of_c),
    ),
    _wheres,
    _orders,
    _windows,
)
grouped_queries = st.builds(
    "SELECT VALUE {{key: {0}, value: {1}({2})}} FROM c{3} GROUP BY {0}{4}".format,
    _paths(("c",)),
    st.sampled_from(AGGREGATES),
    _of_c,
    _wheres,
    _windows,
)
joined_queries = st.builds(
    "SELECT c.id, {} AS a, {} AS b FROM c JOIN x IN {} JOIN (SELECT {} AS v) AS y WHERE {} ?? true".format,
    expressions(("c", "x", "y")),
    expressions(("c", "x", "y")),
    st.just("c.list") | _paths(("c",)),
    expressions(("c", "x")),
    expressions(("c", "x", "y")),
)
queries = st.one_of(plain_queries, grouped_queries, joined_queries, _of_c)
