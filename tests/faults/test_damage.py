"""Damaged files"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import ttlstore
from tests.faults import works
from tests.faults.trial import Trial, promise
from tests.faults.victim import Tell, Victim
from ttlstore import CannotOpen, DocumentNotFound, NotAStore, SchemaTooNew, Store, StoreCorrupt, StoreFailed
from ttlstore.testing import FakeClock

PAGE = 4096
SIZE = 150
# What may be said of a damaged file. StoreFailed: a page that is not there cannot be read. SchemaTooNew: the name of
# the revision is damaged.
TOLD = (StoreCorrupt, NotAStore, CannotOpen, StoreFailed, SchemaTooNew)


def flip(content: bytearray, chance: Random) -> None:
    for _ in range(chance.choice([1, 1, 3, 20])):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)


def overwrite(content: bytearray, chance: Random) -> None:
    """A page is torn: its second part is another's, or nothing."""
    start = chance.randrange(len(content) // PAGE) * PAGE + chance.choice([0, 512, 2048])
    end = start - start % PAGE + PAGE
    other = chance.randrange(len(content) // PAGE) * PAGE + start % PAGE
    content[start:end] = chance.choice([bytes(end - start), content[other : other + end - start]])


def truncate(content: bytearray, chance: Random) -> None:
    del content[chance.randrange(len(content)) :]


DAMAGES: list[Callable[[bytearray, Random], None]] = [flip, overwrite, truncate]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that was closed well."""
    path = tmp_path_factory.mktemp("whole") / "store.db"
    with ttlstore.open(path, clock=FakeClock(), vacuum=False) as store:
        fill(store)
    return path


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose log is still beside it."""
    path = tmp_path_factory.mktemp("killed") / "store.db"
    Victim(fill_and_stay, path).killed_after(0)
    assert path.with_name("store.db-wal").stat().st_size > 20 * PAGE
    return path


def fill(store: Store) -> None:
    collection = store.create_collection("c", default_ttl=60)
    collection.create_many(documents())


def documents() -> list[dict[str, Any]]:
    ttls: list[dict[str, int]] = [{}, {"ttl": 30}, {"ttl": -1}]
    return [{"id": f"id {n}", "n": n, "text": f"text {n} " * (n % 7 * 20), **ttls[n % 3]} for n in range(SIZE)]


def fill_and_stay(tell: Tell, path: Path) -> None:
    store = ttlstore.open(path, clock=FakeClock(), vacuum=False)
    fill(store)
    tell("filled")
    works.wait_to_be_killed()


@promise(
    "Whatever bytes of a store's file or log are flipped, torn or cut off: a document that is read is what was "
    "written, or an error is raised. `check` finds what is missing or cannot be read, and no copy of it is made.",
    share=4,
)
@pytest.mark.parametrize("part", ["store.db", "store.db-wal"])
def test_a_damaged_file(part: str, whole: Path, killed: Path, path: Path, trial: Trial) -> None:
    original = killed if part == "store.db-wal" else whole
    for _ in trial.rounds(short=60):
        for file in original.parent.iterdir():
            shutil.copy(file, path.parent / file.name)
        content = bytearray((path.parent / part).read_bytes())
        trial.random.choice(DAMAGES)(content, trial.random)
        (path.parent / part).write_bytes(content)
        found_something_wrong = looked_through(path, log=part.endswith("wal"))
        trial.count(damaged_files=1, noticed=found_something_wrong)
        for file in list(path.parent.iterdir()):
            file.unlink()


@promise("A file that is cut off under an open store: its documents are read right or an error is raised.")
def test_a_file_is_cut_off_while_it_is_open(whole: Path, path: Path) -> None:
    shutil.copy(whole, path)
    with ttlstore.open(path, clock=FakeClock(), vacuum=False) as store:
        store.collection("c").touch("id 0")  # with something in the log, SQLite does not look at the length of the file
        os.truncate(path, path.stat().st_size // PAGE // 2 * PAGE)
        assert unseen_in(store) != []
        assert store.check() != []


def looked_through(path: Path, *, log: bool) -> bool:
    """Read a damaged store in all ways. Whether it was noticed that it is damaged."""
    try:
        store = ttlstore.open(path, clock=FakeClock(), vacuum=False)
    except TOLD:
        return True
    with store:
        problems = store.check()
        unseen = unseen_in(store)
        if not problems:
            # A log that is damaged ends there: the changes from then on never happened, each of them as a whole.
            assert unseen in ([], ["c"], [document["id"] for document in documents()]) if log else unseen == []
        copy = path.with_name("copy.db")
        try:
            store.backup(copy)
        except TOLD:
            assert problems
            assert not list(path.parent.glob("copy*"))
        else:  # the damage, if any, was where nothing is
            with ttlstore.open(copy, clock=FakeClock(), vacuum=False) as backup:
                assert unseen_in(backup) == unseen
                assert backup.check() == []
        return bool(problems)


def unseen_in(store: Store) -> list[str]:
    """The documents that cannot be read. Those that can must be right, by whatever way."""
    try:
        collection = store.collection("c")
    except (*TOLD, ttlstore.CollectionNotFound):
        return ["c"]
    expected = {document["id"]: document for document in documents()}
    unseen = []
    for id, document in expected.items():
        try:
            assert without_system(collection.read(id)) == document
        except (*TOLD, DocumentNotFound, ttlstore.CollectionNotFound):
            unseen.append(id)
    try:
        for found in collection:
            assert without_system(found) == expected[found["id"]]
    except (*TOLD, ttlstore.CollectionNotFound):
        unseen.append("iteration")
    return unseen


def without_system(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if not name.startswith("_")}
