"""Queries on a collection: live documents only, one moment, the right partition, and what is refused."""

import gc
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

import ttlstore
from ttlstore import Collection, CollectionNotFound, IndexingPolicy, QueryError, Store, StoreClosed
from ttlstore.indexes import named
from ttlstore.testing import FakeClock


@pytest.fixture
def orders(store: Store) -> Collection:
    policy = IndexingPolicy(paths=("/status", "/total", ("/status", "/total")))
    orders = store.create_collection("orders", default_ttl=100, indexing=policy)
    orders.create_many(
        {"id": str(number), "status": "open" if number % 3 else "paid", "total": number} for number in range(10)
    )
    return orders


def ids(results: Any) -> list[str]:
    return [result["id"] for result in results]


def test_documents_come_in_the_order_in_which_they_were_first_written(orders: Collection) -> None:
    orders.upsert({"id": "4", "status": "open", "total": 100})
    assert ids(orders.query("c.total > 7")) == ["4", "8", "9"]


def test_what_comes_back_is_the_document_as_it_is_read(orders: Collection) -> None:
    assert list(orders.query("c.id = '3'")) == [orders.read("3")]
    assert list(orders.query("SELECT * FROM c WHERE c.total = 3")) == [orders.read("3")]


def test_system_properties_can_be_queried(store: Store, clock: FakeClock) -> None:
    notes = store.create_collection("notes", default_ttl=-1)
    first = notes.create({"id": "a", "ttl": 50})
    clock.advance(1.5)
    notes.create({"id": "b"})
    assert ids(notes.query("c._ts >= @now", {"now": int(clock())})) == ["b"]
    assert ids(notes.query("c._ts < @now", {"now": int(clock()) - 0.5})) == ["a"]
    assert ids(notes.query("c._etag = @etag", {"etag": first["_etag"]})) == ["a"]
    assert ids(notes.query("c.ttl > 10")) == ["a"]
    assert ids(notes.query("NOT IS_DEFINED(c.ttl)")) == ["b"]
    assert ids(notes.query("SELECT * FROM c ORDER BY c.ttl DESC")) == ["a", "b"]
    assert ids(notes.query("SELECT * FROM c ORDER BY c._ts DESC")) == ["b", "a"]


# --- only what is live ------------------------------------------------------------------------------------------------


def test_expired_documents_are_in_no_result_before_any_limit(orders: Collection, clock: FakeClock) -> None:
    clock.advance(50)
    orders.create({"id": "new", "status": "open", "total": 5})
    clock.advance(50)
    assert ids(orders.query("SELECT TOP 3 * FROM c")) == ["new"]
    assert ids(orders.query("SELECT TOP 1 * FROM c ORDER BY c.total")) == ["new"]
    assert ids(orders.query("c.status = 'open'")) == ["new"]
    assert ids(orders.query("SELECT * FROM c OFFSET 0 LIMIT 1")) == ["new"]
    assert list(orders.query("SELECT VALUE COUNT(1) FROM c")) == [1]
    assert list(orders.query("SELECT VALUE COUNT(1) FROM c WHERE c.total >= 0")) == [1]
    assert list(orders.query("SELECT VALUE SUM(c.total) FROM c")) == [5]
    assert orders.query_page("c.total >= 0").items == list(orders)


def test_a_change_of_the_default_shows_in_the_next_query(orders: Collection, clock: FakeClock) -> None:
    clock.advance(30)
    orders.configure(default_ttl=10)
    assert list(orders.query("c.total > 7")) == []
    orders.configure(default_ttl=None)
    assert ids(orders.query("c.total > 7")) == ["8", "9"]


def test_a_query_is_of_one_moment(orders: Collection, clock: FakeClock) -> None:
    results = orders.query("SELECT VALUE c.id FROM c")
    assert next(results) == "0"
    orders.delete("9")
    orders.create({"id": "new"})
    clock.advance(1000)
    assert list(results) == [str(number) for number in range(1, 10)]


def test_it_is_the_moment_when_the_first_result_is_asked_for(orders: Collection) -> None:
    results = orders.query("c.total >= 9")
    orders.create({"id": "new", "total": 10})
    assert ids(results) == ["9", "new"]


def test_the_document_in_hand_can_be_changed_and_the_collection_written_while_a_query_runs(orders: Collection) -> None:
    for document in orders.query("c.total >= 0"):
        document["total"] += 100
        orders.replace(document)
    assert list(orders.query("SELECT VALUE SUM(c.total) FROM c")) == [1045]


def test_a_query_inside_a_transaction_sees_what_it_wrote(store: Store, orders: Collection) -> None:
    with store.transaction():
        orders.create({"id": "new", "total": 50})
        assert ids(orders.query("c.total > 9")) == ["new"]
        assert list(orders.query("SELECT VALUE COUNT(1) FROM c WHERE c.total > 8")) == [2]


def test_a_result_that_nobody_reads_to_its_end_is_in_nobodys_way(store: Store, orders: Collection) -> None:
    started = [orders.query("SELECT * FROM c") for _ in range(10)]
    assert {next(results)["id"] for results in started} == {"0"}
    orders.create({"id": "new"})
    orders.configure(default_ttl=1000)
    del started
    gc.collect()
    assert len(list(orders.query("SELECT * FROM c"))) == 11
    store.close()
    with pytest.raises(StoreClosed):
        list(orders.query("SELECT * FROM c"))


def test_indexes_in_a_file_are_made_and_removed_while_a_result_is_read(file_store: Store) -> None:
    orders = file_store.create_collection("orders", indexing=IndexingPolicy(paths=("/total",)))
    orders.create_many({"id": str(number), "total": number} for number in range(5))
    results = orders.query("c.total >= 0")
    assert next(results)["id"] == "0"
    orders.configure(indexing=IndexingPolicy(paths=("/id",)))
    assert ids(results) == ["1", "2", "3", "4"]


def test_threads_query_while_others_write(file_store: Store) -> None:
    counters = file_store.create_collection("counters", indexing=IndexingPolicy(paths=("/n",)))
    counters.create_many({"id": str(number), "n": 1} for number in range(50))
    failures: list[Any] = []
    stopped = threading.Event()

    def read() -> None:
        while not stopped.is_set():
            total = sum(counters.query("SELECT VALUE c.n FROM c WHERE c.n > 0"))
            if total % 50:
                failures.append(total)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for round in range(2, 12):
        with file_store.transaction():
            counters.upsert_many({"id": str(number), "n": round} for number in range(50))
    stopped.set()
    for reader in readers:
        reader.join()
    assert failures == []


# --- partitions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("paths", [(), ("/customer",), (("/customer", "/total"),)])
def test_only_the_partition_that_is_named_is_asked(store: Store, paths: Any) -> None:
    orders = store.create_collection("orders", partition_key="/customer", indexing=IndexingPolicy(paths=paths))
    for customer in ("x", "y", 1, True, None):
        orders.create_many({"id": str(number), "customer": customer, "total": number} for number in range(3))
    for customer in ("x", "y", 1, True, None):
        found = list(orders.query("SELECT * FROM c ORDER BY c.total DESC", partition=customer))
        assert [(document["customer"], document["total"]) for document in found] == [(customer, n) for n in (2, 1, 0)]
        assert list(orders.query("SELECT VALUE COUNT(1) FROM c", partition=customer)) == [3]
        assert orders.query_page("c.total = 1", partition=customer).items == [orders.read("1", partition=customer)]
    assert list(orders.query("SELECT * FROM c", partition="z")) == []
    assert len(list(orders.query("c.total = 1"))) == 5


def test_where_the_id_is_the_partition_key_the_partition_is_a_document(orders: Collection) -> None:
    assert ids(orders.query("SELECT * FROM c", partition="3")) == ["3"]
    assert list(orders.query("SELECT * FROM c", partition=3)) == []


def test_a_parameter_may_be_called_partition(orders: Collection) -> None:
    assert ids(orders.query("c.id = @partition OR c.id = @value", {"partition": "3", "value": "4"}, partition="3")) == [
        "3"
    ]


# --- what is refused --------------------------------------------------------------------------------------------------


def test_without_indexing_a_query_must_ask_for_a_scan(store: Store) -> None:
    log = store.create_collection("log", indexing="none")
    log.create({"id": "a"})
    for ask in (log.query, log.query_page):
        with pytest.raises(QueryError, match=r"'log' has indexing mode 'none': pass scan=True"):
            ask("SELECT * FROM c")
    assert ids(log.query("SELECT * FROM c", scan=True)) == ["a"]
    assert ids(log.query_page("SELECT * FROM c", scan=True).items) == ["a"]
    assert "every document of the collection is read" in str(log.explain("SELECT * FROM c"))


def test_ttl_and_mode_none_exclude_each_other_both_ways(store: Store) -> None:
    log = store.create_collection("log", indexing="none")
    with pytest.raises(ttlstore.InvalidTtl, match="needs an index"):
        log.configure(default_ttl=-1)
    with pytest.raises(ttlstore.InvalidTtl, match="needs an index"):
        store.create_collection("other", default_ttl=1, indexing="none")
    sessions = store.create_collection("sessions", default_ttl=1)
    with pytest.raises(ttlstore.InvalidTtl, match="needs an index"):
        sessions.configure(indexing="none")
    sessions.configure(default_ttl=None, indexing="none")


def test_mistakes_are_told_when_the_query_is_made_not_when_it_is_read(orders: Collection) -> None:
    for text, parameters in [
        ("SELECT", None),
        ("c.a = @p", None),
        ("c.a = 1", {"p": 1}),
        ("SELECT TOP @n * FROM c", {"n": -1}),
    ]:
        with pytest.raises(QueryError):
            orders.query(text, parameters)


def test_a_dropped_collection_says_so(store: Store, orders: Collection) -> None:
    store.delete_collection("orders")
    with pytest.raises(CollectionNotFound):
        orders.query("SELECT * FROM c")
    with pytest.raises(CollectionNotFound):
        orders.query_page("SELECT * FROM c")


def test_a_query_without_a_source_needs_no_documents(orders: Collection) -> None:
    assert list(orders.query("SELECT VALUE 1 + 1")) == [2]
    assert orders.query_page("SELECT VALUE 1 + 1") == ([2], None)
    assert str(orders.explain("SELECT VALUE 1 + 1"))


# --- indexes come and go ----------------------------------------------------------------------------------------------


def test_an_index_that_is_not_there_is_done_without(orders: Collection) -> None:
    engine = orders._engine
    (composite,) = (name for name, paths in named(orders._id, orders.indexing).items() if len(paths) == 2)
    with engine.writing():
        engine.define(f"DROP INDEX {composite}")
    for text, expected in (
        ("SELECT VALUE c.id FROM c WHERE c.status = 'paid' ORDER BY c.total", ["0", "3", "6", "9"]),
        ("SELECT VALUE COUNT(1) FROM c WHERE c.status = 'paid' AND c.total < 4", [2]),
    ):
        assert list(orders.query(text)) == expected
        assert orders.query_page(text).items == expected
        assert orders.explain(text).index != ("/status", "/total")


def test_results_are_exact_before_a_lazy_index_is_built_and_after(store: Store) -> None:
    orders = store.create_collection("orders", indexing=IndexingPolicy("lazy", ("/total",)))
    orders.create_many({"id": str(number), "total": number} for number in range(10))
    assert orders.explain("c.total = 5").index is None
    before = list(orders.query("c.total > 5"))
    assert store.vacuum().finished
    assert orders.explain("c.total = 5").index == ("/total",)
    assert list(orders.query("c.total > 5")) == before


# --- memory -----------------------------------------------------------------------------------------------------------


def test_a_long_result_is_not_held_in_memory(path: Path) -> None:
    with ttlstore.open(path, vacuum=False, durability="normal") as store:
        logs = store.create_collection("logs")
        logs.create_many({"id": str(number), "text": "x" * 2000} for number in range(10_000))
        tracemalloc.start()
        length = sum(len(text) for text in logs.query("SELECT VALUE c.text FROM c WHERE IS_STRING(c.text)"))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert length == 20_000_000
        assert peak < 2_000_000


# --- queries of any size ----------------------------------------------------------------------------------------------


def nested(depth: int) -> str:
    condition = "c.total = 1"
    for level in range(depth):
        condition = f"({condition} {'OR' if level % 2 else 'AND'} c.total >= {-level})"
    return condition


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        (f"c.total IN ({', '.join(map(str, range(5000)))})", 10),
        (f"c.total NOT IN ({', '.join(map(str, range(5, 5000)))})", 5),
        (" OR ".join(f"c.total = {number}" for number in range(3000)), 10),
        (" AND ".join(f"c.total != {number}" for number in range(5, 3000)), 5),
        (" AND ".join(f"c.p{number} != 1" for number in range(90)), 0),
        (" OR ".join(f"c.total IN ({number}, 7)" for number in range(90)), 10),
        (nested(8), 10),
        (nested(15), 10),
        (nested(80), 10),
        (f"NOT IS_DEFINED(c.{'a' * 100_000})", 10),
        (f"NOT IS_DEFINED(c.{'a.' * 98}a)", 10),
        ("NOT IS_DEFINED(c.tags[99999999999999999])", 10),
        ("NOT IS_DEFINED(c.tags[2147483647])", 10),
        (f"c.status != '{'x' * 100_000}'", 10),
    ],
)
def test_a_query_may_be_as_large_as_its_text(orders: Collection, condition: str, found: int) -> None:
    assert len(list(orders.query(f"SELECT * FROM c WHERE {condition}"))) == found
    assert len(orders.query_page(f"SELECT * FROM c WHERE {condition}").items) == found


def test_an_order_may_have_many_parts(orders: Collection) -> None:
    for parts in (16, 200):
        order = ", ".join(["c.status", *(f"c.p{number}" for number in range(parts - 2)), "c.total"])
        assert ids(orders.query(f"SELECT * FROM c ORDER BY {order}"))[:3] == ["1", "2", "4"]
        assert ids(orders.query_page(f"SELECT * FROM c ORDER BY {order}", size=5).items)[:3] == ["1", "2", "4"]
