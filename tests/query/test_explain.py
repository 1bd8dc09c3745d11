"""Explanations: what is pushed down, which index serves it, what is left. Indexes are used as they should be."""

import pytest

from ttlstore import Collection, Explanation, IndexingPolicy, Store
from ttlstore.engine import Row, Settings
from ttlstore.statements import Prepared, Values

COMPOSITE = ("/status", "/total")


@pytest.fixture
def orders(store: Store) -> Collection:
    policy = IndexingPolicy(paths=("/status", "/total", COMPOSITE, "/address/city"))
    return store.create_collection("orders", indexing=policy)


@pytest.mark.parametrize(
    ("text", "pushed", "index", "evaluated"),
    [
        ("c.status = 'open'", ['WHERE c.status = "open"'], ("/status",), []),
        ("'open' = c.status", ['WHERE "open" = c.status'], ("/status",), []),
        ("c.total > 5 AND c.total <= 7", ["WHERE c.total > 5 AND c.total <= 7"], ("/total",), []),
        ("c.address.city IN ('Rome', 'Paris')", ['WHERE c.address.city IN ("Rome", "Paris")'], ("/address/city",), []),
        ("STARTSWITH(c.status, 'op')", ['WHERE STARTSWITH(c.status, "op")'], ("/status",), []),
        ("c.status LIKE 'op%'", ['WHERE c.status LIKE "op%"'], ("/status",), []),
        ("c.status = 'open' AND c.total = 5", ['WHERE c.status = "open" AND c.total = 5'], COMPOSITE, []),
        ("c.total = 1 OR c.total = 2", ["WHERE (c.total = 1) OR (c.total = 2)"], ("/total",), []),
        ("c.total = 1 OR c.other = 2", ["WHERE (c.total = 1) OR (c.other = 2)"], None, []),
        ("c.other = 1", ["WHERE c.other = 1"], None, []),
        ("c.id = 'a'", ['WHERE c.id = "a"'], ("/id",), []),
        ("c.total + 1 > 5", [], None, ["WHERE (c.total + 1) > 5"]),
        (
            "c.status = 'open' AND c.total + 1 > 5",
            ['WHERE c.status = "open"'],
            ("/status",),
            ["WHERE (c.total + 1) > 5"],
        ),
        (
            "SELECT c.id FROM c WHERE c.status = 'open' ORDER BY c.total DESC OFFSET 0 LIMIT 5",
            ['WHERE c.status = "open"', "ORDER BY c.total DESC", "OFFSET 0 LIMIT 5"],
            COMPOSITE,
            ["SELECT c.id AS id"],
        ),
        ("SELECT TOP 5 * FROM c ORDER BY c.total", ["ORDER BY c.total", "TOP 5"], ("/total",), []),
        ("SELECT * FROM c ORDER BY c.status, c.total", ["ORDER BY c.status, c.total"], COMPOSITE, []),
        ("SELECT * FROM c ORDER BY c.status, c.total DESC", ["ORDER BY c.status, c.total DESC"], None, []),
        ("SELECT * FROM c ORDER BY c.total * 2", [], None, ["ORDER BY c.total * 2"]),
        (
            "SELECT VALUE COUNT(1) FROM c WHERE c.status = 'open'",
            ["SELECT VALUE COUNT(1)", 'WHERE c.status = "open"'],
            ("/status",),
            [],
        ),
        (
            "SELECT c.status, SUM(c.total) AS s FROM c WHERE c.total > 1 GROUP BY c.status",
            ["WHERE c.total > 1"],
            ("/total",),
            ["GROUP BY c.status", "SELECT c.status AS status, SUM(c.total) AS s"],
        ),
        (
            "SELECT DISTINCT VALUE t FROM c JOIN t IN c.tags WHERE c.status = 'open' AND t != 'x'",
            ['WHERE c.status = "open"'],
            ("/status",),
            ["JOIN t IN c.tags", 'WHERE t != "x"', "SELECT DISTINCT VALUE t"],
        ),
        ("SELECT TOP 3 VALUE c.total FROM c", [], None, ["SELECT VALUE c.total", "TOP 3"]),
        ("SELECT * FROM c WHERE 1 = 2", [], None, ["WHERE 1 = 2"]),
        ("SELECT * FROM c WHERE false", ["no document fulfils the condition", "WHERE false"], None, []),
        ("SELECT VALUE 1", [], None, ["SELECT VALUE 1"]),
    ],
)
def test_a_plan_says_what_becomes_of_a_query(
    orders: Collection, text: str, pushed: list[str], index: tuple[str, ...] | None, evaluated: list[str]
) -> None:
    explained = orders.explain(text)
    assert list(explained.pushed_down) == pushed
    assert explained.index == index
    assert list(explained.evaluated) == evaluated


CITY = ("/address/city",)


@pytest.mark.parametrize(
    ("condition", "indexes"),
    [
        ("c.total = 1 OR c.address.city = 'Rome'", [("/total",), CITY]),
        ("(c.total = 1 OR c.address.city = 'Rome') AND c.other > 1", [("/total",), CITY]),
        ("(c.total = 1 OR c.address.city = 'Rome') AND c.total + 1 > 1", [("/total",), CITY]),
        ("c.total > 900 OR c.address.city = 'Rome'", [("/total",), CITY]),
        ("c.total IN (1, 2) OR c.address.city IN ('Rome', 'Oslo') OR c.total = 3", [("/total",), CITY]),
        ("c.total BETWEEN 1 AND 2 OR STARTSWITH(c.address.city, 'R')", [("/total",), CITY]),
        ("c.id = 'a' OR c.total = 1", [("/id",), ("/total",)]),
        ("(c.status = 'open' AND c.total = 1) OR c.address.city = 'Rome'", [COMPOSITE, CITY]),
        ("(c.total = 1 OR c.address.city = 'Rome') AND c.total < 9", [("/total",), CITY]),
        ("c.status = true OR c.address.city = null", [("/status",), CITY]),
        ("NOT (c.total != 1 AND c.address.city != 'Rome')", [("/total",), CITY]),
        # one path
        ("c.total < 1 OR c.total > 9", [("/total",)]),
        ("c.total NOT BETWEEN 1 AND 9", [("/total",)]),
        ("c.total IN (1, 'one', null)", [("/total",)]),
        ("c.total = 1 OR c.total = 'one'", [("/total",)]),
        ("IS_DEFINED(c.total) OR c.address.city = 'Rome'", [("/total",), CITY]),
        # what is equal on all sides is narrower
        ("c.status = 'open' AND (c.total = 1 OR c.total > 9)", [COMPOSITE]),
        ("c.address.city = 'Rome' AND (c.total = 1 OR c.status = 'open')", [CITY]),
        ("c.id = 'a' AND (c.total = 1 OR c.address.city = 'Rome')", [("/id",)]),
        # a side without an index: all documents are looked at anyway
        ("c.total = 1 OR c.other = 2", []),
        ("c.total = 1 OR c.address.city != 'Rome'", []),
        ("c.total = 1 OR NOT IS_DEFINED(c.other)", []),
        ("c.total = 1 OR LENGTH(c.status) > 1", []),
        ("c.total NOT IN (1, 2)", []),
    ],
)
def test_the_sides_of_an_or_are_served_by_an_index_each(
    orders: Collection, condition: str, indexes: list[tuple[str, ...]]
) -> None:
    explained = orders.explain(condition)
    assert list(explained.indexes) == indexes
    assert explained.index == (indexes[0] if len(indexes) == 1 else None)


def test_equality_on_every_side_goes_before_an_index_in_order_and_that_before_ranges(orders: Collection) -> None:
    for order, of_ranges in (("c.total", [("/total",)]), ("c.other", [("/total",), CITY])):
        equal = f"SELECT * FROM c WHERE c.status = 'open' OR c.address.city = 'Rome' ORDER BY {order}"
        assert list(orders.explain(equal).indexes) == [("/status",), CITY]
        ranges = f"SELECT * FROM c WHERE c.total > 9 OR c.address.city > 'Rome' ORDER BY {order}"
        assert list(orders.explain(ranges).indexes) == of_ranges


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("c.id = 'a'", ("/id",)),
        ("c._ts > 1", None),
        ("c.ttl = 1 OR c._etag = 'x'", None),
        ("SELECT * FROM c ORDER BY c._ts", None),
        ("c.status = 'open' AND c._ts > 1", ("/status",)),
    ],
)
def test_an_index_on_what_has_a_column_is_not_taken_for_one_that_serves(
    file_store: Store, text: str, index: tuple[str, ...] | None
) -> None:
    policy = IndexingPolicy(paths=("/id", "/_ts", "/ttl", "/_etag", ("/status", "/_ts")))
    orders = file_store.create_collection("orders", indexing=policy)
    explained = orders.explain(text)
    assert explained.index == index
    assert not any(step.startswith("SCAN") for step in explained.steps)


def test_an_explanation_can_be_printed(orders: Collection) -> None:
    explained = orders.explain("SELECT c.id FROM c WHERE c.status = @s AND c.total + 1 > 5", {"s": "open"})
    assert isinstance(explained, Explanation)
    assert str(explained).splitlines()[:3] == [
        "pushed down: WHERE c.status = @s",
        "index:       /status",
        "evaluated:   WHERE (c.total + 1) > 5; SELECT c.id AS id",
    ]
    assert "every document of the collection is read" in str(orders.explain("SELECT * FROM c"))
    both = orders.explain("(c.status = 'open' AND c.total = 1) OR c.address.city = 'Rome'")
    assert "index:       /status /total or /address/city" in str(both)


def test_the_type_of_a_parameter_makes_a_plan_of_its_own(orders: Collection) -> None:
    text = "c.total = @p"
    assert orders.explain(text, {"p": 1}).index == ("/total",)
    assert orders.explain(text, {"p": None}).index == ("/total",)
    assert orders.explain(text, {"p": [1]}).evaluated == ("WHERE c.total = @p",)
    assert orders.explain(text, {"p": "a\0"}).evaluated == ("WHERE c.total = @p",)
    orders.create_many([{"id": "n", "total": 1}, {"id": "s", "total": "1"}, {"id": "t", "total": True}])
    for value, id in ((1, "n"), ("1", "s"), (True, "t"), (1.0, "n")):
        assert [found["id"] for found in orders.query(text, {"p": value})] == [id]


def test_the_expiry_is_tested_in_every_statement(orders: Collection) -> None:
    for text in ("SELECT * FROM c", "c.status = 'open'", "SELECT VALUE COUNT(1) FROM c WHERE c.total > 1"):
        assert "coalesce(documents.ttl" in orders.explain(text).sql


# --- SQLite takes the index for what it is ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("c.total = 5", "(<expr>=? AND <expr>=?)"),
        ("c.total > 5", "(<expr>=? AND <expr>>?)"),
        ("c.total BETWEEN 1 AND 2", "(<expr>=? AND <expr>>? AND <expr><?)"),
        ("c.total IN (1, 2)", "(<expr>=? AND <expr>=?)"),
        ("IS_STRING(c.total)", "(<expr>=?)"),
        ("c.status = 'open' AND c.total > 1", "(<expr>=? AND <expr>=? AND <expr>=? AND <expr>>?)"),
        ("c.id = 'a'", "(collection_id=? AND id=?)"),
    ],
)
def test_sqlite_searches_the_index(file_store: Store, text: str, step: str) -> None:
    orders = file_store.create_collection("orders", indexing=IndexingPolicy(paths=("/total", COMPOSITE)))
    searched = [step for step in orders.explain(text).steps if step.startswith("SEARCH documents USING INDEX")]
    assert len(searched) == 1
    assert searched[0].endswith(step)


def test_sqlite_searches_the_index_of_each_side_of_an_or(file_store: Store) -> None:
    orders = file_store.create_collection("orders", indexing=IndexingPolicy(paths=("/total", COMPOSITE)))
    searched = [
        step.partition(" (")[2]
        for text in (
            "c.total = 5 OR c.status = 'open' OR c.id = 'a'",
            "SELECT VALUE COUNT(1) FROM c WHERE c.total > 5 OR (c.status = 'open' AND c.total <= 1)",
        )
        for step in orders.explain(text).steps
        if step.startswith("SEARCH documents")
    ]
    assert searched == [
        *("rowid=?)", "<expr>=? AND <expr>=?)", "<expr>=? AND <expr>=?)", "collection_id=? AND id=?)"),
        *("rowid=?)", "<expr>=? AND <expr>>?)", "<expr>=? AND <expr>=? AND <expr>=? AND <expr><?)"),
    ]


@pytest.mark.parametrize("kind", ["postgres"], indirect=True)
def test_postgresql_puts_the_indexes_of_both_sides_together(store: Store) -> None:
    orders = store.create_collection("orders", indexing=IndexingPolicy(paths=("/total", "/status")))
    orders.create_many({"id": str(number), "total": number, "status": f"s{number}"} for number in range(3000))
    with store.transaction():
        store._engine.define("ANALYZE documents")
    for text in ("c.total = 5 OR c.status = 's7'", "SELECT VALUE COUNT(1) FROM c WHERE c.total < 5 OR c.status = 's7'"):
        steps = "\n".join(orders.explain(text).steps)
        assert "BitmapOr" in steps
        assert steps.count("Bitmap Index Scan on documents_of_") == 2


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM c ORDER BY c.total",
        "SELECT * FROM c ORDER BY c.total DESC",
        "SELECT * FROM c WHERE c.total > 5 ORDER BY c.total DESC",
        "SELECT * FROM c WHERE c.status = 'open' ORDER BY c.total",
        "SELECT * FROM c WHERE c.status = 'open' ORDER BY c.status, c.total",
        "SELECT * FROM c ORDER BY c.status DESC, c.total DESC",
        "c.total = 5",
        "c.total > 5",
        "c.total IN (1, 2)",
        "c.status = 'open'",
        "c.total = 5 OR c.status = 'open'",
        "SELECT TOP 5 * FROM c WHERE c.total > 5",
        "SELECT * FROM c",
        "c.other = 1",
    ],
)
def test_sqlite_sorts_nothing_that_an_index_has_in_order(file_store: Store, text: str) -> None:
    orders = file_store.create_collection("orders", indexing=IndexingPolicy(paths=("/total", COMPOSITE)))
    assert not any("TEMP B-TREE" in step for step in orders.explain(text).steps)


def test_a_page_goes_on_in_the_index_where_the_last_one_ended(
    file_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = file_store.create_collection("orders", indexing=IndexingPolicy(paths=("/total",)))
    orders.create_many({"id": str(number), "total": number} for number in range(20))
    engine, steps = file_store._engine, list[str]()
    run = engine.all

    def noted(statement: Prepared, values: Values = (), planned_by: Settings | None = None) -> list[Row]:
        if statement.sql.startswith("SELECT documents") or statement.sql.startswith("SELECT CASE"):
            steps.extend(engine.steps(statement, values)[:1])
        return run(statement, values, planned_by)

    text = "SELECT * FROM c ORDER BY c.total"
    token = orders.query_page(text, size=5).token
    monkeypatch.setattr(engine, "all", noted)
    assert [found["id"] for found in orders.query_page(text, size=5, token=token).items] == ["5", "6", "7", "8", "9"]
    assert [step.partition(" (")[2] for step in steps] == [
        "<expr>=? AND <expr>=? AND rowid>?)",
        "<expr>=? AND <expr>>?)",
    ]


def test_a_page_sorts_nothing_that_the_index_has_in_order(file_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    orders = file_store.create_collection("orders", indexing=IndexingPolicy(paths=("/status",)))
    orders.create_many({"id": str(number), "status": "open"} for number in range(20))
    engine, steps = file_store._engine, list[str]()
    run = engine.all

    def noted(statement: Prepared, values: Values = (), planned_by: Settings | None = None) -> list[Row]:
        if not statement.sql.startswith("EXPLAIN"):
            steps.extend(engine.steps(statement, values))
        return run(statement, values, planned_by)

    text = "SELECT * FROM c ORDER BY c.status DESC"
    token = orders.query_page(text, size=5).token
    with monkeypatch.context() as patched:
        patched.setattr(engine, "all", noted)
        page = orders.query_page(text, size=5, token=token)
    assert [found["id"] for found in page.items] == ["14", "13", "12", "11", "10"]
    assert steps
    assert not any("TEMP B-TREE" in step for step in steps)
