"""Indexes on PostgreSQL are made while others write; what is cut short harms nobody, and is mended."""

from collections.abc import Iterator

import psycopg
import pytest

import ttlstore
from tests.postgres import Server, end_connections, waiting
from tests.undone import undone
from ttlstore import Collection, ConnectionLost, IndexingPolicy, Store, StoreBusy
from ttlstore.engine.json import create_index
from ttlstore.testing import FakeClock

BY_TOTAL = IndexingPolicy(paths=("/total",))
NO_INDEX = IndexingPolicy()
MAKING = "query LIKE 'CREATE INDEX CONCURRENTLY%'"


@pytest.fixture
def reader(postgres: Server) -> Iterator[psycopg.Connection]:
    """Somebody whose transaction is older than the index, so that the index has to wait for its end."""
    with psycopg.connect(postgres.url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("SELECT 1")
        yield connection


@pytest.fixture
def store(postgres_url: str, clock: FakeClock) -> Iterator[Store]:
    with ttlstore.open(postgres_url, clock=clock, vacuum=False) as store:
        yield store
        assert store.check() == []


@pytest.fixture
def orders(store: Store) -> Collection:
    orders = store.create_collection("orders")
    orders.create_many({"id": str(number), "total": number} for number in range(100))
    return orders


def states(store: Store) -> list[bool | None]:
    """Of the indexes that are there: whether they can be used."""
    return list(store._engine.all_indexes().values())


def kill_the_making(orders: Collection, postgres: Server, reader: psycopg.Connection) -> None:
    """Of an index by total, when it is nearly done."""
    with waiting(postgres, lambda: orders.configure(indexing=BY_TOTAL)) as made:
        end_connections(postgres, MAKING)
        with pytest.raises(ConnectionLost):
            made.result()
    reader.rollback()


def test_others_write_while_an_index_is_made(
    store: Store, orders: Collection, postgres: Server, reader: psycopg.Connection
) -> None:
    with waiting(postgres, lambda: orders.configure(indexing=BY_TOTAL)) as made:
        assert states(store) == [None]
        assert store.vacuum().finished  # that is nothing to be mended
        orders.create({"id": "new", "total": 1000})
        orders.upsert({"id": "7", "total": 1000})
        orders.delete("8")
        assert orders.indexing == NO_INDEX
        assert orders.explain("c.total = 7").index is None
        assert store.check() == []  # it is not damaged, only not ready
        reader.rollback()
        made.result()
    assert orders.indexing == BY_TOTAL
    assert states(store) == [True]
    assert orders.explain("c.total = 7").index == ("/total",)
    assert [found["id"] for found in orders.query("c.total = 1000")] == ["7", "new"]
    assert list(orders.query("c.total = 8")) == []


def test_others_write_while_a_collection_with_indexes_is_made(
    store: Store, orders: Collection, postgres: Server, reader: psycopg.Connection
) -> None:
    with waiting(postgres, lambda: store.create_collection("bills", indexing=BY_TOTAL)) as made:
        orders.create({"id": "new"})
        store.collection("bills").create({"id": "first", "total": 1})
        reader.rollback()
        bills = made.result()
    assert states(store) == [True]
    assert [found["id"] for found in bills.query("c.total = 1")] == ["first"]


def test_others_write_while_an_index_is_removed(
    store: Store, orders: Collection, postgres: Server, reader: psycopg.Connection
) -> None:
    reader.rollback()
    orders.configure(indexing=BY_TOTAL)
    reader.execute(f"LOCK {store._engine._address.schema}.documents IN ACCESS SHARE MODE")  # type: ignore[attr-defined]
    with waiting(postgres, lambda: orders.configure(indexing=NO_INDEX)) as removed:
        orders.create({"id": "new", "total": 1000})
        reader.rollback()
        removed.result()
    assert states(store) == []


def test_an_index_whose_making_was_killed_is_used_for_nothing_and_made_again_by_the_next_call(
    store: Store, orders: Collection, postgres: Server, reader: psycopg.Connection
) -> None:
    kill_the_making(orders, postgres, reader)
    assert states(store) == [False]
    (problem,) = store.check()
    assert "is not valid" in problem
    assert orders.indexing == NO_INDEX
    orders.create({"id": "new", "total": 1000})
    assert [found["id"] for found in orders.query("c.total = 1000")] == ["new"]
    orders.configure(indexing=BY_TOTAL)
    assert states(store) == [True]
    assert orders.explain("c.total = 7").index == ("/total",)


@pytest.mark.parametrize("policy", [NO_INDEX, IndexingPolicy("lazy", ("/total",))])
def test_the_vacuum_mends_what_was_killed(
    store: Store, orders: Collection, postgres: Server, reader: psycopg.Connection, policy: IndexingPolicy
) -> None:
    kill_the_making(orders, postgres, reader)
    if policy.paths:
        orders.configure(indexing=policy)
    assert states(store) == [False]
    assert store.vacuum().finished
    assert states(store) == [True] * len(policy.paths)


def test_a_lazy_index_is_made_while_others_write(
    store: Store, orders: Collection, postgres: Server, reader: psycopg.Connection
) -> None:
    orders.configure(indexing=IndexingPolicy("lazy", ("/total",)))
    with waiting(postgres, store.vacuum) as made:
        orders.create({"id": "new", "total": 1000})
        assert orders.explain("c.total = 7").index is None
        reader.rollback()
        assert made.result().finished
    assert orders.explain("c.total = 7").index == ("/total",)


def test_an_index_does_not_wait_for_ever_and_leaves_nothing(
    orders: Collection, postgres_url: str, clock: FakeClock, reader: psycopg.Connection
) -> None:
    with ttlstore.open(postgres_url, clock=clock, vacuum=False, busy_timeout=0.1) as hasty:
        with pytest.raises(StoreBusy, match="waits for the transactions that were open"):
            hasty.collection("orders").configure(indexing=BY_TOTAL)
        assert states(hasty) == []
    assert orders.indexing == NO_INDEX


def test_a_collection_whose_indexes_must_wait_is_there_and_indexed_by_the_vacuum(
    store: Store, postgres_url: str, clock: FakeClock, reader: psycopg.Connection
) -> None:
    """Others may have stored something in it before it shows that an index cannot be made now."""
    with ttlstore.open(postgres_url, clock=clock, vacuum=False, busy_timeout=0.1) as hasty:
        with pytest.raises(StoreBusy, match="the collection 'bills' is there, and the vacuum will index it"):
            hasty.create_collection("bills", indexing=BY_TOTAL)
        hasty.collection("bills").create({"id": "a", "total": 1})
        assert hasty.ensure_collection("notes", indexing=BY_TOTAL).count() == 0
        reader.rollback()
        assert [found["id"] for found in hasty.collection("bills").query("c.total = 1")] == ["a"]
    assert store.vacuum().finished
    assert states(store) == [True, True]


def test_rows_are_deleted_while_an_index_has_to_wait(
    orders: Collection, postgres_url: str, clock: FakeClock, reader: psycopg.Connection
) -> None:
    orders.configure(default_ttl=60, indexing=IndexingPolicy("lazy", ("/total",)))
    documents = len(orders)
    clock.advance(60)
    with ttlstore.open(postgres_url, clock=clock, vacuum=False, busy_timeout=0.1) as hasty:
        report = hasty.vacuum()
        assert (report.deleted, report.finished) == (documents, False)
    reader.rollback()
    with ttlstore.open(postgres_url, clock=clock, vacuum=False) as patient:
        assert patient.vacuum().finished
        assert states(patient) == [True]


def test_indexes_are_made_by_one_process_at_a_time(
    store: Store, orders: Collection, postgres: Server, postgres_url: str, clock: FakeClock, reader: psycopg.Connection
) -> None:
    with (
        ttlstore.open(postgres_url, clock=clock, vacuum=False, busy_timeout=0.1) as other,
        waiting(postgres, lambda: orders.configure(indexing=BY_TOTAL)) as made,
    ):
        with pytest.raises(StoreBusy, match="another process makes or removes an index"):
            other.collection("orders").configure(indexing=IndexingPolicy(paths=("/status",)))
        reader.rollback()
        made.result()
        other.collection("orders").configure(indexing=IndexingPolicy(paths=("/status",)))
    assert states(store) == [True]
    assert orders.explain("c.status = 'open'").index == ("/status",)


def test_in_a_transaction_an_index_is_made_and_taken_back_with_it(store: Store, orders: Collection) -> None:
    with undone(store):
        orders.configure(indexing=BY_TOTAL)
        assert states(store) == [True]
    assert states(store) == []
    assert orders.indexing == NO_INDEX


def test_an_index_that_no_policy_names_is_removed_by_the_vacuum(store: Store, orders: Collection) -> None:
    engine = store._engine
    with engine.writing():
        for statement in create_index(engine.json, f"documents_of_{orders._id}_stray", orders._id, (("total",),)):
            engine.define(statement)
    assert store.vacuum().finished
    assert states(store) == []
    assert engine.all_indexes() == {}


def test_what_was_made_for_an_index_that_never_came_is_removed_by_the_vacuum(store: Store, orders: Collection) -> None:
    engine = store._engine
    name = f"documents_of_{orders._id}_stray"
    with engine.writing():
        *functions, _ = create_index(engine.json, name, orders._id, (("total",),))
        for statement in functions:
            engine.define(statement)
    assert engine.all_indexes() == {name: False}
    assert store.vacuum().finished
    assert engine.all_indexes() == {}
