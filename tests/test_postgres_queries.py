"""Queries on PostgreSQL: one trip to the server, and never by settings that another has changed."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import ttlstore
from ttlstore import Collection, CollectionNotFound, IndexingPolicy, QueryError, Store
from ttlstore.engine.postgres.engine import PostgresEngine
from ttlstore.testing import FakeClock

BY_STATUS = "SELECT VALUE c.id FROM c WHERE c.status = 'paid' ORDER BY c.id"
HOW_MANY = "SELECT VALUE COUNT(1) FROM c"
Ask = Callable[[Collection], list[Any]]
WAYS: dict[str, Ask] = {
    "rows": lambda orders: list(orders.query(BY_STATUS)),
    "page": lambda orders: orders.query_page(BY_STATUS).items,
    "count": lambda orders: list(orders.query("SELECT VALUE COUNT(1) FROM c WHERE c.status = 'paid'")),
    "count of all": lambda orders: list(orders.query(HOW_MANY)),
    "in a transaction": lambda orders: _in_transaction(orders),
}


def _in_transaction(orders: Collection) -> list[Any]:
    with orders._engine.writing():
        return list(orders.query(BY_STATUS))


@pytest.fixture(params=WAYS)
def ask(request: pytest.FixtureRequest) -> Ask:
    return WAYS[request.param]


@pytest.fixture
def other(postgres_url: str, clock: FakeClock) -> Iterator[Store]:
    """The store as another process has it open."""
    with ttlstore.open(postgres_url, clock=clock, vacuum=False) as store:
        store.create_collection("orders", default_ttl=60, indexing=IndexingPolicy(paths=("/status",))).create_many(
            {"id": str(number), "status": "paid" if number % 2 else "open"} for number in range(6)
        )
        yield store


@pytest.fixture
def orders(other: Store, postgres_url: str, clock: FakeClock, ask: Ask) -> Iterator[Collection]:
    """The collection, whose settings were seen before the other changes them."""
    with ttlstore.open(postgres_url, clock=clock, vacuum=False) as store:
        collection = store.collection("orders")
        ask(collection)
        yield collection


def trips(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> int:
    """How many statements an action sends."""
    sent = []
    run = PostgresEngine._run

    def counted(self: PostgresEngine, *statement: Any) -> Any:
        sent.append(statement)
        return run(self, *statement)

    with monkeypatch.context() as patched:
        patched.setattr(PostgresEngine, "_run", counted)
        action()
    return len(sent)


@pytest.mark.parametrize("mode", ["consistent", "lazy"])
@pytest.mark.parametrize("way", ["rows", "page", "count", "count of all"])
def test_a_query_is_one_trip_to_the_server(other: Store, way: str, mode: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    orders = other.collection("orders")
    orders.configure(indexing=IndexingPolicy(mode, ("/status",)))
    WAYS[way](orders)
    assert trips(monkeypatch, lambda: WAYS[way](orders)) == 1
    orders.delete("1")
    orders.delete("3")
    orders.delete("5")
    assert trips(monkeypatch, lambda: WAYS[way](orders)) == 1  # also if it finds nothing


def test_a_default_that_another_process_has_changed_holds_at_once(
    other: Store, orders: Collection, ask: Ask, clock: FakeClock
) -> None:
    clock.advance(30)
    found = ask(orders)
    assert found not in ([], [0])
    other.collection("orders").configure(default_ttl=10)
    assert ask(orders) in ([], [0])
    other.collection("orders").configure(default_ttl=-1)
    assert ask(orders) == found


def test_paths_that_another_process_has_changed_change_no_result(other: Store, orders: Collection, ask: Ask) -> None:
    found = ask(orders)
    for paths in ((), ("/status", "/total"), (("/status", "/id"),)):
        other.collection("orders").configure(indexing=IndexingPolicy(paths=paths))
        assert ask(orders) == found


def test_the_mode_none_that_another_process_has_set_is_noticed_and_so_is_its_end(
    other: Store, orders: Collection, ask: Ask
) -> None:
    found = ask(orders)
    other.collection("orders").configure(default_ttl=None, indexing="none")
    for _ in range(2):
        with pytest.raises(QueryError, match="indexing mode 'none'"):
            ask(orders)
    other.collection("orders").configure(indexing="consistent")
    assert ask(orders) == found


def test_a_collection_that_another_process_has_dropped_is_gone(other: Store, orders: Collection, ask: Ask) -> None:
    other.delete_collection("orders")
    for _ in range(2):
        with pytest.raises(CollectionNotFound):
            ask(orders)
    other.create_collection("orders")
    with pytest.raises(CollectionNotFound):
        ask(orders)


def test_a_long_result_comes_whole_and_in_order(other: Store) -> None:
    log = other.create_collection("log")
    log.create_many({"id": str(number)} for number in range(1234))
    assert list(log.query("SELECT VALUE c.id FROM c")) == [str(number) for number in range(1234)]
