"""Rows that expire between others that stay: the file shrinks all the same, and nobody sees a difference."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import ttlstore
from ttlstore.gaps import MAX_WINDOWS, SPARSE_ROWS, WINDOW_ROWS, Gaps
from ttlstore.testing import FakeClock

DOCUMENTS = 8000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def fill(path: Path, clock: FakeClock, numbers: range) -> None:
    """Every second document lives for a second."""
    with ttlstore.open(path, clock=clock, vacuum=False, durability="normal") as store:
        orders = store.create_collection("orders", default_ttl=-1)
        orders.create_many(
            {"id": f"{number:06}", "ttl": 1 if number % 2 else -1, "note": "x" * 250} for number in numbers
        )


def test_what_stays_fills_its_pages_again(path: Path, tmp_path: Path, clock: FakeClock) -> None:
    never = tmp_path / "never.db"
    fill(path, clock, range(DOCUMENTS))
    fill(never, clock, range(0, DOCUMENTS, 2))
    clock.advance(1)
    with ttlstore.open(path, clock=clock, vacuum=False, durability="normal") as store:
        assert store.vacuum().finished
        assert store.check() == []
    assert path.stat().st_size <= never.stat().st_size * 1.1


def test_packed_documents_are_as_they_were_and_in_their_order(path: Path, clock: FakeClock) -> None:
    fill(path, clock, range(DOCUMENTS))
    clock.advance(1)
    with ttlstore.open(path, clock=clock, vacuum=False) as store:
        orders = store.collection("orders")
        before = list(orders)
        report = store.vacuum()
        assert report.pages_returned > 0
        assert list(orders) == before
        assert len(before) == DOCUMENTS // 2


def test_a_damaged_row_is_packed_to_the_bit(path: Path, clock: FakeClock) -> None:
    fill(path, clock, range(WINDOW_ROWS * 2))
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute("UPDATE documents SET body = CAST(x'7bff00' AS TEXT) WHERE id = '000100'")
    clock.advance(1)
    with ttlstore.open(path, clock=clock, vacuum=False) as store:
        store.vacuum()
    with closing(sqlite3.connect(path)) as raw:
        found = raw.execute("SELECT typeof(body), CAST(body AS BLOB) FROM documents WHERE id = '000100'").fetchone()
    assert found == ("text", b"\x7b\xff\x00")


def test_packing_does_not_wait_for_the_lock(path: Path, clock: FakeClock) -> None:
    fill(path, clock, range(10))
    with ttlstore.open(path, clock=clock, vacuum=False) as store, closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert store._engine.pack(0, WINDOW_ROWS) is None
        other.rollback()
        assert store._engine.pack(0, WINDOW_ROWS) == 10
        assert not store._engine.in_transaction()


def test_large_documents_are_left_where_they_are(path: Path, clock: FakeClock) -> None:
    with ttlstore.open(path, clock=clock, vacuum=False) as store:
        store.create_collection("films").create({"id": "a", "frames": "x" * 600_000})
        assert store._engine.pack(0, WINDOW_ROWS) == 0
        store.collection("films").create({"id": "b"})  # and no transaction was left behind


# --- which windows are worth it -------------------------------------------------------------------------------------


def test_a_window_is_told_until_it_is_closed_and_once_enough_is_gone() -> None:
    gaps = Gaps()
    gaps.note(range(SPARSE_ROWS - 1))
    assert gaps.next() is None
    gaps.note([SPARSE_ROWS])
    assert gaps.next() == gaps.next() == (0, WINDOW_ROWS - 1)
    gaps.closed(0)
    assert gaps.next() is None
    gaps.closed(0)  # by another thread, which packed it too
    assert gaps.next() is None


def test_windows_come_in_their_order() -> None:
    gaps = Gaps()
    for window in (3, 1, 2):
        gaps.note(range(window * WINDOW_ROWS, window * WINDOW_ROWS + SPARSE_ROWS))
    found = []
    while told := gaps.next():
        found.append(told[0] // WINDOW_ROWS)
        gaps.closed(told[0])
    assert found == [1, 2, 3]


def test_where_everything_is_gone_there_is_nothing_to_pack() -> None:
    gaps = Gaps()
    gaps.note(range(WINDOW_ROWS * 5))
    assert gaps.next() is None


def test_what_is_remembered_is_bounded() -> None:
    gaps = Gaps()
    gaps.note(place * WINDOW_ROWS for place in range(MAX_WINDOWS + 1))
    assert len(gaps._gone) <= MAX_WINDOWS
