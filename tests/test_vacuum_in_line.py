"""Somebody who writes without a rest does not keep the vacuum out for ever, and is not held up for long."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import ttlstore
from tests.test_background_vacuum import background, until
from ttlstore import Collection, Store, VacuumPolicy
from ttlstore.testing import FakeClock
from ttlstore.vacuum import BUSY_SECONDS, STARVED_SECONDS, Vacuum


@contextmanager
def writing_without_a_rest(collection: Collection) -> Iterator[None]:
    ended = threading.Event()

    def write() -> None:
        number = 0
        while not ended.is_set():
            collection.upsert({"id": f"kept {number % 1000}", "ttl": -1})
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join()


@pytest.mark.parametrize("in_memory", [False, True])
def test_rows_are_deleted_while_a_thread_writes_without_a_rest(path: Path, in_memory: bool) -> None:
    offset = -3600.0  # seconds
    target = ":memory:" if in_memory else path
    with ttlstore.open(target, durability="normal", clock=lambda: time.time() + offset) as store:
        sessions = store.create_collection("sessions", default_ttl=60)
        sessions.create_many({"id": str(number)} for number in range(3000))
        with writing_without_a_rest(sessions):
            offset = 0.0
            background(store).wake()
            until(lambda: store.stats().vacuum.deleted == 3000)
        assert "kept 0" in sessions


# --- step by step ---------------------------------------------------------------------------------------------------


class NeverFree:
    """The write lock, as one sees it who only looks whether it is free."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock
        self.waits = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if not blocking and not self._lock._is_owned():
            return False
        self.waits += blocking
        taken: bool = self._lock.acquire(blocking, timeout)
        return taken

    def release(self) -> None:
        self._lock.release()


class Busy:
    """A vacuum that never finds the lock free, in a time that passes only while it waits or works."""

    def __init__(self, store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, share: float) -> None:
        self.time = FakeClock(0)
        monkeypatch.setattr("ttlstore.vacuum.time", SimpleNamespace(monotonic=self.time, perf_counter=self.time))
        self.lock = NeverFree(store._engine._connections.write_lock)  # type: ignore[attr-defined]
        monkeypatch.setattr(store._engine._connections, "write_lock", self.lock)  # type: ignore[attr-defined]
        self.vacuum = Vacuum(store._engine, clock, None, VacuumPolicy(busy_share=share))
        self.pauses: list[float] = []
        remove = store._engine.remove

        def remove_in_time(*arguments: Any) -> Any:
            removed = remove(*arguments)
            self.time.advance(0.004 if removed else 0.0)
            return removed

        monkeypatch.setattr(store._engine, "remove", remove_in_time)
        monkeypatch.setattr(store._engine, "others_write", lambda: True)

    def run(self, rows: int) -> None:
        """Until so many are deleted: what else it does can wait until the lock is free."""
        self.vacuum.run(pause=self.pause, stopped=lambda: self.vacuum.stats.deleted >= rows or len(self.pauses) > 1000)

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.time.advance(seconds)


@pytest.fixture
def kind() -> str:
    """Only where one writer keeps the others out."""
    return "file"


def test_it_gives_way_at_first_and_then_waits_in_line(
    store: Store, sessions: Collection, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions.create_many({"id": str(number)} for number in range(10))
    clock.advance(10)
    busy = Busy(store, clock, monkeypatch, 0.05)
    busy.run(10)
    assert busy.vacuum.stats.deleted == 10
    tries = round(STARVED_SECONDS / BUSY_SECONDS)
    assert busy.pauses[:tries] == [BUSY_SECONDS] * tries
    assert BUSY_SECONDS not in busy.pauses[tries:]


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_in_line_it_takes_no_more_than_its_share_of_the_time(
    store: Store, sessions: Collection, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    sessions.create_many({"id": str(number)} for number in range(1000))
    clock.advance(10)
    busy = Busy(store, clock, monkeypatch, share)
    monkeypatch.setattr("ttlstore.vacuum._next_size", lambda rows, taken, largest: rows)
    busy.run(1000)
    assert (busy.vacuum.stats.deleted, busy.vacuum.stats.batches) == (1000, 63)
    assert 0.8 * share < busy.vacuum.stats.seconds / busy.time() <= share * 1.0001


def test_when_nobody_writes_any_more_it_does_not_wait_in_line(
    store: Store, sessions: Collection, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions.create_many({"id": str(number)} for number in range(100))
    clock.advance(10)
    busy = Busy(store, clock, monkeypatch, 0.05)
    monkeypatch.setattr("ttlstore.vacuum._next_size", lambda rows, taken, largest: rows)

    def pause(seconds: float) -> None:
        busy.pause(seconds)
        assert len(busy.pauses) < 1000
        if busy.vacuum.stats.deleted:
            monkeypatch.setattr(store._engine, "others_write", lambda: False)
            monkeypatch.setattr(store._engine._connections, "write_lock", busy.lock._lock)  # type: ignore[attr-defined]

    assert busy.vacuum.run(pause=pause).deleted == 100
    assert busy.lock.waits == 1


# --- the lock -------------------------------------------------------------------------------------------------------


def test_who_waits_in_line_gives_up_in_time_and_holds_nothing(store: Store, sessions: Collection, target: str) -> None:
    with closing(sqlite3.connect(target, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with store._engine.in_line(0.01) as ours:
            assert not ours
        other.execute("ROLLBACK")
        other.execute("BEGIN IMMEDIATE")
        other.execute("ROLLBACK")
    sessions.create({"id": "a"})


def test_what_is_done_in_line_is_one_change(store: Store, sessions: Collection, target: str) -> None:
    def delete() -> None:
        store._engine.remove(store._statements.delete, ("a", "", sessions._id, 0))

    sessions.create({"id": "a"})
    line = store._engine.in_line(1)
    assert line.__enter__()
    delete()
    line.__exit__(OSError, OSError("in the middle"), None)
    assert "a" in sessions
    with store._engine.in_line(1), closing(sqlite3.connect(target, isolation_level=None, timeout=0)) as other:
        delete()
        assert other.execute("SELECT count(*) FROM documents").fetchone() == (1,)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
    assert "a" not in sessions
