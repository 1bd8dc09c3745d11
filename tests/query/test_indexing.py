"""Indexes: there when the policy says so, for the documents of their collection alone, and in nobody's way."""

import operator
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ttlstore
from tests.kinds import on_sqlite
from tests.test_migrations import alembic
from tests.undone import undone
from ttlstore import Collection, IndexingPolicy, Store
from ttlstore.engine.json import Operator, Rank
from ttlstore.engine.json import Path as JsonPath
from ttlstore.indexes import named
from ttlstore.query.conditions import kind_of
from ttlstore.schema import index_prefix
from ttlstore.statements import Prepared
from ttlstore.testing import FakeClock

VALUES: list[Any] = [
    *(None, False, True, 0, 1, -1, 1.0, 0.5, 2**53 + 1, 2.0**53, 2**63 - 1, -(2**63), 1e300, -0.0),
    *("", "0", "1", "a", "é", "\U0001f600", "\uffff", "[1]", "{}", "x\0y", "x", "x\0", "\\u0000\0", "a\\", '"\0"'),
    *("\\u0000", "x\\u0000y", "\\\\u0000", "\\\0", "\\ud800"),
    *([], [1], [[]], {}, {"a": 1}),
]
AWKWARD_NAMES = [
    "a.b",
    "a[0]",
    "$",
    "é",
    "a b",
    "'",
    "a'); DROP TABLE documents; --",
    "\\",
    "\n",
    "%s",
    ":a",
    "?",
    "documents.body",
]


def indexes_of(collection: Collection) -> frozenset[str]:
    there = collection._engine.all_indexes()
    assert all(there.values())
    return frozenset(name for name in there if name.startswith(index_prefix(collection._id)))


def rows(collection: Collection, condition: str, *values: Any) -> list[int]:
    """The numbers of the documents that fulfil a condition of the engine's."""
    engine = collection._engine
    sql = f"SELECT id FROM documents WHERE collection_id = {engine.json.placeholder} AND {condition}"
    found = engine.all(Prepared(sql, lambda values: values), (collection._id, *values))
    return sorted(int(row[0]) for row in found)


def rank_of(value: Any) -> Rank:
    if value is None or isinstance(value, bool):
        return {None: Rank.NULL, False: Rank.FALSE, True: Rank.TRUE}[value]
    return {int: Rank.NUMBER, float: Rank.NUMBER, str: Rank.STRING, list: Rank.ARRAY, dict: Rank.OBJECT}[type(value)]


# --- which indexes there are ------------------------------------------------------------------------------------------


def test_the_indexes_of_a_consistent_policy_are_there_when_the_call_returns(store: Store) -> None:
    orders = store.create_collection("orders", indexing=IndexingPolicy(paths=("/status", ("/status", "/total"))))
    assert indexes_of(orders) == named(orders._id, orders.indexing).keys()
    assert len(indexes_of(orders)) == 2


def test_configuring_makes_and_removes_indexes(store: Store) -> None:
    orders = store.create_collection("orders")
    orders.create({"id": "a", "total": 1})
    assert indexes_of(orders) == frozenset()
    for paths in [("/total",), ("/total", "/status"), ("/status",), ()]:
        orders.configure(indexing=IndexingPolicy(paths=paths))
        assert indexes_of(orders) == named(orders._id, orders.indexing).keys()
        assert len(indexes_of(orders)) == len(paths)


def test_a_configuration_that_is_taken_back_leaves_the_indexes_as_they_were(store: Store) -> None:
    orders = store.create_collection("orders", indexing=IndexingPolicy(paths=("/status",)))
    before = indexes_of(orders)
    with undone(store):
        orders.configure(indexing=IndexingPolicy(paths=("/total",)))
        assert indexes_of(orders) != before
    assert indexes_of(orders) == before
    assert orders.indexing.paths == ("/status",)


def test_lazy_indexes_are_built_by_the_vacuum(store: Store) -> None:
    orders = store.create_collection("orders", indexing=IndexingPolicy("lazy", ("/status", "/total")))
    orders.create({"id": "a", "status": "open"})
    assert indexes_of(orders) == frozenset()
    assert store.vacuum().finished
    assert indexes_of(orders) == named(orders._id, orders.indexing).keys()
    orders.configure(indexing=IndexingPolicy("lazy", ("/total",)))
    assert indexes_of(orders) == named(orders._id, orders.indexing).keys()


def test_from_lazy_to_consistent_builds_what_is_missing(store: Store) -> None:
    orders = store.create_collection("orders", indexing=IndexingPolicy("lazy", ("/status",)))
    orders.configure(indexing=IndexingPolicy("consistent", ("/status",)))
    assert len(indexes_of(orders)) == 1


def test_lazy_indexes_are_built_in_the_background(path: Path) -> None:
    with ttlstore.open(path) as store:
        orders = store.create_collection("orders", indexing=IndexingPolicy("lazy", ("/status",)))
        thread = store._background._thread if store._background else None
        assert thread is not None
        while not indexes_of(orders):
            assert thread.is_alive()
            thread.join(0.005)


@on_sqlite
def test_changing_ttl_leaves_the_indexes_alone(store: Store) -> None:
    orders = store.create_collection("orders", indexing=IndexingPolicy(paths=("/status",)))
    engine = store._engine
    version = engine.one(Prepared("PRAGMA schema_version", lambda values: values))
    for default_ttl in (10, -1, None):
        orders.configure(default_ttl=default_ttl)
    now = engine.one(Prepared("PRAGMA schema_version", lambda values: values))
    assert now == version


def test_the_indexes_of_a_dropped_collection_go_with_its_documents(store: Store) -> None:
    orders = store.create_collection("orders", indexing=IndexingPolicy(paths=("/status",)))
    others = store.create_collection("others", indexing=IndexingPolicy(paths=("/status",)))
    orders.create({"id": "a", "status": "open"})
    store.delete_collection("orders")
    assert store.vacuum().finished
    assert indexes_of(orders) == frozenset()
    assert len(indexes_of(others)) == 1


def test_indexes_that_are_missing_are_built_by_the_vacuum_whatever_the_mode(store: Store) -> None:
    """As after a migration that had to make the table anew."""
    orders = store.create_collection("orders", indexing=IndexingPolicy(paths=("/status",)))
    with store.transaction():
        store._engine.define(f"DROP INDEX {next(iter(indexes_of(orders)))}")
    assert store.vacuum().finished
    assert len(indexes_of(orders)) == 1


def test_an_index_holds_the_documents_of_its_collection_only(file_store: Store, path: Path) -> None:
    orders = file_store.create_collection("orders", indexing=IndexingPolicy(paths=("/status",)))
    orders.create_many({"id": str(number), "status": "open"} for number in range(10))
    others = file_store.create_collection("others")
    others.create_many({"id": str(number), "status": "open"} for number in range(20))
    (name,) = indexes_of(orders)
    by_hand = sqlite3.connect(path)
    count = f"SELECT count(*) FROM documents INDEXED BY {name} WHERE collection_id = {orders._id}"
    assert by_hand.execute(count).fetchone() == (10,)
    with pytest.raises(sqlite3.OperationalError, match="no query solution"):
        by_hand.execute(f"SELECT count(*) FROM documents INDEXED BY {name} WHERE collection_id = {others._id}")
    by_hand.close()


EITHER = "c.status = 'open' OR c.total = 1"


def either(orders: Collection) -> list[str]:
    return [found["id"] for found in orders.query(EITHER)]


def test_what_two_indexes_find_comes_once_and_in_order(store: Store, clock: FakeClock) -> None:
    orders = store.create_collection("orders", default_ttl=10, indexing=IndexingPolicy(paths=("/status", "/total")))
    orders.create({"id": "total", "total": 1})
    orders.create({"id": "both", "status": "open", "total": 1})
    orders.create({"id": "neither", "status": "paid", "total": 2})
    orders.create({"id": "status", "status": "open", "ttl": 5})
    assert len(orders.explain(EITHER).indexes) == 2
    assert either(orders) == ["total", "both", "status"]
    assert list(orders.query(f"SELECT VALUE COUNT(1) FROM c WHERE {EITHER}")) == [3]
    clock.advance(5)
    assert either(orders) == ["total", "both"]
    first = orders.query_page(EITHER, size=1)
    second = orders.query_page(EITHER, size=1, token=first.token)
    assert [found["id"] for found in first.items + second.items] == ["total", "both"]
    assert second.token is None


def test_an_or_needs_the_indexes_of_both_sides(store: Store) -> None:
    orders = store.create_collection("orders", indexing=IndexingPolicy("lazy", ("/status", "/total")))
    orders.create_many([{"id": "a", "status": "open"}, {"id": "b", "total": 1}, {"id": "c"}])
    (first, _) = named(orders._id, orders.indexing)
    assert (orders.explain(EITHER).indexes, either(orders)) == ((), ["a", "b"])
    assert store.vacuum().finished
    assert (orders.explain(EITHER).indexes, either(orders)) == ((("/status",), ("/total",)), ["a", "b"])
    with store.transaction():
        store._engine.define(f"DROP INDEX {first}")
    assert (orders.explain(EITHER).indexes, either(orders)) == ((), ["a", "b"])


def test_an_index_of_an_or_that_was_removed_meanwhile_is_not_missed(store: Store) -> None:
    orders = store.create_collection("orders", indexing=IndexingPolicy(paths=("/status", "/total")))
    orders.create_many([{"id": "a", "status": "open"}, {"id": "b", "total": 1}, {"id": "c"}])
    with store.transaction():
        store._engine.define(f"DROP INDEX {list(named(orders._id, orders.indexing))[1]}")
    assert either(orders) == ["a", "b"]


def test_a_long_or_is_answered_as_well(store: Store) -> None:
    """As many sides as a statement takes are served by indexes, and more are done without."""
    orders = store.create_collection("orders", indexing=IndexingPolicy(paths=("/status", ("/status", "/total"))))
    orders.create_many({"id": str(number), "status": f"s{number}", "total": number} for number in range(300))
    for sides, served in ((40, True), (200, False)):
        text = " OR ".join(f"(c.status = 's{number}' AND c.total >= {number})" for number in range(sides))
        assert bool(orders.explain(text).indexes) is served
        assert [found["total"] for found in orders.query(text)] == list(range(sides))


# --- names and values that SQL must not misread -----------------------------------------------------------------------


@pytest.mark.parametrize("name", AWKWARD_NAMES)
def test_a_property_of_any_name_is_indexed_and_found(store: Store, name: str) -> None:
    path = "/" + name.replace("~", "~0").replace("/", "~1")
    collection = store.create_collection("c", indexing=IndexingPolicy(paths=(path, ("/number", path))))
    collection.create_many({"id": str(number), "number": number, name: f"v{number}\0"} for number in range(3))
    assert len(indexes_of(collection)) == 2
    json = store._engine.json
    for indexed in (True, False):
        condition = json.compare((name,), Rank.STRING, ">=", indexed=indexed)
        assert rows(collection, condition, "v1") == [1, 2]


def test_a_name_with_a_quotation_mark_cannot_be_indexed_and_the_error_says_so() -> None:
    with pytest.raises(ttlstore.InvalidCollection, match="quotation mark"):
        IndexingPolicy(paths=('/a"b',))


@pytest.mark.parametrize("path", ["/a\0b", "", "a", "/", "/a//b", "/\ud800", f"/{'a' * 500}"])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(ttlstore.InvalidCollection):
        IndexingPolicy(paths=(path,))


@pytest.fixture
def mixed(store: Store) -> Collection:
    """One document for each of the values, and one without."""
    collection = store.create_collection("mixed", indexing=IndexingPolicy(paths=("/v",)))
    documents = [{"id": str(number), "number": number, "v": value} for number, value in enumerate(VALUES)]
    random.Random(1).shuffle(documents)
    collection.create_many([*documents, {"id": "-1", "number": -1}])
    return collection


@pytest.mark.parametrize("indexed", [True, False])
def test_a_type_is_told_from_every_other(mixed: Collection, indexed: bool) -> None:
    json = mixed._engine.json
    assert rows(mixed, json.is_a(("v",), (Rank.UNDEFINED,), indexed=indexed)) == [-1]
    for rank in list(Rank)[1:]:
        expected = [number for number, value in enumerate(VALUES) if rank_of(value) is rank]
        assert rows(mixed, json.is_a(("v",), (rank,), indexed=indexed)) == expected
        assert rows(mixed, json.is_a(("v",), (rank, Rank.UNDEFINED), indexed=indexed)) == [-1, *expected]


OPERATORS: dict[Operator, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("rank", [Rank.NUMBER, Rank.STRING])
def test_values_compare_with_their_own_type_alone_and_exactly(mixed: Collection, rank: Rank, indexed: bool) -> None:
    json = mixed._engine.json
    path: JsonPath = ("v",)
    same = [(number, value) for number, value in enumerate(VALUES) if rank_of(value) is rank]
    for _, constant in same:
        if "\0" in str(constant):
            continue
        for sign, holds in OPERATORS.items():
            expected = [number for number, value in same if holds(value, constant)]
            condition = json.compare(path, rank, sign, indexed=indexed)
            assert rows(mixed, condition, constant) == expected, (sign, constant)
    expected = [number for number, value in same if value in (1, 0.5, "x", "a", "")]
    constants = [1, 0.5, 7] if rank is Rank.NUMBER else ["x", "a", ""]
    assert rows(mixed, json.among(path, rank, 3, indexed=indexed), *constants) == expected


def test_strings_without_escapes_are_equal_to_themselves_alone(mixed: Collection) -> None:
    condition = mixed._engine.json.equals_plain(("v",))
    for constant in VALUES:
        if isinstance(constant, str) and kind_of(constant).plain:
            assert rows(mixed, condition, constant) == [VALUES.index(constant)]


def test_the_keys_put_values_of_all_types_in_order(mixed: Collection) -> None:
    def key(number: int) -> tuple[Any, ...]:
        value = VALUES[number] if number >= 0 else None
        rank = rank_of(value) if number >= 0 else Rank.UNDEFINED
        return rank, value if rank in (Rank.NUMBER, Rank.STRING) else 0

    json = mixed._engine.json
    keys = ", ".join(json.keys(("v",)))
    sql = f"SELECT id FROM documents WHERE collection_id = {json.placeholder} ORDER BY {keys}"
    found = [int(row[0]) for row in mixed._engine.all(Prepared(sql, lambda values: values), (mixed._id,))]
    assert sorted(found) == list(range(-1, len(VALUES)))
    assert [key(number) for number in found] == sorted(map(key, found))


# --- living with migrations, checks and backups -----------------------------------------------------------------------


def test_the_migration_check_takes_no_index_for_drift(path: Path) -> None:
    with ttlstore.open(path) as store:
        store.create_collection("orders", indexing=IndexingPolicy(paths=("/status", ("/a", "/b"))))
    assert "No new upgrade operations detected" in alembic(path, "check")


def test_a_schema_with_indexes_goes_down_and_up(path: Path) -> None:
    with ttlstore.open(path) as store:
        store.create_collection("orders", indexing=IndexingPolicy(paths=("/status",)))
    alembic(path, "downgrade", "base")
    alembic(path, "upgrade", "head")
    with ttlstore.open(path) as store:
        orders = store.create_collection("orders", indexing=IndexingPolicy(paths=("/status",)))
        assert len(indexes_of(orders)) == 1
        assert store.check() == []


@on_sqlite
def test_a_backup_has_the_indexes_too(store: Store, tmp_path: Path, clock: FakeClock) -> None:
    orders = store.create_collection("orders", indexing=IndexingPolicy(paths=("/status",)))
    orders.create_many({"id": str(number), "status": "open"} for number in range(10))
    store.backup(tmp_path / "copy.db")
    with ttlstore.open(tmp_path / "copy.db", clock=clock, vacuum=False) as copy:
        assert indexes_of(copy.collection("orders")) == indexes_of(orders)
        assert copy.check() == []


def test_a_damaged_document_is_reported_as_damage(path: Path) -> None:
    with ttlstore.open(path, vacuum=False) as store:
        orders = store.create_collection("orders")
        orders.create({"id": "a", "status": "open"})
        by_hand = sqlite3.connect(path)
        by_hand.execute('UPDATE documents SET body = \'{"id": "a"\'')
        by_hand.commit()
        by_hand.close()
        with pytest.raises(ttlstore.StoreCorrupt, match="malformed"):
            rows(orders, store._engine.json.compare(("status",), Rank.STRING, "=", indexed=False), "open")
