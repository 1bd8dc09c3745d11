"""The vacuum's work, a step at a time: what it deletes, what it leaves, and how it gives way."""

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ttlstore
from ttlstore import Collection, DocumentNotFound, Store, StoreBusy, VacuumPolicy
from ttlstore.clockguard import ClockGuard
from ttlstore.testing import FakeClock
from ttlstore.ttl import present
from ttlstore.vacuum import BUSY_SECONDS, MAX_BATCH_ROWS, Vacuum, _next_size


def rows(store: Store) -> int:
    """How many rows there are, whoever sees them."""
    stats = store.stats()
    return stats.live_documents + stats.waiting_documents


@pytest.fixture
def vacuum(store: Store, clock: FakeClock) -> Vacuum:
    return Vacuum(store._engine, clock, None, VacuumPolicy())


def ignore(seconds: float) -> None:
    """A pause that takes no time."""


# --- what is deleted ------------------------------------------------------------------------------------------------


def test_deletes_the_rows_of_expired_documents_and_no_other(store: Store, clock: FakeClock) -> None:
    off = store.create_collection("off")
    on = store.create_collection("on", default_ttl=-1)
    ten = store.create_collection("ten", default_ttl=10)
    for collection in (off, on, ten):
        collection.create({"id": "inherits"})
        collection.create({"id": "never", "ttl": -1})
        collection.create({"id": "five", "ttl": 5})
    clock.advance(10)
    report = store.vacuum()
    assert (report.deleted, report.finished) == (3, True)
    assert sorted(document["id"] for document in off) == ["five", "inherits", "never"]
    assert sorted(document["id"] for document in on) == ["inherits", "never"]
    assert sorted(document["id"] for document in ten) == ["never"]
    assert rows(store) == 6


def test_leaves_a_document_until_the_very_millisecond(store: Store, sessions: Collection, clock: FakeClock) -> None:
    sessions.create({"id": "a"})
    clock.advance(9.999)
    assert store.vacuum().deleted == 0
    clock.advance(0.001)
    assert store.vacuum().deleted == 1


def test_deletes_every_one_of_many_that_expire_at_the_same_moment(
    store: Store, sessions: Collection, clock: FakeClock
) -> None:
    sessions.create_many({"id": f"{number}"} for number in range(1000))
    sessions.create_many({"id": f"own {number}", "ttl": 10} for number in range(1000))
    clock.advance(10)
    assert store.vacuum().deleted == 2000
    assert rows(store) == 0


def test_deletes_what_is_due_after_a_change_of_the_default(
    store: Store, sessions: Collection, clock: FakeClock
) -> None:
    sessions.create({"id": "a"})
    clock.advance(5)
    assert store.vacuum().deleted == 0
    sessions.configure(default_ttl=5)
    assert store.vacuum().deleted == 1


def test_deletes_nothing_while_ttl_is_off(store: Store, sessions: Collection, clock: FakeClock) -> None:
    sessions.create({"id": "a"})
    sessions.create({"id": "b", "ttl": 1})
    clock.advance(100)
    sessions.configure(default_ttl=None)
    assert store.vacuum().deleted == 0
    assert len(sessions) == 2


def test_ttl_switched_off_between_choosing_and_deleting_saves_the_documents(
    store: Store, sessions: Collection, clock: FakeClock, vacuum: Vacuum
) -> None:
    sessions.create({"id": "a"})
    clock.advance(10)
    (due,) = vacuum.schedule()[0]
    sessions.configure(default_ttl=None)
    vacuum._batch(due, present(clock))
    assert vacuum.stats.deleted == 0
    assert "a" in sessions


def test_a_document_written_anew_between_choosing_and_deleting_survives(
    store: Store, sessions: Collection, clock: FakeClock, vacuum: Vacuum
) -> None:
    sessions.create({"id": "a"})
    sessions.create({"id": "b"})
    clock.advance(10)
    (due,) = vacuum.schedule()[0]
    sessions.upsert({"id": "a"})
    vacuum._batch(due, present(clock))
    assert vacuum.stats.deleted == 1
    assert "a" in sessions


def test_a_second_collection_does_not_wait_for_the_first(
    store: Store, clock: FakeClock, vacuum: Vacuum, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ttlstore.vacuum._next_size", lambda rows, taken, largest: rows)
    large = store.create_collection("large", default_ttl=10)
    small = store.create_collection("small", default_ttl=10)
    large.create_many({"id": f"{number}"} for number in range(1000))
    small.create({"id": "a"})
    clock.advance(10)
    batches = 0

    def stop_after_two(seconds: float) -> None:
        nonlocal batches
        batches += 1

    vacuum.run(pause=stop_after_two, stopped=lambda: batches >= 2)
    assert small.stats().waiting_documents == 0
    assert large.stats().waiting_documents > 900


@given(
    ttls=st.lists(st.sampled_from([None, -1, 1, 5, 20]), max_size=30),
    default_ttl=st.sampled_from([None, -1, 1, 7]),
    wait=st.integers(0, 21_000),
)
def test_what_it_deletes_is_exactly_what_cannot_be_read(
    ttls: list[int | None], default_ttl: int | None, wait: int
) -> None:
    clock = FakeClock()
    with ttlstore.open(":memory:", clock=clock, vacuum=False) as store:
        collection = store.create_collection("c", default_ttl=default_ttl)
        collection.create_many({"id": f"{number}", "ttl": ttl} for number, ttl in enumerate(ttls))
        clock.advance(wait / 1000)
        live = [document["id"] for document in collection]
        assert store.vacuum().deleted == len(ttls) - len(live)
        collection.configure(default_ttl=None)  # shows what is still there
        assert [document["id"] for document in collection] == live


# --- dropped collections --------------------------------------------------------------------------------------------


def test_rows_of_a_dropped_collection_are_deleted_and_then_forgotten(store: Store, archive: Collection) -> None:
    archive.create_many({"id": f"{number}"} for number in range(100))
    store.delete_collection("archive")
    assert store.stats().waiting_documents == 100
    assert store.vacuum().deleted == 100
    assert store.stats().waiting_documents == 0
    assert store._engine.all(store._statements.next_due) == []


def test_a_dropped_name_is_free_at_once_and_its_rows_do_not_come_back(store: Store, archive: Collection) -> None:
    archive.create({"id": "a"})
    store.delete_collection("archive")
    again = store.create_collection("archive")
    assert len(again) == 0
    again.create({"id": "a"})
    store.vacuum()
    assert len(again) == 1


# --- giving way -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("taken", "expected"), [(0.0025, 200), (0.0001, 200), (0.005, 100), (0.05, 10), (9, 1)])
def test_a_batch_is_sized_by_how_long_the_last_one_took(taken: float, expected: int) -> None:
    assert _next_size(100, taken, MAX_BATCH_ROWS) == expected


@given(rows=st.integers(1, MAX_BATCH_ROWS), taken=st.floats(0, 100))
def test_a_batch_never_more_than_doubles_and_is_never_empty(rows: int, taken: float) -> None:
    assert 1 <= _next_size(rows, taken, MAX_BATCH_ROWS) <= min(rows * 2, MAX_BATCH_ROWS)


def test_large_documents_make_small_batches(file_store: Store, clock: FakeClock) -> None:
    large = file_store.create_collection("large", default_ttl=10)
    large.create_many({"id": f"{number}", "text": "x" * 600_000} for number in range(8))
    clock.advance(10)
    report = file_store.vacuum()
    assert report.deleted == 8
    assert report.batches >= 4  # of a megabyte at most, where sixteen rows would have gone in one


def test_backs_off_when_the_lock_is_taken(file_store: Store, path: Path, clock: FakeClock) -> None:
    sessions = file_store.create_collection("sessions", default_ttl=10)
    sessions.create({"id": "a"})
    clock.advance(10)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    pauses: list[float] = []

    def wait(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            other.execute("ROLLBACK")

    report = Vacuum(file_store._engine, clock, None, VacuumPolicy()).run(pause=wait)
    other.close()
    assert pauses[:3] == [BUSY_SECONDS] * 3
    assert report.deleted == 1


def test_takes_a_small_share_of_the_time_while_others_write(file_store: Store, path: Path, clock: FakeClock) -> None:
    sessions = file_store.create_collection("sessions", default_ttl=10)
    sessions.create_many({"id": f"{number}"} for number in range(100))
    clock.advance(10)
    policy = VacuumPolicy(busy_share=0.1)
    vacuum = Vacuum(file_store._engine, clock, None, policy)
    pauses: list[float] = []
    spent: list[float] = []

    def write_meanwhile(seconds: float) -> None:
        pauses.append(seconds)
        spent.append(vacuum.stats.seconds)
        other.execute("UPDATE collections SET created_at = created_at + 1")

    other = sqlite3.connect(path, isolation_level=None)
    vacuum.run(pause=write_meanwhile)
    other.close()
    # Nobody wrote before the first batch. Each of the others is followed by a rest of nine times its length.
    assert len(pauses) > 2
    for before, after, pause in zip(spent, spent[1:], pauses[1:], strict=False):
        assert pause == pytest.approx(9 * (after - before))


def test_refuses_to_run_inside_a_transaction(store: Store) -> None:
    with pytest.raises(StoreBusy, match=r"transaction\(\)"), store.transaction():
        store.vacuum()


def test_leaves_what_waits_for_a_lock_that_others_keep(
    file_store: Store, path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ttlstore.vacuum.HELD_SECONDS", 0.1)
    file_store.create_collection("sessions", default_ttl=10).create({"id": "a"})
    clock.advance(10)
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        report = file_store.vacuum()
        assert (report.deleted, report.finished) == (0, False)
    report = file_store.vacuum()
    assert (report.deleted, report.finished) == (1, True)


def test_stops_when_its_time_is_over(store: Store, sessions: Collection, clock: FakeClock) -> None:
    sessions.create_many({"id": f"{number}"} for number in range(100))
    clock.advance(10)
    report = store.vacuum(max_seconds=0)
    assert (report.deleted, report.finished) == (0, False)
    assert store.vacuum().finished


# --- space ----------------------------------------------------------------------------------------------------------


def test_tells_how_far_it_is(store: Store, sessions: Collection, clock: FakeClock) -> None:
    sessions.create_many({"id": str(number)} for number in range(100))
    clock.advance(10)
    told: list[tuple[int, int]] = []
    store.vacuum(progress=lambda deleted, total: told.append((deleted, total)))
    assert told == sorted(told)
    assert told[0][0] < 100
    assert told[-1] == (100, 100)


def test_the_file_gives_the_space_back(file_store: Store, path: Path, clock: FakeClock) -> None:
    empty = file_store.stats().file_bytes
    sessions = file_store.create_collection("sessions", default_ttl=10)
    sessions.create_many({"id": f"{number}", "text": "x" * 500} for number in range(5000))
    full = file_store.stats().file_bytes
    assert full > 10 * empty
    clock.advance(10)
    report = file_store.vacuum()
    assert report.pages_returned > 0
    stats = file_store.stats()
    assert report.bytes_returned == full - stats.file_bytes
    assert stats.free_bytes <= 0.06 * stats.file_bytes
    assert path.stat().st_size == stats.file_bytes < 2 * empty


def test_leaves_the_space_to_the_next_one_while_others_keep_the_lock(
    file_store: Store, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ttlstore.vacuum.HELD_SECONDS", 0.1)
    sessions = file_store.create_collection("sessions")
    sessions.create_many({"id": f"{number}", "text": "x" * 500} for number in range(1000))
    full = file_store.stats().file_bytes
    for number in range(1000):
        sessions.delete(f"{number}")
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        report = file_store.vacuum()
        assert (report.pages_returned, report.finished) == (0, False)
    report = file_store.vacuum()
    assert (report.pages_returned > 0, report.finished) == (True, True)
    assert file_store.stats().file_bytes < full / 2


def test_a_file_that_cannot_shrink_is_left_as_it_is(path: Path, clock: FakeClock) -> None:
    with ttlstore.open(path, clock=clock, vacuum=False) as store:
        store.create_collection("sessions", default_ttl=10)
    rebuilt = sqlite3.connect(path, isolation_level=None)
    for statement in ("PRAGMA journal_mode = DELETE", "PRAGMA auto_vacuum = NONE", "VACUUM"):
        rebuilt.execute(statement)
    rebuilt.close()
    with ttlstore.open(path, clock=clock, vacuum=False) as store:
        store.collection("sessions").create_many({"id": f"{number}", "text": "x" * 900} for number in range(500))
        clock.advance(10)
        report = store.vacuum()
        assert (report.deleted, report.pages_returned, report.finished) == (500, 0, True)


def test_the_log_stays_small(file_store: Store, path: Path, clock: FakeClock) -> None:
    sessions = file_store.create_collection("sessions", default_ttl=10)
    sessions.create_many({"id": f"{number}", "text": "x" * 2000} for number in range(20_000))
    clock.advance(10)
    file_store.vacuum()
    file_store.create_collection("next")  # starts the log from its beginning
    assert path.with_name(path.name + "-wal").stat().st_size <= 16 * 1024 * 1024


# --- policy ---------------------------------------------------------------------------------------------------------


def test_grace_keeps_the_rows_of_expired_documents_for_a_while(path: Path, clock: FakeClock) -> None:
    with ttlstore.open(path, clock=clock, vacuum=False) as store:
        sessions = store.create_collection("sessions", default_ttl=10)
        sessions.create({"id": "a"})
        sessions.create({"id": "b", "ttl": 10})
        vacuum = Vacuum(store._engine, clock, None, VacuumPolicy(grace=timedelta(minutes=1)))
        clock.advance(69.999)
        assert "a" not in sessions
        assert vacuum.run(pause=ignore).deleted == 0
        clock.advance(0.001)
        assert vacuum.run(pause=ignore).deleted == 2


def test_one_pass_may_have_a_grace_of_its_own(store: Store, sessions: Collection, clock: FakeClock) -> None:
    sessions.create({"id": "a"})
    clock.advance(10 + 59)
    assert store.vacuum(grace=60).deleted == 0
    clock.advance(1)
    assert store.vacuum(grace=timedelta(minutes=1)).deleted == 1
    assert store.stats().vacuum.deleted == 1


@pytest.mark.parametrize("grace", [-1, float("nan"), float("inf"), "1h", True, None, timedelta(seconds=-1)])
def test_a_grace_that_is_no_time_is_refused(grace: float) -> None:
    with pytest.raises(ValueError, match="grace must be a number of seconds"):
        VacuumPolicy(grace=grace)


@pytest.mark.parametrize("share", [0, -0.1, 1.1, "half", True])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="busy_share must be more than 0"):
        VacuumPolicy(busy_share=share)


# --- the clock guard ------------------------------------------------------------------------------------------------


class Guarded:
    """A wall clock that can be set, and a steady one that cannot."""

    def __init__(self) -> None:
        self.wall = FakeClock()
        self.steady = FakeClock(1000)
        self.guard = ClockGuard(self.wall, self.steady)

    def pass_time(self, seconds: float) -> None:
        self.wall.advance(seconds)
        self.steady.advance(seconds)


def test_a_clock_that_runs_is_no_jump_however_long() -> None:
    clocks = Guarded()
    for seconds in (0, 1, 3600, 86_400 * 30):  # the last while the machine was asleep
        clocks.pass_time(seconds)
        assert clocks.guard.jump() == 0


def test_a_clock_that_is_set_forward_is_a_jump_until_it_is_set_back() -> None:
    clocks = Guarded()
    clocks.wall.advance(86_400)
    clocks.pass_time(60)
    assert clocks.guard.jump() == pytest.approx(86_400)
    clocks.wall.advance(-86_400)
    assert clocks.guard.jump() == 0


def test_a_clock_that_is_set_back_and_corrected_is_no_jump() -> None:
    clocks = Guarded()
    clocks.wall.advance(-86_400)
    assert clocks.guard.jump() == 0
    clocks.wall.advance(86_400)
    assert clocks.guard.jump() == 0


def test_a_clock_may_drift_as_far_as_it_likes_in_small_steps() -> None:
    clocks = Guarded()
    for _ in range(1000):
        clocks.pass_time(3600)
        clocks.wall.advance(1.8)  # what a time server slews at most
        assert clocks.guard.jump() == 0


def test_holds_while_the_clock_is_ahead_and_says_so(store: Store, sessions: Collection, clock: FakeClock) -> None:
    steady = FakeClock(1000)
    guard = ClockGuard(clock, steady)
    vacuum = Vacuum(store._engine, clock, guard, VacuumPolicy())
    sessions.create({"id": "a"})
    clock.advance(86_400)  # a bad step: no time has passed
    with pytest.raises(DocumentNotFound):
        sessions.read("a")  # hidden, by the contract
    report = vacuum.run(pause=ignore)
    assert (report.deleted, report.finished) == (0, False)
    assert "set forward by 86,400 s" in str(report.holding)
    assert vacuum.stats.holding == report.holding
    clock.advance(-86_400)
    assert "a" in sessions
    assert vacuum.run(pause=ignore).holding is None
    clock.advance(10)
    steady.advance(10)
    assert vacuum.run(pause=ignore).deleted == 1


def test_goes_on_when_the_operator_trusts_the_clock(store: Store, sessions: Collection, clock: FakeClock) -> None:
    guard = ClockGuard(clock, FakeClock(1000))
    vacuum = Vacuum(store._engine, clock, guard, VacuumPolicy())
    sessions.create({"id": "a"})
    clock.advance(86_400)
    assert vacuum.run(pause=ignore).deleted == 0
    guard.trust()
    assert vacuum.run(pause=ignore).deleted == 1


def test_a_jump_in_the_middle_of_a_pass_stops_it(store: Store, sessions: Collection, clock: FakeClock) -> None:
    guard = ClockGuard(clock, FakeClock(1000))
    vacuum = Vacuum(store._engine, clock, guard, VacuumPolicy())
    sessions.create_many({"id": f"{number}", "ttl": 1} for number in range(100))
    clock.advance(1)
    report = vacuum.run(pause=lambda seconds: clock.advance(1000))
    assert 0 < report.deleted < 100
    assert report.holding
