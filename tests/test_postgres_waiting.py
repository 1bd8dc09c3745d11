"""Calls that have to wait for a row on PostgreSQL: what holds when they have it counts, not what held before."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import psycopg
import pytest

from tests.postgres import Server, moments_later, server_time, waiting
from ttlstore import Collection, DocumentExists, DocumentNotFound, PreconditionFailed, Store

LONG_AGO = 1000  # milliseconds
SECONDS_LEFT = 0.3  # enough to begin to wait
KEPT_WAITING = 0.6  # seconds: longer than what is taken for no wait at all


@pytest.fixture
def sessions(live: Store) -> Collection:
    return live.create_collection("sessions", default_ttl=3600)


HOLD = {
    "holds it": "SELECT 1 FROM documents FOR UPDATE",
    "takes its change back": "UPDATE documents SET etag = 'other'",
}
another = pytest.mark.parametrize("hold", HOLD.values(), ids=[*HOLD])
"""What another transaction does with the row before it is rolled back."""


def expires_while_waiting(
    sessions: Collection, by_hand: psycopg.Connection, postgres: Server, hold: str, action: Callable[[], Any]
) -> Any:
    """How a call ends that finds the document `a` live, has to wait for it, and gets it when it has expired."""
    by_hand.execute(
        "UPDATE documents SET _ts = floor(extract(epoch FROM clock_timestamp()) * 1000) - ttl * 1000 + %s",
        (SECONDS_LEFT * 1000,),
    )
    by_hand.commit()
    by_hand.execute(hold)
    with waiting(postgres, action) as result:
        while sessions.get("a") is not None:
            pass
        by_hand.rollback()
    return result.exception() or result.result()


@another
@pytest.mark.parametrize("verb", ["replace", "replace this version", "upsert this version", "patch", "touch", "delete"])
def test_nothing_that_expired_while_a_call_waited_is_changed(
    sessions: Collection, by_hand: psycopg.Connection, postgres: Server, hold: str, verb: str
) -> None:
    etag = sessions.create({"id": "a", "ttl": 60})["_etag"]
    late = {"id": "a", "late": True}
    calls: dict[str, Callable[[], Any]] = {
        "replace": lambda: sessions.replace(late),
        "replace this version": lambda: sessions.replace(late, if_match=etag),
        "upsert this version": lambda: sessions.upsert(late, if_match=etag),
        "patch": lambda: sessions.patch("a", [{"op": "set", "path": "/late", "value": True}]),
        "touch": lambda: sessions.touch("a"),
        "delete": lambda: sessions.delete("a"),
    }
    refused = PreconditionFailed if verb == "upsert this version" else DocumentNotFound
    assert isinstance(expires_while_waiting(sessions, by_hand, postgres, hold, calls[verb]), refused)
    assert sessions.get("a") is None


@another
def test_what_expired_while_a_transaction_waited_to_read_it_is_gone(
    live: Store, sessions: Collection, by_hand: psycopg.Connection, postgres: Server, hold: str
) -> None:
    sessions.create({"id": "a", "ttl": 60})

    def read() -> Any:
        with live.transaction():
            return sessions.read("a")

    assert isinstance(expires_while_waiting(sessions, by_hand, postgres, hold, read), DocumentNotFound)


@another
@pytest.mark.parametrize("verb", ["create", "upsert"])
def test_what_expired_while_a_call_waited_is_written_over(
    sessions: Collection, by_hand: psycopg.Connection, postgres: Server, hold: str, verb: str
) -> None:
    sessions.create({"id": "a", "ttl": 60})
    late = {"id": "a", "late": True}
    written = expires_while_waiting(sessions, by_hand, postgres, hold, lambda: getattr(sessions, verb)(late))
    assert written == sessions.read("a")


@another
@pytest.mark.parametrize("verb", ["replace", "upsert", "touch"])
def test_a_write_that_waited_counts_from_when_it_has_the_row(
    sessions: Collection, by_hand: psycopg.Connection, postgres: Server, hold: str, verb: str
) -> None:
    sessions.create({"id": "a"})
    by_hand.execute(hold)
    with waiting(postgres, lambda: getattr(sessions, verb)("a" if verb == "touch" else {"id": "a"})) as result:
        released = moments_later(postgres)
        by_hand.rollback()
    assert result.result() == sessions.read("a")
    expires_at = sessions.expiry("a").expires_at
    assert expires_at is not None
    assert expires_at >= released + 3600


def test_a_write_that_waited_does_not_revive_what_expired_meanwhile(
    sessions: Collection, by_hand: psycopg.Connection, postgres: Server
) -> None:
    sessions.create({"id": "a"})
    by_hand.execute("UPDATE documents SET _ts = %s", (LONG_AGO,))
    with waiting(postgres, lambda: sessions.replace({"id": "a", "late": True})) as result:
        by_hand.commit()
    assert isinstance(result.exception(), DocumentNotFound)


def test_a_create_that_waited_takes_the_place_of_what_expired_meanwhile(
    sessions: Collection, by_hand: psycopg.Connection, postgres: Server
) -> None:
    sessions.create({"id": "a"})
    by_hand.execute("UPDATE documents SET _ts = %s", (LONG_AGO,))
    with waiting(postgres, lambda: sessions.create({"id": "a", "late": True})) as result:
        by_hand.commit()
    assert result.result() == sessions.read("a")


def test_a_write_that_waited_counts_from_when_it_was_made(
    sessions: Collection, by_hand: psycopg.Connection, postgres: Server
) -> None:
    sessions.create({"id": "a"})
    by_hand.execute("UPDATE documents SET etag = 'by hand'")
    with waiting(postgres, lambda: sessions.upsert({"id": "a"})) as result:
        released = moments_later(postgres)
        by_hand.commit()
    result.result()
    expires_at = sessions.expiry("a").expires_at
    assert expires_at is not None
    assert expires_at >= released + 3600


NEW: dict[str, Callable[[Collection, list[dict[str, Any]]], Any]] = {
    "create": lambda it, documents: it.create(documents[0]),
    "upsert": lambda it, documents: it.upsert(documents[0]),
    "create a few": lambda it, documents: it.create_many(documents[:5]),
    "create many": lambda it, documents: it.create_many(documents),
    "upsert many": lambda it, documents: it.upsert_many(documents),
}


@pytest.mark.parametrize("inside", [False, True], ids=["", "inside a transaction"])
@pytest.mark.parametrize("write", NEW.values(), ids=NEW.keys())
@pytest.mark.parametrize(
    "hold",
    [
        "INSERT INTO documents (collection_id, id, partition, _ts, etag, size, checksum, body) "
        "SELECT id, 'a0', '', 0, 'e', 2, 0, '{}' FROM collections",
        "LOCK TABLE documents IN SHARE MODE",
    ],
    ids=["its key", "the table"],
)
def test_what_is_new_counts_from_when_it_could_be_written(
    live: Store,
    sessions: Collection,
    by_hand: psycopg.Connection,
    postgres: Server,
    hold: str,
    write: Callable[[Collection, list[dict[str, Any]]], Any],
    inside: bool,
) -> None:
    documents = [{"id": f"a{number}"} for number in range(60)]

    def written() -> Any:
        with live.transaction() if inside else nullcontext():
            return write(sessions, documents)

    by_hand.execute(hold)
    with waiting(postgres, written) as result:
        released = server_time(postgres) + KEPT_WAITING
        while server_time(postgres) < released:
            pass
        by_hand.rollback()
    result.result()
    row = by_hand.execute("SELECT min(_ts), count(*) FROM documents").fetchone()
    assert row is not None
    assert row[0] >= released * 1000
    assert row[1] == sessions.count()
    assert live.check() == []


def test_a_document_that_another_default_hides_while_a_transaction_waits_to_read_it_is_gone(
    live: Store, sessions: Collection, by_hand: psycopg.Connection, postgres: Server
) -> None:
    sessions.create({"id": "a"})
    by_hand.execute("UPDATE documents SET _ts = _ts - 10000")
    by_hand.commit()

    def read() -> Any:
        with live.transaction():
            return sessions.get("a", "gone")

    by_hand.execute("SELECT FROM documents FOR UPDATE")
    by_hand.execute("UPDATE collections SET default_ttl = 1")
    with waiting(postgres, read) as result:
        by_hand.commit()
    assert result.result() == "gone"


@pytest.mark.parametrize("write", ["replace", "touch", "delete"])
def test_a_write_goes_by_the_default_that_is_changed_while_it_waits(
    sessions: Collection, by_hand: psycopg.Connection, postgres: Server, write: str
) -> None:
    sessions.create({"id": "a"})
    by_hand.execute("UPDATE documents SET _ts = _ts - 10000")
    by_hand.commit()
    by_hand.execute("UPDATE collections SET default_ttl = 1")
    with waiting(postgres, lambda: getattr(sessions, write)({"id": "a"} if write == "replace" else "a")) as result:
        by_hand.commit()
    assert isinstance(result.exception(), DocumentNotFound)


def test_a_create_goes_by_the_default_that_is_changed_while_it_waits(
    sessions: Collection, by_hand: psycopg.Connection, postgres: Server
) -> None:
    sessions.configure(default_ttl=1)
    sessions.create({"id": "a"})
    by_hand.execute("UPDATE documents SET _ts = _ts - 10000")
    by_hand.commit()
    by_hand.execute("UPDATE collections SET default_ttl = 3600")
    with waiting(postgres, lambda: sessions.create({"id": "a"})) as result:
        by_hand.commit()
    assert isinstance(result.exception(), DocumentExists)
