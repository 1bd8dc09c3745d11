"""What finds a few rows each time is found in any order, and then sorted: quicker than in the order of an index."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

import ttlstore
from ttlstore import Collection, IndexingPolicy, Store
from ttlstore.engine.postgres.engine import FEW_ROWS, PostgresEngine
from ttlstore.engine.postgres.few import CACHED_STATEMENTS, FoundFew

pytestmark = pytest.mark.parametrize("kind", ["postgres"], indirect=True)

EQUAL = "c.status = @status"
IN_ANY_ORDER = "AS MATERIALIZED"

Ask = Callable[..., tuple[list[str], list[bool]]]


@pytest.fixture
def orders(store: Store) -> Collection:
    return store.create_collection("orders", default_ttl=3600, indexing=IndexingPolicy(paths=("/status", "/n")))


@pytest.fixture
def ask(orders: Collection, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """The ids that a query finds, and of each statement that was run for it whether that was in any order."""
    run, ways = PostgresEngine._run, list[bool]()

    def noticed(self: PostgresEngine, connection: Any, sql: str, values: Any) -> Any:
        if " documents " in sql:
            ways.append(IN_ANY_ORDER in sql)
        return run(self, connection, sql, values)

    def ask(text: str = EQUAL, **parameters: Any) -> tuple[list[str], list[bool]]:
        ways.clear()
        with monkeypatch.context() as patched:
            patched.setattr(PostgresEngine, "_run", noticed)
            return [found["id"] for found in orders.query(text, parameters)], list(ways)

    return ask


def fill(orders: Collection, status: Any, number: int, ids: Iterator[int]) -> list[str]:
    """So many documents, and their ids in the order in which they were first written."""
    documents = [{"id": str(next(ids)), "status": status, "n": 1} for _ in range(number)]
    orders.create_many(documents)
    return [str(document["id"]) for document in documents]


def test_from_the_second_time_on(orders: Collection, ask: Ask) -> None:
    ids = fill(orders, "open", 20, count())
    assert ask(status="open") == (ids, [False])
    assert ask(status="open") == (ids, [True])
    assert ask(status="lost") == ([], [True])


@pytest.mark.parametrize("number", [FEW_ROWS, FEW_ROWS + 1])
def test_but_not_again_once_it_was_more(orders: Collection, ask: Ask, number: int) -> None:
    numbers = count()
    few, many = fill(orders, "open", 3, numbers), fill(orders, "paid", number, numbers)
    ask(status="open")
    assert ask(status="paid") == (many, [True])
    assert ask(status="open") == (few, [number == FEW_ROWS])
    assert ask(status="open") == (few, [number == FEW_ROWS])


def test_numbers_are_found_so_too_and_what_expired_is_not(orders: Collection, ask: Ask, clock: Any) -> None:
    ids = fill(orders, 7, 5, count())
    orders.patch("3", [{"op": "set", "path": "/ttl", "value": 10}])
    ask(status=7)
    clock.advance(9.999)
    assert ask(status=7) == (ids, [True])
    clock.advance(0.001)
    assert ask(status=7) == (["0", "1", "2", "4"], [True])
    orders.configure(default_ttl=10)
    assert ask(status=7) == ([], [True])
    orders.configure(default_ttl=None)
    assert ask(status=7) == (ids, [True])


def test_only_where_all_is_wanted_in_the_order_of_writing(orders: Collection, ask: Ask) -> None:
    fill(orders, "open", 5, count())
    for text in (
        f"SELECT TOP 3 * FROM c WHERE {EQUAL}",
        f"SELECT * FROM c WHERE {EQUAL} ORDER BY c.n",
        "c.status >= @status",
        "c.id = '1' AND c.other = @status",
    ):
        for _ in range(3):
            assert True not in ask(text, status="open")[1]


def test_in_the_order_of_writing_however_they_are_found(target: str, clock: Any) -> None:
    without = "-c%20enable_indexscan%3Doff%20-c%20enable_bitmapscan%3Doff%20-c%20enable_indexonlyscan%3Doff"
    with ttlstore.open(f"{target}&options={without}", clock=clock, vacuum=False) as store:
        orders = store.create_collection("orders", indexing=IndexingPolicy(paths=("/status",)))
        ids = fill(orders, "open", 30, count())
        for id in reversed(ids[::2]):
            orders.upsert({"id": id, "status": "open", "n": 2})  # a new row, behind the others
        for _ in range(2):
            assert [found["id"] for found in orders.query(EQUAL, {"status": "open"})] == ids


def test_a_change_of_settings_meanwhile_is_noticed(store: Store, target: str, clock: Any, ask: Ask) -> None:
    ids = fill(store.collection("orders"), "open", 5, count())
    ask(status="open")
    with ttlstore.open(target, clock=clock, vacuum=False) as other:
        other.collection("orders").configure(indexing=IndexingPolicy(paths=("/n",)))
        assert ask(status="open")[0] == ids
        other.delete_collection("orders")
    with pytest.raises(ttlstore.CollectionNotFound):
        ask(status="open")


def test_what_is_known_of_statements_is_bounded(kind: str) -> None:
    found = FoundFew()
    for number in range(CACHED_STATEMENTS * 2 + 1):
        found.learn(str(number), True)
        found.learn(f"more {number}", False)
    assert len(found._few) <= CACHED_STATEMENTS
    assert len(found._more) <= CACHED_STATEMENTS
    assert found.always(str(CACHED_STATEMENTS * 2))
    assert not found.always("0")
