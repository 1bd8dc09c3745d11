"""Files that are not ours, or not ours to read and write: a clear error, and not a byte is changed."""

import os
import sqlite3
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ttlstore
import ttlstore.engine.sqlite  # now: a child without rights may not be able to read it
from tests.files import database, everything_in
from ttlstore import CannotOpen, NotAStore

NOBODY = 65534  # a user without rights of its own, where the tests run as root


def as_nobody(work: Callable[[], object]) -> None:
    """Run as a user who is bound by permissions: in a forked child if need be, for root is not."""
    if os.geteuid() != 0:
        work()
        return
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            work()
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0, "it failed in the child: see what it printed"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that everybody can reach: pytest's own are private."""
    with tempfile.TemporaryDirectory() as made:
        os.chmod(made, 0o777)
        yield Path(made)
        os.chmod(made, 0o777)


# --- what is not ours -------------------------------------------------------------------------------------------------


def text(path: Path) -> None:
    path.write_text("This is a letter, and not a short one either. " * 10)


def short(path: Path) -> None:
    path.write_bytes(b"\n")


def magic_alone(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\0")


def foreign(path: Path) -> None:
    database(path, "CREATE TABLE things (a)", "INSERT INTO things VALUES (1)")


def foreign_in_wal(path: Path) -> None:
    database(path, "PRAGMA journal_mode = WAL", "CREATE TABLE collections (a)", "CREATE TABLE documents (a)")


def foreign_with_an_id(path: Path) -> None:
    database(path, "PRAGMA application_id = 1234", "CREATE TABLE alembic_version (version_num)")


def foreign_and_empty(path: Path) -> None:
    database(path, "CREATE TABLE things (a)", "DROP TABLE things")


@pytest.mark.parametrize(
    "make", [text, short, magic_alone, foreign, foreign_in_wal, foreign_with_an_id, foreign_and_empty]
)
@pytest.mark.parametrize("migrate", [True, False])
def test_what_is_not_ours_is_refused_and_not_a_byte_is_changed(
    path: Path, make: Callable[[Path], None], migrate: bool
) -> None:
    make(path)
    before = everything_in(path.parent)
    with pytest.raises(NotAStore, match=r"store\.db is .*; it was left as it is"):
        ttlstore.open(path, migrate=migrate)
    assert everything_in(path.parent) == before


def test_a_foreign_database_in_use_is_left_alone(path: Path) -> None:
    foreign_in_wal(path)
    user = sqlite3.connect(path)
    user.execute("INSERT INTO documents VALUES (1)")
    before = everything_in(path.parent)
    assert len(before) == 3, "with its log beside it"
    with pytest.raises(NotAStore):
        ttlstore.open(path)
    assert everything_in(path.parent) == before
    user.commit()
    user.close()


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotOpen, match="is a folder"):
        ttlstore.open(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_is_refused_without_waiting_for_it(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(CannotOpen, match="not a regular file"):
        ttlstore.open(path)
    assert stat.S_ISFIFO(path.stat().st_mode)


# --- what may not be read or written ----------------------------------------------------------------------------------


def refused_to_nobody(path: Path, message: str) -> None:
    before = everything_in(path.parent)

    def attempt() -> None:
        with pytest.raises(CannotOpen, match=message):
            ttlstore.open(path)

    as_nobody(attempt)
    if os.geteuid() != 0:
        os.chmod(path.parent, 0o777)
    assert everything_in(path.parent) == before


def test_an_unreadable_file_is_refused(folder: Path) -> None:
    path = folder / "store.db"
    ttlstore.open(path).close()
    before = path.read_bytes()
    path.chmod(0o000)

    def attempt() -> None:
        with pytest.raises(CannotOpen, match="cannot be read: Permission denied"):
            ttlstore.open(path)

    as_nobody(attempt)
    path.chmod(0o600)
    assert path.read_bytes() == before
    assert [entry.name for entry in folder.iterdir()] == ["store.db"]


def test_a_read_only_store_is_refused(folder: Path) -> None:
    path = folder / "store.db"
    ttlstore.open(path).close()
    path.chmod(0o444)
    refused_to_nobody(path, "is read-only")


def test_a_read_only_empty_file_is_refused(folder: Path) -> None:
    path = folder / "store.db"
    path.touch()
    path.chmod(0o444)
    refused_to_nobody(path, "is read-only")


def test_a_store_in_a_read_only_folder_is_refused(folder: Path) -> None:
    path = folder / "store.db"
    ttlstore.open(path).close()
    path.chmod(0o666)
    folder.chmod(0o555)
    refused_to_nobody(path, "is read-only")


def test_a_new_store_in_a_read_only_folder_is_refused(folder: Path) -> None:
    folder.chmod(0o555)
    refused_to_nobody(folder / "store.db", "the folder cannot be written")
