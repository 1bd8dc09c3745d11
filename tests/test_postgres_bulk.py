"""Bulk writes on PostgreSQL: the server writes a batch while the next is made, and neither can harm the other."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import psycopg
import pytest

import ttlstore
from tests.postgres import Server, end_connections, moments_later, waiting, waits_for_a_lock
from ttlstore import (
    Collection,
    CollectionNotFound,
    ConnectionLost,
    DocumentExists,
    IndexingPolicy,
    InvalidDocument,
    Store,
    StoreBusy,
)
from ttlstore.batches import BATCH_ROWS
from ttlstore.document import Encoded
from ttlstore.engine.postgres import bulk, clock, connections
from ttlstore.engine.postgres.engine import COPIED_ROWS, PostgresEngine

PATIENCE_SECONDS = 20.0  # for a machine that is busy with other things

both = pytest.mark.parametrize("verb", ["create_many", "upsert_many"])


@pytest.fixture
def sessions(live: Store) -> Collection:
    return live.create_collection("sessions", default_ttl=3600)


def batch_and(then: Callable[[], Any]) -> Iterator[dict[str, Any]]:
    """A whole batch; while that is under way, something happens; then one more document."""
    for number in range(BATCH_ROWS):
        yield {"id": str(number)}
    then()
    yield {"id": "last"}


def interrupted(*values: Any) -> bytes:
    raise KeyboardInterrupt


def connections_of(store: Store) -> list[Any]:
    return list(store._engine._connections._all)  # type: ignore[attr-defined]


@both
def test_a_batch_is_stored_however_long_the_next_one_takes_and_can_be_changed(sessions: Collection, verb: str) -> None:
    def change() -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while sessions.count() < BATCH_ROWS:
            assert time.monotonic() < deadline, "the batch waits for the next one"
        sessions.upsert({"id": "0", "changed": True})

    assert getattr(sessions, verb)(batch_and(change)) == BATCH_ROWS + 1
    assert sessions.read("0")["changed"] is True


@both
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_a_batch_that_was_under_way_when_a_call_was_interrupted_is_stored(
    live: Store, sessions: Collection, verb: str, error: type[BaseException]
) -> None:
    def interrupt() -> None:
        raise error

    sessions.count()
    before = connections_of(live)
    with pytest.raises(error):
        getattr(sessions, verb)(batch_and(interrupt))
    assert sessions.count() == BATCH_ROWS
    assert connections_of(live) == before  # and its connection is of use


@both
def test_a_call_that_is_interrupted_before_all_is_made_writes_nothing_of_the_batch(
    live: Store, sessions: Collection, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions.count()
    before = connections_of(live)
    monkeypatch.setattr(bulk, "_lines" if verb == "create_many" else "dump_texts", interrupted)
    with pytest.raises(KeyboardInterrupt):
        getattr(sessions, verb)({"id": str(number)} for number in range(COPIED_ROWS))
    assert sessions.count() == 0
    assert connections_of(live) == before


@both
def test_a_call_that_is_interrupted_before_all_is_sent_writes_the_batch_or_nothing_of_it(
    live: Store, sessions: Collection, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = [{"id": str(number), "text": "x" * 4000} for number in range(BATCH_ROWS)]  # more than a socket takes
    sessions.count()
    before = connections_of(live)
    await_server = connections.Connection.await_server
    interrupts = iter([KeyboardInterrupt()])

    def awaiting(self: Any, seconds: float | None = None, *, to_write: bool = False) -> bool:
        if to_write:
            for interrupt in interrupts:
                raise interrupt
        return await_server(self, seconds, to_write=to_write)

    monkeypatch.setattr(connections.Connection, "await_server", awaiting)
    with pytest.raises(KeyboardInterrupt):
        getattr(sessions, verb)(documents)
    assert sessions.count() in (0, BATCH_ROWS)
    assert connections_of(live) == before


def test_a_transaction_survives_a_copy_that_is_interrupted_inside_it(
    live: Store, sessions: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "_lines", interrupted)
    with live.transaction():
        sessions.create({"id": "before"})
        with pytest.raises(KeyboardInterrupt):
            sessions.create_many({"id": str(number)} for number in range(COPIED_ROWS))
        sessions.create({"id": "after"})
    assert [document["id"] for document in sessions] == ["before", "after"]


def test_a_transaction_goes_on_after_documents_that_exist(live: Store, sessions: Collection) -> None:
    sessions.create({"id": "7"})
    with live.transaction():
        with pytest.raises(DocumentExists, match=r"document 7 .*nothing of this call"):
            sessions.create_many({"id": str(number)} for number in range(COPIED_ROWS))
        assert sessions.create_many({"id": f"other {number}"} for number in range(COPIED_ROWS)) == COPIED_ROWS
    assert sessions.count() == 1 + COPIED_ROWS


def noise(characters: int) -> str:
    """A text that cannot be packed."""
    return random.Random(1).randbytes(characters // 2).hex()


@pytest.fixture(params=["a partition key", "an index"])
def refusing(live: Store, request: pytest.FixtureRequest) -> tuple[Collection, dict[str, Any]]:
    """A collection, and what makes a document one that only the server refuses."""
    if request.param == "a partition key":
        return live.create_collection("refusing", partition_key="/p"), {"p": noise(9000)}
    letters = random.Random(1)
    long = {f"p{n}": "".join(chr(letters.randrange(0x20000, 0x2A000)) for _ in range(100)) for n in range(8)}
    paths = tuple(f"/{name}" for name in long)
    return live.create_collection("refusing", indexing=IndexingPolicy(paths=(paths,))), long


@both
@pytest.mark.parametrize("bad", [0, 7, COPIED_ROWS + 7, BATCH_ROWS + 7])
def test_a_document_that_the_server_refuses_is_named_by_its_position_and_what_came_before_is_stored(
    refusing: tuple[Collection, dict[str, Any]], verb: str, bad: int
) -> None:
    collection, refused = refusing
    documents = [{"id": str(number), "p": "short"} for number in range(bad + 5)]
    documents[bad] |= refused
    documents[bad + 2] |= refused
    with pytest.raises(
        InvalidDocument, match=rf"^document {bad} \(.* too long.*; the {bad} before it are stored$"
    ) as error:
        getattr(collection, verb)(documents)
    assert error.value.position == bad
    assert [document["id"] for document in collection] == [str(number) for number in range(bad)]


@both
@pytest.mark.parametrize("bad", [7, BATCH_ROWS + 7])
def test_a_transaction_goes_on_after_a_document_that_the_server_refuses(
    live: Store, refusing: tuple[Collection, dict[str, Any]], verb: str, bad: int
) -> None:
    collection, refused = refusing
    documents = [{"id": str(number), "p": "short"} for number in range(bad + 5)]
    documents[bad] |= refused
    with live.transaction():
        collection.create({"id": "before", "p": "short"})
        with pytest.raises(InvalidDocument, match=rf"^document {bad} \(.*; nothing of this call is stored$"):
            getattr(collection, verb)(documents)
        assert getattr(collection, verb)([{"id": "after", "p": "short"}]) == 1
    assert [document["id"] for document in collection] == ["before", "after"]


def barring(by_hand: psycopg.Connection, id: str) -> None:
    """Have whoever writes this document wait."""
    by_hand.execute(
        "INSERT INTO documents (collection_id, id, partition, _ts, etag, size, checksum, body) "
        "SELECT id, %s, '', 0, '', 0, 0, '' FROM collections",
        (id,),
    )


@both
def test_a_connection_that_is_lost_under_way_is_told_with_what_is_stored(
    sessions: Collection, verb: str, postgres: Server, by_hand: psycopg.Connection
) -> None:
    barring(by_hand, str(BATCH_ROWS))  # the second batch
    documents = [{"id": str(number)} for number in range(3 * BATCH_ROWS)]
    with waiting(postgres, lambda: getattr(sessions, verb)(documents)) as result:
        end_connections(postgres, "wait_event_type = 'Lock'")
    error = result.exception()
    assert isinstance(error, ConnectionLost)
    assert error.__notes__ == [f"after {BATCH_ROWS} documents: the {BATCH_ROWS} before it are stored"]
    by_hand.rollback()
    assert sessions.count() == BATCH_ROWS


@both
def test_a_connection_that_is_lost_while_documents_are_made_is_told_and_the_next_call_works(
    sessions: Collection, verb: str, postgres: Server, by_hand: psycopg.Connection
) -> None:
    def lose() -> None:
        while not waits_for_a_lock(postgres):
            pass
        end_connections(postgres, "wait_event_type = 'Lock'")

    barring(by_hand, "0")
    with pytest.raises(ConnectionLost):
        getattr(sessions, verb)(batch_and(lose))
    by_hand.rollback()
    assert sessions.count() == 0
    assert sessions.upsert_many([{"id": "a"}]) == 1


@both
def test_a_lock_that_is_held_too_long_is_told_and_the_connection_is_of_use(
    postgres_url: str, by_hand: psycopg.Connection, verb: str
) -> None:
    with ttlstore.open(postgres_url, vacuum=False, busy_timeout=0.01) as store:
        collection = store.create_collection("c")
        before = connections_of(store)
        by_hand.execute("SELECT 1 FROM collections FOR UPDATE")
        with pytest.raises(StoreBusy, match=r"0\.01 s"):
            getattr(collection, verb)({"id": str(number)} for number in range(COPIED_ROWS))
        by_hand.rollback()
        assert connections_of(store) == before
        assert getattr(collection, verb)({"id": str(number)} for number in range(COPIED_ROWS)) == COPIED_ROWS


def test_documents_that_had_to_wait_are_dated_by_the_end_of_the_wait(
    sessions: Collection, postgres: Server, by_hand: psycopg.Connection
) -> None:
    by_hand.execute("SELECT 1 FROM collections FOR UPDATE")
    documents = [{"id": str(number)} for number in range(COPIED_ROWS)]
    with waiting(postgres, lambda: sessions.create_many(documents)) as result:
        released = moments_later(postgres)
        by_hand.rollback()
    assert result.result() == COPIED_ROWS
    early = by_hand.execute("SELECT count(*) FROM documents WHERE _ts < %s", (released * 1000,)).fetchone()
    assert early == (0,)


@both
def test_a_collection_that_is_dropped_between_two_batches_takes_no_more(
    live: Store, sessions: Collection, verb: str
) -> None:
    documents = [{"id": str(number)} for number in range(COPIED_ROWS)]

    def dropping() -> Iterator[dict[str, Any]]:
        yield from batch_and(lambda: live.delete_collection("sessions"))
        yield from documents

    with pytest.raises(CollectionNotFound):
        getattr(sessions, verb)(dropping())
    with pytest.raises(CollectionNotFound):
        getattr(sessions, verb)(documents)


@both
def test_a_child_that_is_forked_while_a_batch_is_under_way_leaves_it_to_its_parent(
    sessions: Collection, verb: str
) -> None:
    children: list[int] = []

    def fork() -> None:
        if child := os.fork():
            children.append(child)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    try:
        stored = getattr(sessions, verb)(batch_and(fork))
    except ttlstore.StoreFailed as error:
        os._exit(0 if not children and "forked" in str(error) else 1)
    finally:
        if not children:
            os._exit(2)
    assert stored == sessions.count() == BATCH_ROWS + 1


@both
@pytest.mark.parametrize("most", [1, 4])
def test_bulk_writes_that_read_go_on_however_few_connections_there_are(
    postgres_url: str, verb: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", most)
    everyone = threading.Barrier(4)
    with ttlstore.open(postgres_url, vacuum=False, busy_timeout=PATIENCE_SECONDS) as store:
        collection = store.create_collection("c")

        def reading(writer: int) -> Iterator[dict[str, Any]]:
            for number in range(2 * BATCH_ROWS):
                if number == BATCH_ROWS:
                    with suppress(threading.BrokenBarrierError):
                        everyone.wait(0.5)  # until each has a batch under way, if all can
                    collection.count()
                yield {"id": f"{writer}/{number}"}

        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(lambda writer: getattr(collection, verb)(reading(writer)), range(4))) == (
                [2 * BATCH_ROWS] * 4
            )
        assert collection.count() == 8 * BATCH_ROWS


@both
def test_any_text_is_sent_as_it_is(sessions: Collection, verb: str) -> None:
    odd = [
        "\\",
        "\\N",
        "\\.",
        "a\tb",
        "a\nb",
        "a\rb",
        '"',
        "'",
        "{}",
        "{a,b}",
        "%s",
        "%%",
        "$1",
        "NULL",
        "\x7f",
        "é",
        "𝄞",
    ]
    documents = [{"id": id, "text": id + "\b\0"} for id in odd]
    documents += [{"id": str(number), "text": ""} for number in range(COPIED_ROWS)]
    assert getattr(sessions, verb)(documents) == len(documents)
    assert [(found["id"], found["text"]) for found in sessions] == [(each["id"], each["text"]) for each in documents]


@pytest.mark.parametrize("times", ["once", "twice"])
def test_a_bulk_write_that_met_a_deadlock_is_made_again(
    sessions: Collection, by_hand: psycopg.Connection, postgres: Server, times: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "TRUSTED_SECONDS", 0.0)  # the time is asked for amid the write
    if times == "twice":  # begin where the first deadlock leads to
        monkeypatch.setattr(PostgresEngine, "_at_once", lambda *_: None)
    sessions.create_many([{"id": "a"}, {"id": "b"}])
    by_hand.execute("SET deadlock_timeout = '1min'")  # so that the store is the one that gives way
    by_hand.execute("UPDATE documents SET etag = 'by hand' WHERE id = 'b'")
    with waiting(postgres, lambda: sessions.upsert_many([{"id": "a", "n": 1}, {"id": "b", "n": 1}])) as result:
        by_hand.execute("UPDATE documents SET etag = 'by hand' WHERE id = 'a'")
        by_hand.commit()
    assert result.result() == 2
    assert [document["n"] for document in sessions] == [1, 1]


def test_documents_that_come_twice_in_a_bulk_write_end_as_the_last(sessions: Collection) -> None:
    assert sessions.upsert_many([{"id": "a", "n": 1}, {"id": "b"}, {"id": "a", "n": 2}]) == 3
    assert sessions.read("a")["n"] == 2
    with pytest.raises(DocumentExists, match="document 1 "):
        sessions.create_many([{"id": "c"}, {"id": "c"}])
    assert sessions.count() == 3


def copied(collection: Collection, meanwhile: Callable[[], Any]) -> int:
    """Write a document as a copy does."""
    engine = collection._engine
    row = (*Encoded("a", "", None, b'{"id":"a"}').values(0, "etag"), collection._id)
    with engine.writing():
        return engine.change_many(engine.statements.copy, [row], meanwhile)


def test_a_copy_reads_on_while_the_server_writes(
    sessions: Collection, postgres: Server, by_hand: psycopg.Connection
) -> None:
    by_hand.execute("LOCK TABLE documents IN EXCLUSIVE MODE")

    def once_it_waits() -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not waits_for_a_lock(postgres):
            assert time.monotonic() < deadline, "nothing was sent yet"
        by_hand.rollback()

    assert copied(sessions, once_it_waits) == 1
    assert sessions.read("a")["_etag"] == "etag"


def test_a_copy_that_is_interrupted_while_the_server_writes_leaves_nothing_of_its_batch(sessions: Collection) -> None:
    with pytest.raises(KeyboardInterrupt):
        copied(sessions, interrupted)
    assert sessions.count() == 0
    assert copied(sessions, lambda: None) == 1
    assert copied(sessions, lambda: None) == 0, "it is there already"


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no such signals")
@pytest.mark.parametrize("verb", ["create", "create_many", "upsert_many"])
def test_what_a_signal_interrupts_while_it_waits_is_not_done_afterwards(
    sessions: Collection, by_hand: psycopg.Connection, postgres: Server, verb: str
) -> None:
    def ring(*_: object) -> None:
        raise TimeoutError

    by_hand.execute(
        "INSERT INTO documents (collection_id, id, partition, _ts, etag, size, checksum, body) "
        "SELECT id, '0', '', 0, 'e', 2, 0, '{}' FROM collections"
    )
    documents = [{"id": str(number)} for number in range(100)]
    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(TimeoutError):
            getattr(sessions, verb)(documents[0] if verb == "create" else documents)
    finally:
        signal.signal(signal.SIGALRM, before)
    at_work = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'ttlstore' AND state = 'active'"
    assert postgres.admin.execute(at_work).fetchone() == (0,)
    by_hand.rollback()
    assert sessions.count() == 0
    assert sessions.create_many(documents) == 100
