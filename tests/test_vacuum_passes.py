"""How the vacuum goes through what is due: no row twice, none left out, and at a fair size of batches."""

from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

import ttlstore
from tests.postgres import Server
from tests.test_background_vacuum import until
from ttlstore import Collection, Store, VacuumPolicy
from ttlstore.overhead import Overhead
from ttlstore.testing import FakeClock
from ttlstore.vacuum import BATCH_SECONDS, FIRST_BATCH_ROWS, MAX_BATCH_ROWS, PASS_SECONDS, Vacuum, _next_size

LONG_AGO = 1_000_000  # milliseconds


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ttlstore.vacuum._next_size", lambda rows, taken, largest: rows)


class Pauses:
    """Lets no time pass between batches, and something happen after so many of them."""

    def __init__(self) -> None:
        self.count = 0
        self.actions: dict[int, Any] = {}

    def __call__(self, seconds: float) -> None:
        self.count += 1
        self.actions.get(self.count, lambda: None)()


# --- nothing is left out --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("own", [{}, {"ttl": 10}])
@pytest.mark.usefixtures("small_batches")
def test_what_comes_to_be_due_before_the_place_that_was_reached_is_deleted_in_the_end(
    store: Store, sessions: Collection, clock: FakeClock, own: dict[str, int]
) -> None:
    for number in range(100):
        sessions.create({"id": str(number), **own})
        clock.advance(0.1)
    clock.advance(10)

    def write_in_the_past() -> None:
        clock.advance(-1000)
        sessions.create({"id": "late", **own})
        clock.advance(1000)

    pauses = Pauses()
    pauses.actions[3] = write_in_the_past
    report = store._vacuum.run(pause=pauses)
    assert (report.deleted, report.finished) == (101, True)


@pytest.mark.usefixtures("small_batches")
def test_none_of_many_with_the_same_key_is_passed_over(store: Store, notes: Collection, clock: FakeClock) -> None:
    """Larger and smaller ones: that is how the index has them, and not in the order in which they were written."""
    for moment in range(3):
        notes.create_many(
            {"id": f"{moment} {number}", "ttl": 10, "text": "x" * (number * 37 % 50)} for number in range(100)
        )
        clock.advance(0.001)
    clock.advance(10)
    assert store.vacuum().deleted == 300


@pytest.mark.usefixtures("small_batches")
def test_a_pass_without_an_end_in_sight_is_begun_anew(
    store: Store, sessions: Collection, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = FakeClock(0)
    monkeypatch.setattr("ttlstore.vacuum.time", SimpleNamespace(monotonic=time, perf_counter=time))
    sessions.create_many({"id": str(number)} for number in range(100))
    clock.advance(10)
    batches = 0

    def write_more_that_is_due(seconds: float) -> None:
        nonlocal batches
        batches += 1
        time.advance(PASS_SECONDS / 10)
        clock.advance(-10)
        sessions.create_many({"id": f"{batches} {number}"} for number in range(FIRST_BATCH_ROWS))
        if batches == 2:
            store.create_collection("other", default_ttl=10).create({"id": "a"})
        clock.advance(10.001)

    def others() -> int:
        return store.collection("other").stats().waiting_documents if batches >= 2 else 1

    store._vacuum.run(pause=write_more_that_is_due, stopped=lambda: batches > 30 or not others())
    assert others() == 0
    assert batches <= 15


@pytest.mark.usefixtures("small_batches")
def test_what_another_held_is_deleted_by_the_next_pass(live: Store, by_hand: psycopg.Connection) -> None:
    sessions = live.create_collection("sessions", default_ttl=60)
    sessions.create_many({"id": str(number)} for number in range(100))
    by_hand.execute("UPDATE documents SET _ts = %s + seq", (LONG_AGO,))
    by_hand.commit()
    by_hand.execute("SELECT * FROM documents ORDER BY seq LIMIT 3 FOR UPDATE")
    pauses = Pauses()
    pauses.actions[3] = by_hand.rollback
    report = live._vacuum.run(pause=pauses)
    assert (report.deleted, report.finished) == (100, True)


# --- no row is looked at again and again ----------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["own", "inherited", "dropped"])
@pytest.mark.usefixtures("small_batches")
def test_an_open_snapshot_does_not_make_every_batch_read_what_was_deleted_before(
    live: Store, by_hand: psycopg.Connection, postgres: Server, postgres_url: str, which: str
) -> None:
    """PostgreSQL keeps the entries of deleted rows in its indexes for as long as a snapshot may see them."""
    documents = 2000
    sessions = live.create_collection("sessions", default_ttl=60)
    sessions.create_many({"id": str(n), **({"ttl": 60} if which == "own" else {})} for n in range(documents))
    by_hand.execute("UPDATE documents SET _ts = %s + seq", (LONG_AGO,))
    by_hand.commit()
    if which == "dropped":
        live.delete_collection("sessions")
    schema = postgres_url.rpartition("=")[2]

    def entries_read() -> int:
        row = by_hand.execute(
            "SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE schemaname = %s AND relname = 'documents'",
            (schema,),
        ).fetchone()
        by_hand.commit()
        assert row
        return int(row[0])

    def connections() -> list[Any]:
        return postgres.admin.execute(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'ttlstore' ORDER BY pid"
        ).fetchall()

    with psycopg.connect(postgres.url) as old:
        old.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        old.execute("SELECT 1")
        before, connected = entries_read(), connections()
        with ttlstore.open(postgres_url, vacuum=False) as store:
            report = store.vacuum()
            assert (report.deleted, report.finished) == (documents, True)
            assert report.batches == documents / FIRST_BATCH_ROWS
        until(lambda: connections() == connected)  # what one of them has read is counted by its end
        assert documents <= entries_read() - before < 30 * documents  # where 125 batches would read 400,000


# --- the size of batches --------------------------------------------------------------------------------------------


def sizes(fixed: float, each: float, batches: int = 60) -> list[int]:
    """Of batches, where each takes so long and for each row so much longer."""
    overhead, rows = Overhead(), [FIRST_BATCH_ROWS]
    for _ in range(batches):
        taken = fixed + each * rows[-1]
        overhead.note(rows[-1], taken)
        rows.append(_next_size(rows[-1], max(taken - overhead.seconds, 0.0), MAX_BATCH_ROWS))
    return rows


@pytest.mark.parametrize("fixed", [0.006, 0.03, 0.5])
@pytest.mark.parametrize("each", [0.00001, 0.0001])
def test_what_takes_long_however_small_the_batch_does_not_make_it_small(fixed: float, each: float) -> None:
    assert 0.5 * BATCH_SECONDS < sizes(fixed, each)[-1] * each < 2 * BATCH_SECONDS


@pytest.mark.parametrize("each", [0.00001, 0.0001, 0.001])
def test_rows_that_take_long_make_batches_small(each: float) -> None:
    assert 0.4 * BATCH_SECONDS < sizes(0.0, each)[-1] * each <= 1.01 * BATCH_SECONDS


def test_a_row_that_takes_longer_than_a_batch_is_a_batch() -> None:
    assert sizes(0.0, 0.1)[-1] == 1


def test_a_server_far_away_gets_batches_of_a_fair_size(
    store: Store, sessions: Collection, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions.create_many({"id": str(number)} for number in range(3000))
    clock.advance(10)
    time = FakeClock(0)
    monkeypatch.setattr("ttlstore.vacuum.time", SimpleNamespace(monotonic=time, perf_counter=time))
    remove = store._engine.remove

    def remove_far_away(*arguments: Any) -> Any:
        removed = remove(*arguments)
        time.advance(0.05 + len(removed or ()) * 0.00001)
        return removed

    monkeypatch.setattr(store._engine, "remove", remove_far_away)
    report = store.vacuum()
    assert report.deleted == 3000
    assert report.batches < 30


def test_a_look_that_takes_long_is_not_taken_often(
    store: Store, sessions: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    vacuum = Vacuum(store._engine, store._clock, None, VacuumPolicy(busy_share=0.1))
    vacuum.schedule()
    assert vacuum.look_again_after(60) == 60
    time = FakeClock(0)
    monkeypatch.setattr("ttlstore.vacuum.time", SimpleNamespace(monotonic=time))
    look = store._engine.all_indexes

    def look_for_long() -> Any:
        time.advance(2)
        return look()

    monkeypatch.setattr(store._engine, "all_indexes", look_for_long)
    vacuum.schedule()
    assert vacuum.look_again_after(1) == pytest.approx(18)
