"""What happens to what is already there when a store is opened."""

import math
import shutil
import sqlite3
import subprocess
import sys
import threading
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import ttlstore
from tests.files import database, everything_in
from ttlstore import CannotOpen, SchemaOutdated, SchemaTooNew, Store, StoreFailed
from ttlstore.engine.sqlite.file import APPLICATION_ID
from ttlstore.schema import HEAD
from ttlstore.testing import FakeClock


def pragma(store: Store, name: str) -> Any:
    return store._engine._connections.mine().raw.execute(f"PRAGMA {name}").fetchone()[0]  # type: ignore[attr-defined]


# --- a new store ------------------------------------------------------------------------------------------------------


def test_a_new_file_becomes_a_store_and_keeps_what_is_written(path: Path) -> None:
    with ttlstore.open(path) as store:
        store.create_collection("c", default_ttl=60).create({"id": "a"})
    with ttlstore.open(str(path)) as store:
        assert store.collection("c").read("a")
        assert store.collection("c").default_ttl == 60
    assert [entry.name for entry in path.parent.iterdir()] == ["store.db"], "closed, it is one file"


def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()
    with ttlstore.open(path) as store:
        assert store.create_collection("c").create({"id": "a"})


@pytest.mark.parametrize(
    "name", ["with space.db", "ä 😀.db", "100%41.db", "what?.db", "a#b.db", "'\"; --.db", "no-suffix"]
)
def test_any_file_name_will_do(tmp_path: Path, name: str) -> None:
    with ttlstore.open(tmp_path / name) as store:
        store.create_collection("c")
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_a_relative_path_stays_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with ttlstore.open("here.db") as store:
        collection = store.create_collection("c")
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        thread = threading.Thread(target=lambda: collection.create({"id": "a"}))  # on a connection of its own
        thread.start()
        thread.join()
        assert collection.count() == 1
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("scheme", ["sqlite", "sqlite+pysqlite"])
def test_a_url_names_a_file(path: Path, scheme: str) -> None:
    with ttlstore.open(f"{scheme}:///{path}") as store:
        store.create_collection("c")
    with ttlstore.open(path) as store:
        assert store.collection("c")._id


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", ":memory:"])
def test_a_url_names_memory(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with ttlstore.open(url) as store:
        store.create_collection("c").create({"id": "a"})
    with ttlstore.open(url) as store:
        assert store.list_collections() == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "target",
    [
        "mysql://u:secret@host/db",
        "sqlite:///a.db?mode=ro",
        "sqlite://a.db",  # not in memory
        "sqlite+aiosqlite:///a.db",
        "x://",
        "",
        b"a.db",
        "a\0b",
    ],
)
def test_another_target_is_refused(target: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CannotOpen) as refused:
        ttlstore.open(target)
    assert "secret" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "options",
    [
        {"durability": "none"},
        {"busy_timeout": -1},
        {"busy_timeout": "5"},
        {"busy_timeout": True},
        {"vacuum": "yes"},
        {"migrate": "no"},
        {"read_only": "yes"},
        {"clock": datetime.now},
        {"clock": lambda: math.nan},
        {"clock": lambda: math.inf},
        {"clock": lambda: "noon"},
        {"clock": 1_700_000_000},
    ],
    ids=lambda options: "-".join(options),
)
def test_an_invalid_option_is_refused_and_makes_nothing(path: Path, options: Any) -> None:
    with pytest.raises(ValueError, match="must be"):
        ttlstore.open(path, **options)
    assert not path.exists()


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(CannotOpen, match=r"there is no folder .*nowhere"):
        ttlstore.open(tmp_path / "nowhere" / "store.db")
    assert list(tmp_path.iterdir()) == []


# --- how SQLite is set up ---------------------------------------------------------------------------------------------


def test_a_file_is_set_up_for_an_application(path: Path) -> None:
    with ttlstore.open(path) as store:
        assert pragma(store, "journal_mode") == "wal"
        assert pragma(store, "auto_vacuum") == 2  # incremental
        assert pragma(store, "foreign_keys") == 1
        assert pragma(store, "application_id") == APPLICATION_ID
        assert 0 < pragma(store, "journal_size_limit") <= 64 * 1024 * 1024
        assert pragma(store, "trusted_schema") == 1  # else no index may look into JSON
    assert path.read_bytes()[68:72] == b"ttls"


@pytest.mark.parametrize(("durability", "synchronous"), [("full", 2), ("normal", 1)])
def test_durability_is_that_of_every_thread(path: Path, durability: Any, synchronous: int) -> None:
    seen = []
    with ttlstore.open(path, durability=durability) as store:
        for _ in range(2):
            thread = threading.Thread(
                target=lambda: seen.append((pragma(store, "synchronous"), pragma(store, "foreign_keys")))
            )
            thread.start()
            thread.join()
        seen.append((pragma(store, "synchronous"), 1))
    assert seen == [(synchronous, 1)] * 3


def test_a_bulk_load_does_not_leave_a_giant_log_behind(path: Path) -> None:
    with ttlstore.open(path, durability="normal") as store:
        collection = store.create_collection("c")
        with store.transaction():
            collection.upsert_many({"id": str(n), "text": "x" * 1_000_000} for n in range(40))
        log = Path(f"{path}-wal")
        assert log.stat().st_size > 20 * 1024 * 1024, "or this shows nothing"
        for _ in range(3):
            collection.upsert({"id": "after"})
        assert log.stat().st_size <= 16 * 1024 * 1024


def test_an_sqlite_that_is_too_old_is_refused_by_its_version(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 24, 0))
    monkeypatch.setattr(sqlite3, "sqlite_version", "3.24.0")
    with pytest.raises(CannotOpen, match=r"needs SQLite 3\.\d+\.\d+ or later, and this Python has 3\.24\.0"):
        ttlstore.open(path)
    assert not path.exists()


def test_opening_what_is_up_to_date_imports_no_alembic(path: Path) -> None:
    ttlstore.open(path).close()
    code = (
        "import sys, ttlstore\n"
        "store = ttlstore.open(sys.argv[1])\n"
        "store.ensure_collection('c').upsert({'id': 'a'})\n"
        "store.close()\n"
        "assert not [name for name in sys.modules if name.split('.')[0] in ('alembic', 'mako')]\n"
        "ttlstore.open(':memory:').close()\n"
        "assert 'alembic' in sys.modules, 'or this shows nothing'\n"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, timeout=60)


# --- another revision -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("migrate", [True, False])
def test_a_newer_store_is_refused_and_left_as_it_is(path: Path, migrate: bool) -> None:
    ttlstore.open(path).close()
    database(path, "UPDATE alembic_version SET version_num = '9999'")
    before = everything_in(path.parent)
    with pytest.raises(SchemaTooNew, match=rf"its schema is 9999, this version knows {HEAD}.*: upgrade ttlstore"):
        ttlstore.open(path, migrate=migrate)
    assert everything_in(path.parent) == before


def test_an_older_store_is_not_upgraded_against_the_callers_will(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ttlstore.open(path).close()
    monkeypatch.setattr("ttlstore.migrate.HEAD", "0002")
    before = everything_in(path.parent)
    with pytest.raises(SchemaOutdated) as refused:
        ttlstore.open(path, migrate=False)
    assert f"ttlstore migrate upgrade {path}" in str(refused.value)
    assert everything_in(path.parent) == before


def test_without_migrating_what_is_up_to_date_opens(path: Path) -> None:
    ttlstore.open(path).close()
    with ttlstore.open(path, migrate=False) as store:
        assert store.list_collections() == []


def test_a_store_tells_its_name_and_its_time(path: Path) -> None:
    clock = FakeClock()
    with ttlstore.open(f"sqlite:///{path}", clock=clock) as store:
        assert store.name == str(path)
        assert store.now() == clock()
        clock.advance(0.001)
        assert store.now() == clock()


def test_a_store_that_was_moved_away_does_not_come_back_empty(path: Path) -> None:
    errors: list[Exception] = []
    with ttlstore.open(path) as store:
        collection = store.create_collection("c")
        collection.create({"id": "a"})
        shutil.move(path, path.with_name("moved.db"))

        def look() -> None:
            try:
                collection.read("a")
            except ttlstore.TtlStoreError as error:
                errors.append(error)

        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        assert not path.exists()
    assert isinstance(errors[0], StoreFailed)


# --- reading only -----------------------------------------------------------------------------------------------------


def test_a_file_opened_for_reading_only_is_read_and_not_written(path: Path) -> None:
    with ttlstore.open(path, vacuum=False) as store:
        written = store.create_collection("c", default_ttl=60).create({"id": "a"})
        with ttlstore.open(path, read_only=True) as reader:
            collection = reader.collection("c")
            assert collection.read("a") == written
            assert reader.stats().live_documents == len(list(collection)) == 1
            store.collection("c").create({"id": "b"})
            assert collection.count() == 2
            for write in (
                lambda: collection.create({"id": "c"}),
                lambda: collection.delete("a"),
                lambda: collection.create_many([{"id": "c"}]),
                lambda: collection.configure(default_ttl=1),
                lambda: reader.create_collection("d"),
            ):
                with pytest.raises(ttlstore.StoreReadOnly, match="cannot be written"):
                    write()
            assert reader._background is None
        assert store.collection("c").count() == 2


def test_what_is_not_there_cannot_be_opened_for_reading_only(path: Path) -> None:
    with pytest.raises(ttlstore.CannotOpen, match="there is no store"):
        ttlstore.open(path, read_only=True)
    assert not path.exists()
    with pytest.raises(ttlstore.CannotOpen, match="needs one that is there"):
        ttlstore.open(":memory:", read_only=True)
