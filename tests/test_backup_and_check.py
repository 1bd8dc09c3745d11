"""Copies of a store, and damage that is noticed."""

import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import ttlstore
from tests.files import database
from tests.kinds import on_a_file, on_sqlite
from ttlstore import CannotOpen, Store, StoreBusy, StoreCorrupt, migrate
from ttlstore.testing import FakeClock


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return tmp_path / "copy.db"


def some(store: Store, count: int = 50) -> None:
    store.create_collection("c", default_ttl=10).create_many(
        {"id": str(n), "text": f"body {n} " * 20} for n in range(count)
    )


# --- backup -----------------------------------------------------------------------------------------------------------


@on_sqlite
def test_a_backup_is_the_store_as_it_is(store: Store, copy: Path, clock: FakeClock) -> None:
    some(store)
    before = list(store.collection("c"))
    store.backup(copy)
    store.collection("c").delete("1")
    with ttlstore.open(copy, clock=clock, vacuum=False) as other:
        assert other.check() == []
        assert list(other.collection("c")) == before
        assert other.collection("c").default_ttl == 10
        other.collection("c").create({"id": "only there"})
        clock.advance(10)
        assert other.collection("c").count() == 0
    assert "only there" not in store.collection("c")


@on_sqlite
def test_a_backup_is_one_file_set_up_like_a_store(store: Store, copy: Path) -> None:
    some(store)
    store.backup(copy)
    assert [name for name in os.listdir(copy.parent) if name.startswith("copy")] == ["copy.db"]
    connection = sqlite3.connect(copy)
    settings = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("auto_vacuum", "journal_mode")]
    connection.close()
    assert settings == [2, "wal"]


def test_a_backup_is_taken_at_one_moment_while_others_write(file_store: Store, copy: Path, clock: FakeClock) -> None:
    """Two documents are always written together: no copy holds one without the other."""
    collection = file_store.create_collection("pairs")
    done = threading.Event()
    written = threading.Event()

    def write() -> None:
        n = 0
        while not done.is_set():
            with file_store.transaction():
                collection.upsert({"id": "left", "n": n})
                collection.upsert({"id": "right", "n": n})
            written.set()
            n += 1

    writer = threading.Thread(target=write)
    writer.start()
    written.wait(30)
    try:
        copies = [copy.with_name(f"copy{n}.db") for n in range(5)]
        for one in copies:
            file_store.backup(one)
    finally:
        done.set()
        writer.join()
    for one in copies:
        with ttlstore.open(one, clock=clock, vacuum=False) as other:
            assert other.collection("pairs").read("left")["n"] == other.collection("pairs").read("right")["n"]
            assert other.check() == []


def test_a_backup_never_overwrites(store: Store, copy: Path) -> None:
    copy.write_text("precious")
    with pytest.raises(CannotOpen, match=r"copy\.db is there already"):
        store.backup(copy)
    assert copy.read_text() == "precious"


@on_sqlite
def test_a_backup_that_cannot_be_written_names_its_own_path(store: Store, tmp_path: Path) -> None:
    with pytest.raises(CannotOpen, match="nowhere"):
        store.backup(tmp_path / "nowhere" / "copy.db")


@on_sqlite
def test_a_backup_inside_a_transaction_is_refused_and_leaves_nothing(store: Store, copy: Path) -> None:
    some(store)
    with store.transaction():
        store.collection("c").delete("1")
        with pytest.raises(StoreBusy, match="inside transaction"):
            store.backup(copy)
    assert not copy.exists()
    assert store.collection("c").count() == 49


@on_sqlite
def test_a_backup_leaves_out_what_a_transaction_of_another_thread_has_not_committed(
    store: Store, copy: Path, clock: FakeClock
) -> None:
    some(store)
    errors: list[Exception] = []

    def back_up() -> None:
        try:
            store.backup(copy)
        except Exception as error:
            errors.append(error)

    other = threading.Thread(target=back_up)
    with store.transaction():
        store.collection("c").create({"id": "new"})
        other.start()
        other.join(0.2)  # on a file it need not wait
        store.collection("c").delete("new")
    other.join()
    assert errors == []
    with ttlstore.open(copy, clock=clock, vacuum=False) as backup:
        assert backup.collection("c").count() == 50


# --- check ------------------------------------------------------------------------------------------------------------


def test_an_undamaged_store_has_nothing_wrong(store: Store, clock: FakeClock) -> None:
    some(store)
    clock.advance(10)
    store.collection("c").create({"id": "1"})
    store.create_collection("dropped", partition_key="/k").create({"id": "a", "k": None})
    store.delete_collection("dropped")
    assert store.check() == []


@pytest.mark.parametrize("index", ["documents_by_expiry", "documents_by_write", "documents_in_order"])
@on_a_file
def test_an_index_that_is_missing_is_told(store: Store, path: Path, index: str) -> None:
    database(path, f"DROP INDEX {index}")
    assert [problem.partition(": ")[0] for problem in store.check()] == [f"there is no index {index}"]
    (again,) = [sql for sql in migrate.script("new.db", "head", direction="upgrade").split(";") if index in sql]
    database(path, again)


def test_a_check_tells_how_far_it_is(store: Store, clock: FakeClock) -> None:
    store.create_collection("c", default_ttl=10).create_many({"id": str(number)} for number in range(1200))
    clock.advance(10)
    store.collection("c").create({"id": "live"})
    told: list[tuple[int, int]] = []
    assert store.check(progress=lambda checked, total: told.append((checked, total))) == []
    assert told == [(500, 1201), (1000, 1201), (1201, 1201)]


def flip(path: Path, needle: bytes, replacement: bytes) -> None:
    content = path.read_bytes()
    assert content.count(needle) >= 1
    path.write_bytes(content.replace(needle, replacement, 1))


@pytest.mark.parametrize(
    "replacement", [b"body!7 ", b"body\xff7 ", b"body\x007 "], ids=["a letter", "not UTF-8", "NUL"]
)
def test_a_flipped_byte_in_a_body_is_noticed(path: Path, replacement: bytes) -> None:
    with ttlstore.open(path, clock=FakeClock(), vacuum=False) as store:
        some(store)
    flip(path, b"body 7 ", replacement)
    with ttlstore.open(path, clock=FakeClock(), vacuum=False) as store:
        collection = store.collection("c")
        with pytest.raises(StoreCorrupt):
            collection.read("7")
        with pytest.raises(StoreCorrupt):
            collection.touch("7")
        with pytest.raises(StoreCorrupt):
            list(collection)
        assert collection.read("8")["id"] == "8"
        problems = store.check()
        assert problems
        assert any("'7'" in problem or "damaged" in problem for problem in problems)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("UPDATE documents SET body = '{}' WHERE id = '7'", "'7'"),
        ("UPDATE documents SET body = 'no JSON' WHERE id = '7'", "'7'"),
        ("UPDATE documents SET _ts = _ts + 1 WHERE id = '7'", "'7'"),
        ("UPDATE documents SET ttl = 5 WHERE id = '7'", "'7'"),
        ("UPDATE documents SET id = 'other' WHERE id = '7'", "'other'"),
        ("UPDATE documents SET partition = 'x' WHERE id = '7'", "'7'"),
        ("UPDATE documents SET size = 1 WHERE id = '7'", "'7'"),
        ("UPDATE documents SET collection_id = 99 WHERE id = '7'", "1 documents belong to no collection"),
    ],
)
def test_a_row_that_was_changed_behind_the_stores_back_is_found(path: Path, damage: str, told: str) -> None:
    with ttlstore.open(path) as store:
        some(store)
    database(path, damage)
    with ttlstore.open(path) as store:
        (problem,) = store.check()
        assert told in problem


def overwrite(path: Path, at: Callable[[int], int], size: int) -> None:
    with path.open("r+b") as file:
        file.seek(at(path.stat().st_size))
        file.write(b"\xa5" * size)


@pytest.mark.parametrize("page", range(1, 40, 3))
def test_a_page_that_was_overwritten_is_found(path: Path, page: int) -> None:
    with ttlstore.open(path) as store:
        some(store, 500)
    pages = path.stat().st_size // 4096
    assert pages > 40
    overwrite(path, lambda size: page * 4096, 4096)
    try:
        store = ttlstore.open(path)
    except StoreCorrupt:
        return
    with store:
        assert store.check() != []


def test_a_truncated_store_is_noticed(path: Path) -> None:
    with ttlstore.open(path) as store:
        some(store, 300)
    os.truncate(path, path.stat().st_size // 2)
    try:
        store = ttlstore.open(path)
    except StoreCorrupt:
        return
    with store:
        assert store.check() != []


def test_a_damaged_store_is_not_copied(path: Path, copy: Path) -> None:
    with ttlstore.open(path) as store:
        some(store, 300)
    overwrite(path, lambda size: size // 2 // 4096 * 4096, 4096)
    with ttlstore.open(path) as store, pytest.raises(StoreCorrupt):
        store.backup(copy)
    assert [name for name in os.listdir(copy.parent) if name.startswith("copy")] == []
