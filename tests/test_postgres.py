"""What PostgreSQL brings with it: a clock of its own, locks on rows, connections that are lost."""

import os
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

import ttlstore
from tests.postgres import Server, end_connections, server_time, waiting
from tests.undone import undone
from ttlstore import (
    Collection,
    ConnectionLost,
    IndexingPolicy,
    InvalidDocument,
    Store,
    StoreBusy,
    StoreFailed,
    StoreReadOnly,
    TtlStoreError,
)
from ttlstore.engine.postgres import connections
from ttlstore.testing import FakeClock

LONG_AGO = 1000  # milliseconds


@pytest.fixture
def sessions(live: Store) -> Collection:
    return live.create_collection("sessions", default_ttl=3600)


# --- one clock ------------------------------------------------------------------------------------------------------


def test_documents_are_dated_by_the_server_whatever_time_it_is_here(
    live: Store, sessions: Collection, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = server_time(postgres)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    written = sessions.create({"id": "a"})
    sessions.create_many({"id": str(number)} for number in range(3))
    after = server_time(postgres)
    assert int(before) <= written["_ts"] <= after
    assert sessions.count() == len(list(sessions)) == 4
    left = sessions.expiry("a").seconds_left
    assert left is not None
    assert 3600 - (server_time(postgres) - before) <= left <= 3600
    assert before <= live.now() <= server_time(postgres) + 1


def test_what_a_write_returns_is_what_is_stored(live: Store, sessions: Collection) -> None:
    assert sessions.create({"id": "a"}) == sessions.read("a")
    assert sessions.upsert({"id": "a", "n": 1}) == sessions.read("a")
    assert sessions.replace({"id": "a", "n": 2}) == sessions.read("a")
    assert sessions.patch("a", [{"op": "incr", "path": "/n", "value": 1}]) == sessions.read("a")
    assert sessions.touch("a") == sessions.read("a")


def test_a_document_is_gone_at_its_time_by_the_server(sessions: Collection, by_hand: psycopg.Connection) -> None:
    sessions.create({"id": "own", "ttl": 60})
    sessions.create({"id": "inherits"})
    for milliseconds_left, there in [(30_000, True), (-1, False)]:
        by_hand.execute(
            "UPDATE documents SET checksum = checksum, _ts = floor(extract(epoch FROM clock_timestamp()) * 1000) "
            "- coalesce(ttl, 3600) * 1000 + %s",
            (milliseconds_left,),
        )
        by_hand.commit()
        assert (sessions.get("own") is not None, sessions.get("inherits") is not None) == (there, there)
        assert sessions.count() == len(list(sessions)) == (2 if there else 0)
    assert sessions.create({"id": "own"}), "in the place of the one that expired"


def test_a_store_can_change_between_the_servers_clock_and_another(postgres_url: str, clock: FakeClock) -> None:
    with ttlstore.open(postgres_url, vacuum=False) as store:
        written = store.create_collection("c").create({"id": "a"})
    with ttlstore.open(postgres_url, clock=clock, vacuum=False) as store:
        assert store.collection("c").read("a") == written
        store.collection("c").create_many([{"id": "b"}, {"id": "c"}])
        written = store.collection("c").touch("a")
    with ttlstore.open(postgres_url, vacuum=False) as store:
        assert store.collection("c").read("a") == written
        assert len(list(store.collection("c"))) == 3
        assert store.check() == []


# --- the vacuum -----------------------------------------------------------------------------------------------------


def test_the_vacuum_deletes_nothing_that_a_change_of_the_default_is_about_to_revive(
    live: Store, sessions: Collection, by_hand: psycopg.Connection
) -> None:
    sessions.configure(default_ttl=1)
    sessions.create({"id": "a"})
    by_hand.execute("UPDATE documents SET _ts = _ts - 10000")
    by_hand.commit()
    by_hand.execute("UPDATE collections SET default_ttl = 3600")
    report = live.vacuum(max_seconds=0.01)
    assert (report.deleted, report.finished) == (0, False)
    by_hand.commit()
    assert live.vacuum().finished
    assert sessions.read("a")


def test_the_vacuum_leaves_what_others_hold_to_the_next_one(
    live: Store, sessions: Collection, by_hand: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ttlstore.vacuum.HELD_SECONDS", 0.1)
    sessions.create_many({"id": id} for id in "abc")
    by_hand.execute("UPDATE documents SET _ts = _ts - 10000000")
    by_hand.commit()
    by_hand.execute("SELECT FROM documents WHERE id = 'b' FOR SHARE")
    report = live.vacuum()
    assert (report.deleted, report.finished) == (2, False)
    by_hand.commit()
    report = live.vacuum()
    assert (report.deleted, report.finished) == (1, True)


def test_the_vacuum_passes_over_rows_that_another_holds(
    live: Store, sessions: Collection, by_hand: psycopg.Connection
) -> None:
    sessions.create_many({"id": str(number)} for number in range(5))
    by_hand.execute("UPDATE documents SET _ts = %s", (LONG_AGO,))
    by_hand.commit()
    by_hand.execute("SELECT * FROM documents WHERE id = '3' FOR UPDATE")
    assert live.vacuum(max_seconds=0.1).deleted == 4
    by_hand.rollback()
    assert live.vacuum().deleted == 1


def test_the_vacuum_finds_what_is_due_by_an_index_and_in_order(
    live: Store, sessions: Collection, postgres: Server, postgres_url: str
) -> None:
    sessions.create_many({"id": str(number), **({"ttl": 60} if number % 2 else {})} for number in range(3000))
    postgres.admin.execute(f"ANALYZE {postgres_url.rpartition('=')[2]}.documents")
    for name, index in (("delete_own_due", "documents_by_expiry"), ("delete_inherited_due", "documents_by_write")):
        plan = "\n".join(live._engine.steps(getattr(live._statements, name), (sessions._id, 0, 0, 0, 16, 2**20)))
        assert f"using {index}" in plan
        assert "Sort" not in plan
        assert "Seq Scan on documents" not in plan


# --- transactions ---------------------------------------------------------------------------------------------------


def test_what_is_read_in_a_transaction_is_held_until_its_end(
    live: Store, sessions: Collection, postgres: Server
) -> None:
    sessions.create({"id": "a", "n": 0})
    transaction = live.transaction()
    transaction.__enter__()
    document = sessions.read("a")
    with waiting(postgres, lambda: sessions.patch("a", [{"op": "incr", "path": "/n", "value": 1}])) as result:
        sessions.replace({**document, "n": 10})
        transaction.__exit__(None, None, None)
    assert result.result()["n"] == 11


def test_others_write_while_a_transaction_is_open(live: Store, sessions: Collection) -> None:
    with live.transaction(), ThreadPoolExecutor(1) as pool:
        sessions.create({"id": "a"})
        pool.submit(sessions.create, {"id": "b"}).result(30)
    assert {document["id"] for document in sessions} == {"a", "b"}


def test_after_an_error_of_the_database_a_transaction_cannot_go_on(
    postgres_url: str, by_hand: psycopg.Connection
) -> None:
    with ttlstore.open(postgres_url, vacuum=False, busy_timeout=0.01) as store:
        collection = store.create_collection("c")
        collection.create({"id": "held"})
        by_hand.execute("UPDATE documents SET etag = 'by hand'")

        def go_on() -> None:
            with store.transaction():
                collection.create({"id": "a"})
                with pytest.raises(StoreBusy, match=r"0\.01 s"):
                    collection.delete("held")
                with pytest.raises(StoreFailed, match="leave its block"):
                    collection.create({"id": "b"})

        with pytest.raises(StoreFailed, match="leave its block"):
            go_on()
        by_hand.rollback()
        assert [document["id"] for document in collection] == ["held"]


def test_a_savepoint_survives_an_error_of_the_database_inside_it(
    postgres_url: str, by_hand: psycopg.Connection
) -> None:
    with ttlstore.open(postgres_url, vacuum=False, busy_timeout=0.01) as store:
        collection = store.create_collection("c")
        collection.create({"id": "held"})
        by_hand.execute("UPDATE documents SET etag = 'by hand'")
        with store.transaction():
            collection.create({"id": "a"})
            with pytest.raises(StoreBusy), store.transaction():
                collection.delete("held")
            collection.create({"id": "b"})
        by_hand.rollback()
        assert [document["id"] for document in collection] == ["held", "a", "b"]


def test_a_key_that_is_too_long_for_an_index_is_refused_as_that(live: Store) -> None:
    orders = live.create_collection("orders", partition_key="/customer")
    noise = random.Random(1).randbytes(4000).hex()  # which cannot be packed
    with pytest.raises(InvalidDocument, match="too long"):
        orders.create({"id": "a", "customer": noise})
    assert orders.create({"id": "a", "customer": "x" * 4000})


# --- indexes --------------------------------------------------------------------------------------------------------


def functions_of(postgres: Server, postgres_url: str) -> int:
    found = "SELECT count(*) FROM pg_proc WHERE pronamespace = %s::regnamespace"
    row = postgres.admin.execute(found, (postgres_url.rpartition("=")[2],)).fetchone()
    assert row is not None
    return int(row[0])


def test_an_index_over_many_paths_can_be_made_and_serves_a_query(
    live: Store, postgres: Server, postgres_url: str
) -> None:
    paths = ("/customer/id", "/it's 100%", "/total", "/shipped/to/street", "/shipped/to/town")
    orders = live.create_collection("orders", indexing=IndexingPolicy(paths=(paths,)))
    orders.create_many({"customer": {"id": str(n % 100)}, "it's 100%": n, "total": -n} for n in range(3000))
    postgres.admin.execute(f"ANALYZE {postgres_url.rpartition('=')[2]}.documents")
    query = "SELECT VALUE c.total FROM c WHERE c.customer.id = '7' ORDER BY c[\"it's 100%\"]"
    assert list(orders.query(query)) == [-n for n in range(7, 3000, 100)]
    assert "Index Scan using documents_of_" in "\n".join(orders.explain(query).steps)
    there = functions_of(postgres, postgres_url)
    orders.configure(indexing=IndexingPolicy())
    assert functions_of(postgres, postgres_url) == there - (3 * len(paths) + 1)


# --- connections ----------------------------------------------------------------------------------------------------


def test_a_connection_that_was_lost_while_nobody_used_it_is_not_noticed(sessions: Collection, postgres: Server) -> None:
    sessions.create({"id": "a"})
    end_connections(postgres)
    assert sessions.read("a")
    end_connections(postgres)
    assert sessions.touch("a")


def test_a_connection_that_is_lost_during_a_call_is_an_error_and_the_next_call_works(
    sessions: Collection, postgres: Server, by_hand: psycopg.Connection
) -> None:
    sessions.create({"id": "a"})
    by_hand.execute("UPDATE documents SET etag = 'by hand'")
    with waiting(postgres, lambda: sessions.touch("a")) as result:
        end_connections(postgres, "wait_event_type = 'Lock'")
    error = result.exception()
    assert isinstance(error, ConnectionLost)
    assert isinstance(error, ConnectionError)
    assert "may be written or not" in str(error)
    by_hand.rollback()
    assert sessions.touch("a")


def test_a_transaction_whose_connection_is_lost_leaves_nothing(
    live: Store, sessions: Collection, postgres: Server
) -> None:

    def write() -> None:
        with live.transaction():
            sessions.create({"id": "a"})
            end_connections(postgres)
            sessions.create({"id": "b"})

    with pytest.raises(ConnectionLost):
        write()
    assert list(sessions) == []


def test_a_connection_that_is_lost_inside_a_savepoint_that_is_undone_is_told_at_the_end(
    live: Store, sessions: Collection, postgres: Server
) -> None:

    def write() -> None:
        with live.transaction():
            sessions.create({"id": "a"})
            with undone(live):
                end_connections(postgres)

    with pytest.raises(ConnectionLost, match="nothing of it was written"):
        write()
    assert list(sessions) == []


def test_threads_share_a_few_connections_and_wait_for_one(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 2)
    with ttlstore.open(postgres_url, vacuum=False, busy_timeout=1.0) as store:
        collection = store.create_collection("c")
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda number: collection.create({"id": str(number)}), range(40)))
        assert len(store._engine._connections._all) <= 2  # type: ignore[attr-defined]
        inside, over = threading.Barrier(3), threading.Event()

        def hold(_: int) -> None:
            with store.transaction():
                inside.wait(30)
                over.wait(30)

        with ThreadPoolExecutor(2) as pool:
            held = pool.map(hold, range(2))
            inside.wait(30)
            try:
                with pytest.raises(StoreBusy, match="all 2 connections"):
                    collection.read("1")
            finally:
                over.set()
            list(held)
        assert collection.read("1")


def test_iterators_that_are_not_finished_keep_their_connections(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 2)
    with ttlstore.open(postgres_url, vacuum=False, busy_timeout=0.1) as store:
        collection = store.create_collection("c")
        collection.create_many({"id": str(number)} for number in range(1000))
        begun = [collection.snapshot() for _ in range(2)]
        assert [next(each)["id"] for each in begun] == ["0", "0"]
        with pytest.raises(StoreBusy, match="iterators that were begun and neither finished nor closed"):
            collection.read("1")
        assert len(list(begun.pop())) == 999
        assert collection.read("1")
        assert len(list(begun.pop())) == 999, "which goes on meanwhile"


def test_a_child_that_is_forked_while_a_query_is_read_leaves_it_to_its_parent(live: Store) -> None:
    collection = live.create_collection("c")
    collection.create_many({"id": str(number), "pad": "x" * 3000} for number in range(3000))
    begun: Any = collection.query("SELECT VALUE c.id FROM c")
    assert next(begun) == "0"
    for end, harmed in ((begun.close, False), (lambda: list(begun), True)):
        child = os.fork()
        if not child:
            try:
                end()
            except TtlStoreError:
                os._exit(0 if harmed else 1)
            os._exit(1 if harmed else 0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(list(begun)) == 2999


def test_a_child_forked_inside_a_transaction_cannot_harm_it(live: Store, sessions: Collection) -> None:
    with live.transaction():
        sessions.create({"id": "a"})
        child = os.fork()
        if not child:
            try:
                sessions.create({"id": "child"})
            except StoreFailed as error:
                os._exit(0 if "forked inside a transaction" in str(error) else 2)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        sessions.create({"id": "b"})
    assert [document["id"] for document in sessions] == ["a", "b"]


# --- reading only ---------------------------------------------------------------------------------------------------


def test_opened_for_reading_only_it_reads_and_refuses_to_write(
    live: Store, sessions: Collection, postgres_url: str
) -> None:
    sessions.create({"id": "a"})
    with ttlstore.open(postgres_url, read_only=True) as reader:
        collection = reader.collection("sessions")
        assert collection.read("a") == sessions.read("a")
        assert collection.count() == len(list(collection)) == len(list(collection.snapshot())) == 1
        assert reader.stats().live_documents == 1
        with reader.transaction():
            assert collection.read("a")
        for write in (
            lambda: collection.create({"id": "b"}),
            lambda: collection.touch("a"),
            lambda: collection.delete("a"),
            lambda: collection.create_many([{"id": "b"}]),
            lambda: collection.configure(default_ttl=1),
            lambda: reader.create_collection("another"),
            lambda: reader.delete_collection("sessions"),
        ):
            with pytest.raises(StoreReadOnly, match="cannot be written"):
                write()
    assert sessions.count() == 1


@pytest.mark.parametrize(
    ("gone", "again", "columns"),
    [
        (
            "ALTER TABLE documents DROP CONSTRAINT documents_key",
            "ALTER TABLE documents ADD CONSTRAINT documents_key UNIQUE (collection_id, id, partition)",
            "collection_id, id, partition",
        ),
        (
            "DROP INDEX documents_in_order",
            "CREATE INDEX documents_in_order ON documents (collection_id, seq)",
            "collection_id, seq",
        ),
    ],
)
def test_a_check_tells_of_an_index_that_a_restored_store_lacks(
    live: Store, by_hand: psycopg.Connection, gone: str, again: str, columns: str
) -> None:
    by_hand.execute(gone.encode())
    by_hand.commit()
    (problem,) = live.check()
    assert problem.startswith(f"there is no index over documents ({columns}): ")
    by_hand.execute(again.encode())
    by_hand.commit()
