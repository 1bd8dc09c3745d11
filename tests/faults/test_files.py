"""Files that are taken away"""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ttlstore
from tests.faults import works
from tests.faults.rooms import small_disk
from tests.faults.trial import Trial, promise
from tests.faults.victim import Victim
from tests.test_foreign_files import as_nobody
from ttlstore import CannotOpen, Store, StoreFailed, StoreReadOnly, TtlStoreError
from ttlstore.engine.sqlite import connections
from ttlstore.engine.sqlite.turn import turn

NOW = 1_700_000_000.0


@pytest.fixture(autouse=True)
def looking_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not once a second: so that no test need wait."""
    monkeypatch.setattr(connections, "LOOK_SECONDS", 0.0)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that everybody can reach: pytest's own are private."""
    with tempfile.TemporaryDirectory() as made:
        os.chmod(made, 0o777)
        yield Path(made)
        os.chmod(made, 0o777)


def delete(path: Path) -> None:
    path.unlink()


def move(path: Path) -> None:
    path.rename(path.with_name("moved.db"))


def replace(path: Path) -> None:
    other = path.with_name("other.db")
    with works.opened(other, NOW, vacuum=False) as store:
        store.create_collection("c").create({"id": "of another"})
    other.replace(path)


def delete_the_log(path: Path) -> None:
    path.with_name(f"{path.name}-wal").unlink()


USES: list[Callable[[Store], Any]] = [
    lambda store: store.collection("c").read("1/1"),
    lambda store: store.collection("c").upsert({"id": "1/1"}),
    lambda store: store.collection("c").upsert_many([{"id": "1/1"}]),
    lambda store: list(store.collection("c")),
    lambda store: store.collection("c").configure(default_ttl=5),
    lambda store: store.stats(),
    lambda store: store.vacuum(),
    lambda store: store.transaction().__enter__(),
]


@promise(
    "A store whose file or log is deleted, moved or replaced while it is open says so within a second, in every "
    "thread, instead of going on with a file that nobody will find; and the new file is not touched."
)
@pytest.mark.parametrize("taken_away", [delete, move, replace, delete_the_log])
def test_the_file_is_taken_away_from_an_open_store(path: Path, taken_away: Callable[[Path], None]) -> None:
    store = works.opened(path, NOW, vacuum=False)
    store.create_collection("c").create_many(works.loaded(1, 10))
    assert len(store.collection("c")) == 10
    taken_away(path)
    new = path.read_bytes() if path.exists() else None
    for use in USES:
        with pytest.raises((StoreFailed, CannotOpen)):
            use(store)
    assert store.check() != []
    errors: list[TtlStoreError] = []
    thread = threading.Thread(target=lambda: errors.append(raised(store)))
    thread.start()
    thread.join()
    assert isinstance(errors[0], StoreFailed | CannotOpen)
    store.close()
    if taken_away is delete_the_log:
        return
    assert new == (path.read_bytes() if path.exists() else None)
    if taken_away is move:
        shutil.move(path.with_name("moved.db"), path)
        with works.opened(path, NOW, vacuum=False) as again:
            assert len(again.collection("c")) == 10
            assert again.check() == []


def raised(store: Store) -> TtlStoreError:
    with pytest.raises(TtlStoreError) as caught:
        store.collection("c").upsert({"id": "of a thread"})
    return caught.value


@promise("A log that is missing after a crash: what was folded in before is there and sound, or the damage is told.")
def test_the_log_is_missing_after_a_crash(path: Path, trial: Trial) -> None:
    with works.opened(path, NOW, vacuum=False) as store:
        store.create_collection("c").create_many(works.loaded(1, 50))
    for _ in trial.rounds(short=3):
        Victim(works.load, path, NOW, trial.random.getrandbits(32), 2).killed_after(0.05 * trial.random.random())
        for name in ("-wal", "-shm"):
            path.with_name(path.name + name).unlink(missing_ok=True)
        with works.opened(path, NOW, vacuum=False) as store:
            problems = store.check()
            assert problems or store.collection("c").read("1/0")["n"] == 0
        trial.count(logs_deleted=1, told_as_damage=bool(problems))
        if problems:
            return


@promise("A store on a medium that cannot be written is refused by open(), which changes nothing.")
def test_a_medium_that_cannot_be_written(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        path = disk.folder / "store.db"
        with works.opened(path, NOW) as store:
            store.create_collection("c")
        subprocess.run(["mount", "-o", "remount,ro", str(disk.folder)], check=True)
        with pytest.raises(CannotOpen, match="read-only"):
            ttlstore.open(path)
        with pytest.raises(CannotOpen, match="cannot be written"):
            ttlstore.open(disk.folder / "new.db")


@promise("A store that loses its permissions while it is open stays readable, and a write works or says why not.")
def test_permissions_are_lost_while_the_store_is_open(folder: Path) -> None:
    def work() -> None:
        its_own = folder / "its own"
        its_own.mkdir()
        path = its_own / "store.db"
        store = works.opened(path, NOW, vacuum=False)
        collection = store.create_collection("c")
        collection.create({"id": "a"})
        path.chmod(0o444)
        its_own.chmod(0o555)
        errors: list[TtlStoreError | None] = []

        def write() -> None:
            try:
                collection.create({"id": "of a thread"})
                errors.append(None)
            except (StoreReadOnly, CannotOpen) as error:
                errors.append(error)

        thread = threading.Thread(target=write)
        thread.start()
        thread.join()
        assert len(errors) == 1
        assert collection.read("a")["id"] == "a"
        its_own.chmod(0o777)
        path.chmod(0o666)
        assert collection.count() == (2 if errors[0] is None else 1)
        assert store.check() == []
        store.close()

    as_nobody(work)


@promise("Processes of different users who share a store take turns at the vacuum, whoever made its lock.")
def test_the_vacuums_lock_is_that_of_another_user(folder: Path) -> None:
    lock = folder / "store.db-vacuum"
    lock.touch(0o644)

    def work() -> None:
        with turn(str(lock)) as ours, turn(str(lock)) as again:
            assert (ours, again) == (True, False)

    lock.chmod(0o444)
    as_nobody(work)


@promise("New files get the permissions that the process's umask says, and the log and its index those of the store.")
@pytest.mark.parametrize("umask", [0o077, 0o022])
def test_new_files_obey_the_umask(folder: Path, umask: int) -> None:
    script = (
        "import os, sys, ttlstore\n"
        f"os.umask({umask})\n"
        "store = ttlstore.open(sys.argv[1], clock=lambda: 1.0)\n"
        "store.create_collection('c', default_ttl=1).create({'id': 'a'})\n"
        "store.backup(sys.argv[1] + '.copy')\n"
        "late = ttlstore.open(sys.argv[1])\n"  # has something to delete
        "while late.stats().waiting_documents: pass\n"
        "print(*sorted(os.listdir(os.path.dirname(sys.argv[1]))))\n"
        "os._exit(0)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(folder / "store.db")], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.split() == ["store.db", "store.db-shm", "store.db-vacuum", "store.db-wal", "store.db.copy"]
    for file in folder.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) & umask == 0, file
        assert stat.S_IMODE(file.stat().st_mode) & 0o600 == 0o600, file
    if umask == 0o022:
        assert stat.S_IMODE((folder / "store.db-wal").stat().st_mode) == stat.S_IMODE(
            (folder / "store.db").stat().st_mode
        )
