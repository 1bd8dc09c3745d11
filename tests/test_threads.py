"""One store, used by many threads."""

import gc
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import ttlstore
from tests.files import open_files
from tests.kinds import on_sqlite
from ttlstore import (
    Collection,
    DocumentExists,
    DocumentNotFound,
    IndexingPolicy,
    PreconditionFailed,
    Store,
    StoreBusy,
    StoreClosed,
)
from ttlstore.testing import FakeClock

THREADS = 8


def together(work: Callable[[int], Any], count: int = THREADS) -> list[Any]:
    """Run in threads that begin at the same moment; what each returned or raised."""
    start = threading.Barrier(count)

    def run(n: int) -> Any:
        start.wait(30)
        try:
            return work(n)
        except Exception as error:
            return error

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


@on_sqlite
def test_what_is_read_in_the_middle_of_a_read_does_not_disturb_it(store: Store) -> None:
    """As a signal's handler or a finalizer may do."""
    collection = store.create_collection("c")
    collection.create_many([{"id": "a"}, {"id": "b"}])
    inside = []

    def read_once(frame: object, event: str, function: Any) -> None:
        if event == "c_return" and getattr(function, "__name__", "") == "execute":
            sys.setprofile(None)
            inside.append(collection.read("b")["id"])

    collection.read("a")  # whatever is made for the first read is there
    sys.setprofile(read_once)
    try:
        assert collection.read("a")["id"] == "a"
    finally:
        sys.setprofile(None)
    assert inside == ["b"]
    assert collection.read("a")["id"] == "a"


@pytest.fixture
def counter(store: Store) -> Collection:
    collection = store.create_collection("c")
    collection.create({"id": "n", "value": 0})
    return collection


def test_threads_count_together_without_losing_one(counter: Collection) -> None:
    def count(_: int) -> None:
        for _ in range(25):
            counter.patch("n", [{"op": "incr", "path": "/value", "value": 1}])

    assert together(count) == [None] * THREADS
    assert counter.read("n")["value"] == 25 * THREADS


def test_of_threads_that_create_the_same_document_one_does(counter: Collection) -> None:
    for round in range(10):
        results = together(lambda n, key=str(round): counter.create({"id": key, "by": n}))  # type: ignore[misc]
        made = [result for result in results if isinstance(result, dict)]
        assert len(made) == 1
        assert all(isinstance(result, DocumentExists) for result in results if not isinstance(result, dict))
        assert counter.read(str(round)) == made[0]


def test_of_threads_that_replace_the_same_version_one_does(counter: Collection) -> None:
    etag = counter.read("n")["_etag"]
    results = together(lambda n: counter.replace({"id": "n", "by": n}, if_match=etag))
    assert sum(isinstance(result, dict) for result in results) == 1
    assert sum(isinstance(result, PreconditionFailed) for result in results) == THREADS - 1


def test_of_threads_that_create_over_an_expired_document_one_does(sessions: Collection, clock: FakeClock) -> None:
    for _ in range(10):
        sessions.upsert({"id": "a"})
        clock.advance(10)
        results = together(lambda n: sessions.create({"id": "a", "by": n}))
        assert sum(isinstance(result, dict) for result in results) == 1
        assert sessions.count() == 1


def test_of_threads_that_ensure_a_collection_all_get_the_same(store: Store) -> None:
    made = together(lambda n: store.ensure_collection("new", default_ttl=n + 1))
    assert len({collection.default_ttl for collection in made}) == 1
    assert len(store.list_collections()) == 1


def test_threads_read_write_and_iterate_at_once(counter: Collection) -> None:
    def work(n: int) -> int:
        for round in range(20):
            counter.upsert({"id": f"{n}-{round}"})
            assert counter.read(f"{n}-{round}")["id"] == f"{n}-{round}"
        return sum(document["id"].startswith(f"{n}-") for document in counter)

    assert together(work) == [20] * THREADS
    assert counter.count() == 20 * THREADS + 1


def test_transactions_of_threads_do_not_mix(store: Store, counter: Collection) -> None:
    def work(n: int) -> None:
        for _ in range(10):
            with store.transaction():
                value = counter.read("n")["value"]
                counter.upsert({"id": f"{n}"})
                counter.replace({"id": "n", "value": value + 1})

    assert together(work) == [None] * THREADS
    assert counter.read("n")["value"] == 10 * THREADS


def test_a_thread_that_waits_too_long_for_a_transaction_is_told(target: str) -> None:
    with ttlstore.open(target, busy_timeout=0.05) as store:
        collection = store.create_collection("c")
        with store.transaction():
            collection.create({"id": "a"})
            (result,) = together(lambda _: collection.create({"id": "a"}), 1)
        assert isinstance(result, StoreBusy)
        assert [document["id"] for document in collection] == ["a"]


# --- a writer that waited looks at the clock again --------------------------------------------------------------------


@on_sqlite
def test_a_create_that_waited_does_not_meet_what_expired_meanwhile(
    store: Store, sessions: Collection, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions.create({"id": "a"})
    waits = threading.Event()
    attempt = store._engine.attempt

    def telling(statement: Any, values: Any) -> int | None:
        changed = attempt(statement, values)
        if changed is None:
            waits.set()
        return changed

    monkeypatch.setattr(store._engine, "attempt", telling)
    created: list[Any] = []
    other = threading.Thread(target=lambda: created.append(sessions.create({"id": "a", "by": "the other"})))
    with store.transaction():
        other.start()
        assert waits.wait(30)
        clock.advance(10)
    other.join()
    assert sessions.read("a") == created[0]
    assert sessions.expiry("a").seconds_left == 10


@on_sqlite
def test_a_touch_that_waited_does_not_revive_what_expired_meanwhile(
    store: Store, sessions: Collection, clock: FakeClock
) -> None:
    sessions.create({"id": "a"})
    results: list[Any] = []
    other = threading.Thread(target=lambda: results.extend(together(lambda _: sessions.touch("a"), 1)))
    with store.transaction():
        other.start()
        clock.advance(10)
    other.join()
    assert isinstance(results[0], DocumentNotFound)


# --- threads that end, and stores that are closed ---------------------------------------------------------------------


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="files that are open are counted in /proc")
def test_threads_that_end_give_their_connections_back(file_store: Store, path: Path) -> None:
    collection = file_store.create_collection("c")
    collection.create({"id": "a"})
    before = open_files(path)
    assert before > 0
    for _ in range(5):
        assert all(together(lambda _: collection.read("a")))
    gc.collect()
    assert open_files(path) <= before + THREADS, "SQLite keeps one for each that were open at once, to use it again"
    file_store.close()
    assert open_files(path) == 0


def test_indexes_that_are_added_at_once_are_all_there(store: Store, archive: Collection) -> None:
    def add(number: int) -> None:
        archive.configure(indexing=lambda policy: IndexingPolicy(policy.mode, (*policy.paths, f"/p{number}")))

    assert together(add) == [None] * THREADS
    assert sorted(map(str, archive.indexing.paths)) == [f"/p{number}" for number in range(THREADS)]
    assert store.check() == []


def test_closing_does_not_wait_for_a_reader_that_left_off_in_the_middle(target: str) -> None:
    store = ttlstore.open(target, vacuum=False, busy_timeout=3600)
    numbers = store.create_collection("numbers")
    numbers.create_many({"id": str(number)} for number in range(1000))
    reading = numbers.snapshot()
    assert next(reading)["id"] == "0"
    with ThreadPoolExecutor(1) as pool:
        closed = pool.submit(store.close)
        try:
            closed.result(timeout=30)
        finally:
            del reading  # or what waits for it would not end


def test_closing_while_other_threads_work_gives_store_closed_and_nothing_worse(target: str) -> None:
    for round in range(5):
        store = ttlstore.open(target)
        collection = store.ensure_collection("c")
        collection.upsert_many({"id": str(n)} for n in range(100))
        working = threading.Barrier(THREADS + 1)

        def work(n: int, store: Store = store, collection: Collection = collection, working: Any = working) -> None:
            def steps() -> Iterator[Any]:
                yield collection.read("1")
                yield collection.upsert({"id": f"{n}"})
                yield list(collection)
                yield collection.count()
                yield collection.upsert_many({"id": str(m)} for m in range(50))
                yield collection.patch("1", [{"op": "set", "path": "/x", "value": n}])
                yield store.check()
                with store.transaction():
                    yield collection.touch("1")
                    yield collection.create({"n": n})

            list(steps())
            working.wait(30)
            while True:
                list(steps())

        def close(_: int, store: Store = store, working: Any = working) -> None:
            working.wait(30)
            store.close()

        results = together(lambda n: close(n) if n == THREADS else work(n), THREADS + 1)
        assert results[-1] is None
        assert {type(result) for result in results[:-1]} == {StoreClosed}, (round, results)
    if target != ":memory:":
        with ttlstore.open(target) as store:
            assert store.check() == []


@pytest.mark.parametrize(
    "use",
    [
        lambda store, it: it.create({"id": "b"}),
        lambda store, it: it.read("a"),
        lambda store, it: it.get("a"),
        lambda store, it: it.upsert({"id": "a"}),
        lambda store, it: it.replace({"id": "a"}),
        lambda store, it: it.patch("a", []),
        lambda store, it: it.touch("a"),
        lambda store, it: it.delete("a"),
        lambda store, it: it.create_many([{"id": "b"}]),
        lambda store, it: it.upsert_many([{"id": "b"}]),
        lambda store, it: it.count(),
        lambda store, it: len(it),
        lambda store, it: list(it),
        lambda store, it: "a" in it,
        lambda store, it: it.expiry("a"),
        lambda store, it: it.default_ttl,
        lambda store, it: it.indexing,
        lambda store, it: it.configure(default_ttl=5),
        lambda store, it: store.create_collection("d"),
        lambda store, it: store.ensure_collection("c"),
        lambda store, it: store.collection("c"),
        lambda store, it: store.list_collections(),
        lambda store, it: store.delete_collection("c"),
        lambda store, it: store.check(),
        lambda store, it: store.backup("/nowhere/else"),
        lambda store, it: store.transaction().__enter__(),
    ],
)
def test_after_close_every_call_says_so_in_every_thread(store: Store, use: Callable[[Store, Collection], Any]) -> None:
    collection = store.create_collection("c")
    collection.create({"id": "a"})
    store.close()
    store.close()
    with pytest.raises(StoreClosed, match=f"{re.escape(store.name)} is closed"):
        use(store, collection)
    (elsewhere,) = together(lambda _: use(store, collection), 1)
    assert isinstance(elsewhere, StoreClosed)


def test_a_store_in_memory_outlives_the_thread_that_opened_it(clock: FakeClock) -> None:
    (store,) = together(lambda _: ttlstore.open(":memory:", clock=clock, vacuum=False), 1)
    together(lambda _: store.create_collection("c").create({"id": "a"}), 1)
    gc.collect()
    assert store.collection("c").read("a")
    store.close()
