"""Pushing down changes how fast a query is, never its result: both ways are asked, and must say the same."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import orjson
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import ttlstore
from tests.query import generating
from tests.query.asking import ask
from ttlstore import Collection, IndexingPolicy, QueryError, Store
from ttlstore.query.evaluate import evaluate, window
from ttlstore.query.parameters import bind
from ttlstore.query.parser import parse
from ttlstore.query.values import identity, value_key
from ttlstore.testing import FakeClock
from ttlstore.ttl import present

POLICIES = [
    IndexingPolicy(),
    IndexingPolicy(paths=("/a", "/b", "/n/x")),
    IndexingPolicy(paths=(("/a", "/b"), "/b")),
    IndexingPolicy(paths=(("/n/x", "/a"), "/l")),
    IndexingPolicy("lazy", ("/a",)),
]

# --- documents --------------------------------------------------------------------------------------------------------

numbers = st.sampled_from([0, 1, -1, 2, 0.5, 1.0, -0.0, 2**53, 2**53 + 1, 2.0**53, 2**63 - 1, -(2**63), 1e300])
strings = generating.escaped | st.sampled_from(
    ["", "a", "ab", "abc", "b", "A", "é", "\U0001f600", "\ud7ff", "0", "1", "[1]", "true", "a\0b"]
)
scalars = st.none() | st.booleans() | numbers | strings
values = scalars | st.sampled_from([[], [1], [1, "a"], {}, {"x": 1}, {"x": {"y": "a"}}])
bodies = st.fixed_dictionaries(
    {},
    optional={
        "a": values,
        "b": values,
        "n": st.fixed_dictionaries({}, optional={"x": values}) | values,
        "l": st.lists(scalars, max_size=3) | values,
        'odd "name"': values,
        "ttl": st.sampled_from([-1, 1, 5, 100]),
    },
)

# --- queries ----------------------------------------------------------------------------------------------------------

paths = st.sampled_from(
    ["c.a", 'c["b"]', "c.n.x", "c.n", "c.l[0]", "c.l", "c.id", "c._ts", "c.ttl", "c['odd \"name\"']", "c.a.x", "c"]
)
indexed_paths = st.sampled_from(["c.a", "c.b", "c.n.x"])


def literal(value: Any) -> str:
    return orjson.dumps(value).decode()


class Parameters:
    """Collects the constants of a query that are passed as parameters."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def add(self, value: Any) -> str:
        name = f"p{len(self.values)}"
        self.values[name] = value
        return f"@{name}"


@st.composite
def constants(draw: st.DrawFn, parameters: Parameters) -> str:
    kind = draw(st.sampled_from(["literal", "literal", "parameter", "array", "moment", "undefined"]))
    if kind == "parameter":
        return parameters.add(draw(values))
    if kind == "array":
        return literal(draw(st.sampled_from([[], [1], {"x": 1}])))
    if kind == "moment":
        return literal(draw(st.sampled_from([1_700_000_000, 1_700_000_001, 1_700_000_000.5, "d3", 5, 100])))
    return "undefined" if kind == "undefined" else literal(draw(scalars))


@st.composite
def conditions(draw: st.DrawFn, parameters: Parameters, depth: int = 2) -> str:
    constant = constants(parameters)
    path = draw(paths | indexed_paths)
    kinds = ["compare", "compare", "mirrored", "between", "in", "type", "prefix", "like", "bare", "paths", "sum"]
    if depth:
        kinds += ["and", "and", "or", "either", "not", "constant"]
    match draw(st.sampled_from(kinds)):
        case "compare":
            return f"{path} {draw(operators)} {draw(constant)}"
        case "mirrored":
            return f"{draw(constant)} {draw(operators)} {path}"
        case "between":
            return f"{path} {draw(negations)}BETWEEN {draw(constant)} AND {draw(constant)}"
        case "in":
            return f"{path} {draw(negations)}IN ({', '.join(draw(st.lists(constant, min_size=1, max_size=4)))})"
        case "type":
            return f"IS_{draw(type_checks)}({path})"
        case "prefix":
            return f"STARTSWITH({path}, {draw(constant)})"
        case "like":
            pattern = draw(st.sampled_from(["a%", "%", "a_", "ab", "%b", "é%", "[a]%", "a!%%", "\ud7ff%"]))
            escape = draw(st.sampled_from(["", " ESCAPE '!'"]))
            return f"{path} {draw(negations)}LIKE {literal(pattern)}{escape}"
        case "paths":
            return f"{path} {draw(operators)} {draw(paths)}"
        case "sum":
            return f"{path} + 1 {draw(operators)} {draw(constant)}"
        case "constant":
            return draw(constant)
        case "and" | "or" as operator:
            inner = conditions(parameters, depth - 1)
            return f"({draw(inner)} {operator} {draw(inner)})"
        case "either":
            sides = st.one_of(
                st.builds("{} {} {}".format, indexed_paths, operators, constant),
                st.builds("{} IN ({}, {})".format, indexed_paths, constant, constant),
                st.builds("(c.a = {} AND {} < {})".format, constant, indexed_paths, constant),
                st.builds("c.id = {}".format, st.sampled_from(['"d0"', '"d1"', "1"])),
            )
            return f"({' OR '.join(draw(st.lists(sides, min_size=2, max_size=4)))})"
        case "not":
            return f"NOT ({draw(conditions(parameters, depth - 1))})"
    return path


operators = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
negations = st.sampled_from(["", "NOT "])
type_checks = st.sampled_from(
    ["DEFINED", "NULL", "BOOL", "NUMBER", "INTEGER", "STRING", "ARRAY", "OBJECT", "PRIMITIVE"],
)
orders = st.lists(
    st.tuples(
        paths | indexed_paths, st.sampled_from(["", "", " ?? 1", " = 1"]), st.sampled_from(["", " ASC", " DESC"])
    ).map("".join),
    min_size=1,
    max_size=3,
).map(lambda parts: "ORDER BY " + ", ".join(parts))


@st.composite
def queries(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    parameters = Parameters()
    where = f"WHERE {draw(conditions(parameters))}" if draw(st.booleans()) else ""
    shape = draw(st.sampled_from(["rows", "rows", "rows", "count", "join", "group", "within", "each", "derived"]))
    amount = st.sampled_from([0, 1, 2, 3, 50])
    distinct = draw(st.sampled_from(["", "", "DISTINCT "]))
    order = draw(st.just("") | orders)
    if shape == "count":
        return draw(st.sampled_from(["SELECT VALUE COUNT(1)", "SELECT COUNT(1) AS n, COUNT('x') AS m"])) + (
            f" FROM c {where}"
        ), parameters.values
    if shape == "join":
        return f"SELECT {distinct}c.id, x FROM c JOIN x IN c.l {where} {order}", parameters.values
    if shape == "group":
        of_groups = draw(st.sampled_from(["", "ORDER BY COUNT(1) DESC", "ORDER BY SUM(c.b), c.a DESC"]))
        return f"SELECT c.a, COUNT(1) AS n, SUM(c.b) AS s FROM c {where} GROUP BY c.a {of_groups}", parameters.values
    if shape == "within":
        return f"SELECT * FROM c.n c {where} {order}", parameters.values
    if shape == "each":
        return f"SELECT VALUE c FROM c IN c.l {where}", parameters.values
    if shape == "derived":
        inner = draw(
            st.sampled_from(
                ["SELECT * FROM c ORDER BY c.a", "SELECT TOP 3 * FROM c ORDER BY c.b DESC", "SELECT * FROM c"]
            )
        )
        return f"SELECT VALUE c.id FROM ({inner}) AS c {where} {order}", parameters.values
    selected = draw(st.sampled_from(["*", "c.id", "c.id, c.a", "VALUE c.a", "VALUE c"]))
    window = draw(st.sampled_from(["", "top", "offset"]))
    top = f"TOP {draw(amount)} " if window == "top" else ""
    offset = f"OFFSET {draw(amount)} LIMIT {parameters.add(draw(amount))}" if window == "offset" else ""
    return f"SELECT {distinct}{top}{selected} FROM c {where} {order} {offset}", parameters.values


# --- both ways --------------------------------------------------------------------------------------------------------

names = count()


def evaluated(collection: Collection, text: str, parameters: dict[str, Any], clock: FakeClock) -> list[Any]:
    """What the evaluator says, over all documents."""
    query = parse(text)
    return list(evaluate(query, list(collection), bind(query, parameters), present(clock)))


def paged(collection: Collection, text: str, parameters: dict[str, Any], size: int) -> list[Any]:
    results, token = [], None
    while True:
        page = collection.query_page(text, parameters, size=size, token=token)
        results += page.items
        if page.token is None:
            return results
        assert len(page.items) == size
        token = page.token


def check_distinct_pages(
    collection: Collection, text: str, parameters: dict[str, Any], clock: FakeClock, pages: list[Any]
) -> None:
    """Without ORDER BY they come in the order of the values, and what is equal in ORDER BY does so too."""
    query = parse(text)
    everything = replace(query, top=None, offset=None, limit=None)
    different = list(evaluate(everything, list(collection), bind(query, parameters), present(clock)))
    skip, limit = window(query, bind(query, parameters), text)
    end = None if limit is None else skip + limit
    if not query.order_by:
        assert list(map(identity, pages)) == list(map(identity, sorted(different, key=value_key)[skip:end]))
    found = set(map(identity, pages))
    assert len(found) == len(pages) == len(different[skip:end])
    assert found <= set(map(identity, different))


def fill(collection: Collection, documents: list[dict[str, Any]], clock: FakeClock) -> None:
    """Some at one time and some later, when the first have begun to expire."""
    for number, body in enumerate(documents):
        collection.create({**body, "id": f"d{number}"})
        clock.advance(0.4)


everything = given(
    documents=st.lists(bodies, min_size=3, max_size=12),
    asked=st.lists(queries(), min_size=3, max_size=6),
    policy=st.sampled_from(POLICIES),
    default_ttl=st.sampled_from([None, -1, 2, 100]),
    size=st.integers(1, 4),
)


def check_both_ways(
    store: Store,
    clock: FakeClock,
    documents: list[dict[str, Any]],
    asked: list[tuple[str, dict[str, Any]]],
    policy: IndexingPolicy,
    default_ttl: int | None,
    size: int,
) -> None:
    collection = store.create_collection(f"c{next(names)}", indexing=policy, default_ttl=default_ttl)
    fill(collection, documents, clock)
    for text, parameters in asked:
        expected = orjson.dumps(evaluated(collection, text, parameters, clock))
        for _ in range(2):  # the second time an engine may know how much it finds
            assert orjson.dumps(list(collection.query(text, parameters))) == expected
        pages = paged(collection, text, parameters, size)
        if parse(text).distinct:
            check_distinct_pages(collection, text, parameters, clock, pages)
        else:
            assert orjson.dumps(pages) == expected
        assert str(collection.explain(text, parameters))
    store.delete_collection(collection.name)


@settings(max_examples=30)
@everything
def test_a_query_means_the_same_pushed_down_or_not(store: Store, clock: FakeClock, **drawn: Any) -> None:
    check_both_ways(store, clock, **drawn)


@pytest.fixture
def memory(clock: FakeClock) -> Iterator[Store]:
    with ttlstore.open(":memory:", clock=clock, vacuum=False) as store:
        yield store


@settings(max_examples=250)
@everything
def test_and_so_do_many_queries(memory: Store, clock: FakeClock, **drawn: Any) -> None:
    check_both_ways(memory, clock, **drawn)


@settings(max_examples=20)
@given(texts=st.lists(generating.escaped, min_size=2, max_size=5), policy=st.sampled_from(POLICIES[:3]))
def test_and_so_do_those_for_strings_that_are_there(
    store: Store, clock: FakeClock, texts: list[str], policy: IndexingPolicy
) -> None:
    asked = [
        (f"SELECT VALUE c.id FROM c WHERE c.a {comparison}", {"p": text})
        for text in texts
        for comparison in ("= @p", "!= @p", ">= @p", "< @p", "IN (@p, 'a')")
    ]
    check_both_ways(store, clock, [{"a": text} for text in texts], asked, policy, None, 2)


@settings(max_examples=50)
@given(
    documents=generating.documents,
    text=generating.queries,
    policy=st.sampled_from(POLICIES),
    size=st.integers(1, 3),
)
def test_and_so_do_queries_of_any_shape(
    memory: Store, clock: FakeClock, documents: list[dict[str, Any]], text: str, policy: IndexingPolicy, size: int
) -> None:
    try:
        ask(text, documents)
    except QueryError:
        reject()
    check_both_ways(memory, clock, documents, [(text, {})], policy, None, size)
