"""From documents to results: what the clauses of a query do, one after the other."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

from tests.query.asking import ask
from ttlstore import QueryError
from ttlstore.query import expressions
from ttlstore.query.evaluate import evaluate
from ttlstore.query.parser import parse

ORDERS: list[dict[str, Any]] = [
    {"id": "o1", "status": "open", "total": 10, "items": [{"sku": "tea", "n": 2}, {"sku": "mug", "n": 1}]},
    {"id": "o2", "status": "paid", "total": 25.5, "items": [{"sku": "tea", "n": 1}], "note": None},
    {"id": "o3", "status": "open", "total": 7, "items": []},
    {"id": "o4", "status": "lost", "address": {"city": "Bern", "lines": ["a", "b"]}},
]


def ids(text: str, parameters: Any = None) -> list[Any]:
    return [order["id"] for order in ask(text, ORDERS, parameters)]


# --- SELECT ---------------------------------------------------------------------------------------------------------

SELECTED: list[tuple[str, list[Any]]] = [
    ("SELECT c.id, c.total FROM c WHERE c.id = 'o1'", [{"id": "o1", "total": 10}]),
    ("SELECT c.id, c.total FROM c WHERE c.id = 'o4'", [{"id": "o4"}]),  # undefined leaves no property
    ("SELECT c.missing FROM c WHERE c.id = 'o1'", [{}]),
    ("SELECT c.id AS key, c.total + 1 AS more FROM c WHERE c.id = 'o1'", [{"key": "o1", "more": 11}]),
    ("SELECT c.total total2 FROM c WHERE c.id = 'o1'", [{"total2": 10}]),
    (
        "SELECT c.total + 1, c.items[0], 'x' FROM c WHERE c.id = 'o1'",
        [{"$1": 11, "$2": ORDERS[0]["items"][0], "$3": "x"}],
    ),
    ("SELECT c.address.city FROM c WHERE c.id = 'o4'", [{"city": "Bern"}]),
    ("SELECT c['address']['city'] FROM c WHERE c.id = 'o4'", [{"city": "Bern"}]),
    ("SELECT c FROM c WHERE c.id = 'o3'", [{"c": ORDERS[2]}]),
    ("SELECT VALUE c FROM c WHERE c.id = 'o3'", [ORDERS[2]]),
    ("SELECT * FROM c WHERE c.id = 'o3'", [ORDERS[2]]),
    ("SELECT VALUE c.total FROM c", [10, 25.5, 7]),  # undefined leaves no result
    ("SELECT VALUE c.note FROM c", [None]),
    ("SELECT VALUE {id: c.id, n: [c.total, c.note]} FROM c WHERE c.id = 'o2'", [{"id": "o2", "n": [25.5, None]}]),
    ("SELECT VALUE 1 + 1", [2]),
    ("SELECT 1 AS one, undefined AS nothing", [{"one": 1}]),
    ("SELECT VALUE undefined", []),
    ("SELECT DISTINCT VALUE c.status FROM c", ["open", "paid", "lost"]),
    ("SELECT DISTINCT c.note FROM c", [{}, {"note": None}]),
    ("SELECT DISTINCT VALUE x FROM x IN c.distinct", []),
    ("SELECT TOP 2 VALUE c.id FROM c", ["o1", "o2"]),
    ("SELECT TOP 0 * FROM c", []),
    ("SELECT TOP 9223372036854775807 VALUE c.id FROM c", ["o1", "o2", "o3", "o4"]),
    ("SELECT TOP 2 VALUE c.note ?? c.address FROM c", [None, ORDERS[3]["address"]]),  # of results, not of documents
    ("SELECT DISTINCT TOP 2 VALUE c.status FROM c", ["open", "paid"]),
    ("SELECT VALUE c.id FROM c OFFSET 1 LIMIT 2", ["o2", "o3"]),
    ("SELECT VALUE c.id FROM c OFFSET 9 LIMIT 2", []),
    ("SELECT VALUE c.id FROM c OFFSET 9223372036854775807 LIMIT 9223372036854775807", []),
]

# --- FROM and JOIN --------------------------------------------------------------------------------------------------

SOURCES: list[tuple[str, list[Any]]] = [
    ("SELECT VALUE r.id FROM root r WHERE r.total < 10", ["o3"]),
    ("SELECT VALUE r.id FROM root AS r WHERE r.total < 10", ["o3"]),
    ("SELECT VALUE orders.id FROM orders WHERE orders.total < 10", ["o3"]),
    ("SELECT * FROM c.address", [ORDERS[3]["address"]]),
    ("SELECT address.city FROM c.address", [{"city": "Bern"}]),
    ("SELECT VALUE a.city FROM c.address a", ["Bern"]),
    ("SELECT VALUE x FROM c.items[0].sku x", ["tea", "tea"]),
    ("SELECT VALUE x.sku FROM x IN c.items", ["tea", "mug", "tea"]),
    ("SELECT * FROM l IN c.address.lines", ["a", "b"]),
    ("SELECT VALUE x FROM x IN c.total", []),
    (
        "SELECT c.id, x.sku FROM c JOIN x IN c.items WHERE x.n = 1",
        [{"id": "o1", "sku": "mug"}, {"id": "o2", "sku": "tea"}],
    ),
    (
        "SELECT VALUE [x.n, y.n] FROM c JOIN x IN c.items JOIN y IN c.items WHERE c.id = 'o1'",
        [[2, 2], [2, 1], [1, 2], [1, 1]],
    ),
    ("SELECT VALUE l FROM c JOIN a IN c.address.lines JOIN l IN c.address.lines", ["a", "b", "a", "b"]),
    ("SELECT VALUE city FROM c JOIN c.address.city", ["Bern"]),
    ("SELECT VALUE x.id FROM (SELECT c.id FROM c WHERE c.status = 'open') AS x", ["o1", "o3"]),
    ("SELECT VALUE x FROM c JOIN (SELECT VALUE i.n FROM i IN c.items WHERE i.sku = 'tea') AS x", [2, 1]),
    ("SELECT VALUE c.id FROM c JOIN (SELECT VALUE i FROM i IN c.items WHERE i.n = 2)", ["o1"]),
    (
        "SELECT c.id, u.name FROM c JOIN u IN (SELECT VALUE [{s: 'open', name: 'Open'}, {s: 'lost', name: 'Lost'}]) "
        "WHERE u.s = c.status",
        [{"id": "o1", "name": "Open"}, {"id": "o3", "name": "Open"}, {"id": "o4", "name": "Lost"}],
    ),
    ("SELECT VALUE x FROM x IN (SELECT VALUE [c.id] FROM c)", ["o1", "o2", "o3", "o4"]),
]

# --- subqueries -----------------------------------------------------------------------------------------------------

SUBQUERIES: list[tuple[str, list[Any]]] = [
    ("SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE x FROM x IN c.items WHERE x.sku = 'mug')", ["o1"]),
    ("SELECT VALUE c.id FROM c WHERE NOT EXISTS(SELECT VALUE x FROM x IN c.items)", ["o3", "o4"]),
    ("SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE c.total)", ["o1", "o2", "o3"]),
    ("SELECT VALUE EXISTS(SELECT VALUE undefined)", [False]),
    ("SELECT VALUE EXISTS(SELECT undefined)", [True]),  # an object without properties is a result
    ("SELECT VALUE ARRAY(SELECT VALUE x.sku FROM x IN c.items) FROM c", [["tea", "mug"], ["tea"], [], []]),
    ("SELECT VALUE (SELECT VALUE SUM(x.n) FROM x IN c.items) FROM c", [3, 1, 0, 0]),
    ("SELECT VALUE (SELECT VALUE x.sku FROM x IN c.items WHERE x.n = 2) FROM c", ["tea"]),
    ("SELECT VALUE (SELECT VALUE c.id FROM c WHERE c.total > 20) FROM c", ["o2"]),  # c of the row, not the collection
    ("SELECT VALUE (SELECT TOP 1 VALUE x.sku FROM x IN c.items ORDER BY x.sku) FROM c", ["mug", "tea"]),
    ("SELECT VALUE ARRAY(SELECT DISTINCT VALUE LENGTH(x) FROM x IN a.lines) FROM c.address a", [[1]]),
    (
        "SELECT VALUE ARRAY(SELECT x.sku, COUNT(1) AS n FROM x IN c.items GROUP BY x.sku) FROM c WHERE c.id = 'o1'",
        [[{"sku": "mug", "n": 1}, {"sku": "tea", "n": 1}]],
    ),
    ("SELECT VALUE (SELECT VALUE (SELECT VALUE c.total * 2)) FROM c WHERE c.id = 'o1'", [20]),
    ("SELECT VALUE (SELECT VALUE (SELECT VALUE x.n + c.total FROM x IN c.items WHERE x.n = 2)) FROM c", [12]),
]

# --- aggregates and groups ------------------------------------------------------------------------------------------

AGGREGATES: list[tuple[str, list[Any]]] = [
    ("SELECT VALUE COUNT(1) FROM c", [4]),
    ("SELECT VALUE COUNT(c) FROM c", [4]),
    ("SELECT VALUE COUNT(c.total) FROM c", [3]),  # undefined is not counted
    ("SELECT VALUE COUNT(c.note) FROM c", [1]),  # null is
    ("SELECT COUNT(1) AS n, MAX(c.total) AS most FROM c", [{"n": 4, "most": 25.5}]),
    ("SELECT COUNT(1) FROM c", [{"$1": 4}]),
    ("SELECT VALUE {n: COUNT(1), sum: SUM(c.total) + 1} FROM c", [{"n": 4, "sum": 43.5}]),
    ("SELECT VALUE SUM(c.total) FROM c", [42.5]),
    ("SELECT VALUE AVG(c.total) FROM c WHERE c.status = 'open'", [8.5]),
    ("SELECT VALUE MIN(c.total) FROM c", [7]),
    ("SELECT VALUE MAX(c.status) FROM c", ["paid"]),
    # one value that is no number
    ("SELECT VALUE SUM(c.total ?? c.status) FROM c", []),
    ("SELECT VALUE SUM(c.note ?? c.total) FROM c", []),
    ("SELECT VALUE AVG(c.total ?? true) FROM c", []),
    # the order across types
    ("SELECT VALUE MIN(c.note ?? c.total) FROM c", [None]),
    ("SELECT VALUE MAX(c.address ?? c.total) FROM c", [ORDERS[3]["address"]]),
    ("SELECT VALUE MIN(c.total > 8) FROM c", [False]),
    # of nothing
    ("SELECT VALUE COUNT(1) FROM c WHERE false", [0]),
    ("SELECT VALUE SUM(c.total) FROM c WHERE false", [0]),
    ("SELECT VALUE AVG(c.total) FROM c WHERE false", []),
    ("SELECT COUNT(1) AS n, MIN(c.total) AS low, MAX(c.total) AS high FROM c WHERE false", [{"n": 0}]),
    ("SELECT c.status FROM c WHERE false GROUP BY c.status", []),
    # groups
    (
        "SELECT c.status, COUNT(1) AS n, SUM(c.total) AS sum FROM c GROUP BY c.status",
        [
            {"status": "lost", "n": 1, "sum": 0},
            {"status": "open", "n": 2, "sum": 17},
            {"status": "paid", "n": 1, "sum": 25.5},
        ],
    ),
    ("SELECT VALUE c.status FROM c GROUP BY c.status", ["lost", "open", "paid"]),  # in the order of what is grouped by
    ("SELECT c.note, COUNT(1) AS n FROM c GROUP BY c.note", [{"n": 3}, {"note": None, "n": 1}]),  # undefined is a group
    (
        "SELECT VALUE {s: UPPER(c.status), n: COUNT(1) * 2} FROM c WHERE c.total > 0 GROUP BY c.status",
        [{"s": "OPEN", "n": 4}, {"s": "PAID", "n": 2}],
    ),
    (
        "SELECT c.total > 8 AS large, COUNT(1) AS n FROM c WHERE c.total > 0 GROUP BY c.total > 8",
        [{"large": False, "n": 1}, {"large": True, "n": 2}],
    ),
    (
        "SELECT x.sku, SUM(x.n) AS n FROM c JOIN x IN c.items GROUP BY x.sku",
        [{"sku": "mug", "n": 1}, {"sku": "tea", "n": 3}],
    ),
    (
        "SELECT c.status, c.total, COUNT(1) AS n FROM c WHERE c.total < 20 GROUP BY c.status, c.total",
        [{"status": "open", "total": 7, "n": 1}, {"status": "open", "total": 10, "n": 1}],
    ),
    (
        "SELECT c.status FROM c GROUP BY c.status ORDER BY COUNT(1) DESC, c.status",
        [{"status": "open"}, {"status": "lost"}, {"status": "paid"}],
    ),
    ("SELECT TOP 1 c.status FROM c GROUP BY c.status ORDER BY c.status", [{"status": "lost"}]),
    (
        "SELECT VALUE g FROM (SELECT c.status, COUNT(1) AS n FROM c GROUP BY c.status) AS g WHERE g.n > 1",
        [{"status": "open", "n": 2}],
    ),
    ("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.status FROM c) AS s", [3]),
    # a subquery beside them that looks at no single row
    (
        "SELECT COUNT(1) AS n, ARRAY(SELECT VALUE x FROM x IN (SELECT VALUE [1, 2])) AS l FROM c",
        [{"n": 4, "l": [1, 2]}],
    ),
    ("SELECT VALUE COUNT(1) + (SELECT VALUE 1 WHERE true ORDER BY 1) FROM c", [5]),
    (
        "SELECT EXISTS(SELECT VALUE x FROM x IN c.items) AS e, COUNT(1) AS n FROM c "
        "GROUP BY EXISTS(SELECT VALUE x FROM x IN c.items)",
        [{"e": False, "n": 2}, {"e": True, "n": 2}],
    ),
]


@pytest.mark.parametrize(
    ("text", "expected"), [*SELECTED, *SOURCES, *SUBQUERIES, *AGGREGATES], ids=lambda value: str(value)[:90]
)
def test_a_query_gives(text: str, expected: list[Any]) -> None:
    assert ask(text, ORDERS) == expected


def test_a_text_without_select_is_a_condition_on_c() -> None:
    assert ids("c.total > 8") == ["o1", "o2"]
    assert ids(" -- large\n /* ones */ c.total > @min", {"min": 8}) == ["o1", "o2"]
    assert ids("-- all\n /* of them */ SELECT * FROM c") == ["o1", "o2", "o3", "o4"]


def test_a_condition_that_is_not_true_fails() -> None:
    assert ids("c.total") == []
    assert ids("c.note") == []
    assert ids("NOT (c.total > 8)") == ["o3"]
    assert ids("c.total != 10") == ["o2", "o3"]


def test_keywords_are_written_in_any_case() -> None:
    assert ask("select Top 1 value C.id from C where C.total Between 7 and 10 order By C.total desc", ORDERS) == ["o1"]


# --- ORDER BY -------------------------------------------------------------------------------------------------------

MIXED = [{"v": v} for v in ("b", 2, None, {"a": 1}, True, [2], "B", 10, [1, 9], False, 1.5, {"a": 0}, [])] + [{}]
IN_ORDER = [
    {},
    {"v": None},
    {"v": False},
    {"v": True},
    {"v": 1.5},
    {"v": 2},
    {"v": 10},
    {"v": "B"},
    {"v": "b"},
    {"v": [2]},  # arrays are all equal here, and objects are too: they stay as they come
    {"v": [1, 9]},
    {"v": []},
    {"v": {"a": 1}},
    {"v": {"a": 0}},
]


def test_values_of_all_types_have_one_order() -> None:
    assert ask("SELECT * FROM c ORDER BY c.v", MIXED) == IN_ORDER
    assert ask("SELECT * FROM c ORDER BY c.v ASC", MIXED) == IN_ORDER
    assert ask("SELECT * FROM c ORDER BY c.v DESC", MIXED) == IN_ORDER[::-1]


def test_descending_is_the_reverse_of_ascending() -> None:
    rows = [{"id": number, "a": number % 2} for number in range(6)]
    assert ask("SELECT VALUE c.id FROM c ORDER BY c.a DESC", rows) == [5, 3, 1, 4, 2, 0]


def test_rows_that_are_equal_stay_in_their_order() -> None:
    rows = [{"id": number, "a": number % 2} for number in range(6)]
    assert ask("SELECT VALUE c.id FROM c ORDER BY c.a", rows) == [0, 2, 4, 1, 3, 5]
    assert ask("SELECT VALUE c.id FROM c ORDER BY c.a DESC, c.a ASC", rows) == [1, 3, 5, 0, 2, 4]
    assert ask("SELECT VALUE c.id FROM c ORDER BY c.a DESC, c.id DESC", rows) == [5, 3, 1, 4, 2, 0]
    assert ask("SELECT VALUE c.id FROM c ORDER BY c.a, c.id DESC OFFSET 1 LIMIT 3", rows) == [2, 0, 5]


def test_the_first_of_many_rows_are_the_same_whether_the_rest_is_kept_or_not() -> None:
    rows = [{"id": number, "a": number * 7919 % 1000} for number in range(5000)]
    everything = ask("SELECT * FROM c ORDER BY c.a DESC", rows)
    assert ask("SELECT TOP 5 * FROM c ORDER BY c.a DESC", rows) == everything[:5]
    assert ask("SELECT * FROM c ORDER BY c.a DESC OFFSET 1990 LIMIT 20", rows) == everything[1990:2010]


def test_distinct_counts_before_the_limit() -> None:
    rows = [{"a": number // 10} for number in range(50)]
    assert ask("SELECT DISTINCT VALUE c.a FROM c ORDER BY c.a DESC OFFSET 1 LIMIT 2", rows) == [3, 2]


def test_order_by_takes_any_expression() -> None:
    assert ids("SELECT * FROM c ORDER BY LENGTH(c.status), ARRAY_LENGTH(c.items) DESC") == ["o1", "o2", "o3", "o4"]


# --- parameters -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {"min": 8, "ids": ["o1"]},
        {"@min": 8, "@ids": ["o1"]},
        [{"name": "@min", "value": 8}, {"name": "ids", "value": ["o1"]}],
        ({"name": "@min", "value": 8} for _ in (1,)),
    ],
    ids=["names", "with @", "pairs", "iterator"],
)
def test_parameters_come_in_three_forms(parameters: Any) -> None:
    if isinstance(parameters, dict | list):
        assert ids("c.total > @min AND ARRAY_CONTAINS(@ids, c.id)", parameters) == ["o1"]
    else:
        assert ids("c.total > @min", parameters) == ["o1", "o2"]


def test_a_parameter_can_stand_wherever_a_value_can() -> None:
    found = ask(
        "SELECT TOP @top c.id, @label AS label, c.address[@key] AS city FROM c "
        "WHERE c.status IN (@a, @b) AND c.status LIKE @like ORDER BY c[@sort] DESC",
        ORDERS,
        {"top": 1, "label": {"x": [1]}, "key": "city", "a": "lost", "b": "paid", "like": "%t", "sort": "id"},
    )
    assert found == [{"id": "o4", "label": {"x": [1]}, "city": "Bern"}]


def test_the_window_takes_parameters() -> None:
    assert ids("SELECT * FROM c OFFSET @skip LIMIT @n", {"skip": 1, "n": 2.0}) == ["o2", "o3"]


def test_a_parameter_is_copied() -> None:
    label = {"x": 1}
    result = ask("SELECT VALUE @label", (), {"label": label})[0]
    assert result == label
    assert result is not label


# --- streaming ------------------------------------------------------------------------------------------------------


def counted(seen: list[int]) -> Iterator[dict[str, Any]]:
    for number in range(1_000_000):
        seen.append(number)
        yield {"n": number}


@pytest.mark.parametrize(
    "text",
    [
        "c.n >= 0",
        "SELECT TOP 3 * FROM c",
        "SELECT c.n AS n FROM c",
        "SELECT DISTINCT VALUE {n: c.n} FROM c OFFSET 0 LIMIT 3",
    ],
)
def test_results_come_one_after_the_other(text: str) -> None:
    seen: list[int] = []
    results = evaluate(parse(text), counted(seen), {}, 0)
    assert seen == []
    assert [row["n"] for row in islice(results, 3)] == [0, 1, 2]
    assert len(seen) == 3


def test_documents_are_not_changed() -> None:
    before = repr(ORDERS)
    ask("SELECT ARRAY_CONCAT(c.items, [1]) AS a, SETUNION(c.items, []) AS b, c.items FROM c ORDER BY c.items", ORDERS)
    assert repr(ORDERS) == before


def test_joins_that_make_too_many_rows_of_a_document_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expressions, "MAX_ROWS", 1000)
    rows = [{"l": list(range(20))}] * 3
    assert ask("SELECT VALUE COUNT(1) FROM c JOIN a IN c.l JOIN b IN c.l", rows) == [1200]
    for text in (
        "SELECT VALUE COUNT(1) FROM c JOIN a IN c.l JOIN b IN c.l JOIN d IN c.l",
        "SELECT VALUE (SELECT VALUE COUNT(1) FROM a IN c.l JOIN b IN c.l JOIN d IN c.l) FROM c",
        "SELECT VALUE COUNT(1) FROM c JOIN a IN c.l JOIN b IN c.l JOIN d IN (SELECT VALUE c.l)",
    ):
        with pytest.raises(QueryError, match="more than 1000 rows of one document"):
            ask(text, rows)
