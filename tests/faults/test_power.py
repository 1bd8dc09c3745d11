"""Power that fails at any moment"""

import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import ttlstore
from tests.faults import recorded, works
from tests.faults.disk import Entry, Record, Synced, Told
from tests.faults.ledger import Ledger, history
from tests.faults.recorder import library
from tests.faults.test_kill import GOLDEN, START, fill, loads_in, shown
from tests.faults.trial import Trial, promise
from tests.faults.victim import Victim
from ttlstore import IndexingPolicy, Store, TtlStoreError
from ttlstore.batches import BATCH_ROWS
from ttlstore.engine import Durability
from ttlstore.testing import FakeClock

pytestmark = pytest.mark.skipif(library() is None, reason="SQLite is part of this interpreter: no way to its files")

CUTS = 25  # of each record

DURABILITIES: list[Durability] = ["full", "normal"]
both = pytest.mark.parametrize("durability", DURABILITIES)


def recording(folder: Path, durability: Durability, words: int, work: Callable[..., None], *arguments: Any) -> Record:
    record = Victim(recorded.record, folder, durability, words, work, *arguments).ended()[0]
    assert isinstance(record, Record)
    return record


class Outage:
    """One loss of power, and what it leaves of what was recorded: the same each time that one looks."""

    def __init__(self, record: Record, seed: int) -> None:
        self._record, self._seed = record, seed
        self._moment = record.any_moment(random.Random(seed))
        self.told = record.told(self._moment)

    def leave(self, folder: Path) -> None:
        """In this folder, instead of what was there before."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        self._record.lay_out(self._moment, random.Random(self._seed), folder)


def outages(record: Record, trial: Trial) -> Iterator[Outage]:
    for _ in range(CUTS):
        yield Outage(record, trial.random.getrandbits(32))
        trial.count(power_cuts=1)


def sound(path: Path, now: float) -> Store:
    """The store, opened when there is power again, and found undamaged."""
    with ExitStack() as closing:
        store = closing.enter_context(ttlstore.open(path, clock=FakeClock(now), vacuum=False, durability="normal"))
        assert store.check() == []
        closing.pop_all()
    return store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the work is done."""
    folder = tmp_path / "before"
    folder.mkdir()
    return folder


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """Where the files are that are left."""
    return tmp_path / "left"


# --- documents one by one -------------------------------------------------------------------------------------------


def survived(path: Path, ledgers: list[Ledger], outage: Outage, durability: Durability) -> Ledger | None:
    """What is there, if it is something that may be: with `normal` all that there was, at any moment before."""
    words = Counter(word for word, _ in outage.told)
    may_be = ledgers[words["done"] if durability == "full" else 0 : words["about to"] + 1]
    with sound(path, START) as store:
        found = shown(store)
    return next((each for each in reversed(may_be) if each.shown(START) == found), None)


@promise(
    'After a loss of power, with `durability="full"` every write that returned is there, and with `"normal"` all up to '
    "some moment before; each as a whole, and nothing that has expired.",
    share=4,
)
@both
def test_the_power_fails_while_it_writes(folder: Path, left: Path, durability: Durability, trial: Trial) -> None:
    path, ledger = folder / "store.db", Ledger(default_ttl=5)
    with works.opened(path, START) as store:
        store.create_collection("c", default_ttl=5)
    for _ in trial.rounds(short=2):
        record = recording(folder, durability, 80, works.write, path, START, trial.random.getrandbits(32))
        ledgers = history(ledger, record.told(), START)
        for outage in outages(record, trial):
            outage.leave(left)
            there = survived(left / "store.db", ledgers, outage, durability)
            assert there is not None, "what is there is not what was acknowledged"
            ledger = there
            with sound(left / "store.db", START + 5) as store:
                assert shown(store) == ledger.shown(START + 5)
                store.vacuum()
                store.collection("c").upsert({"id": "afterwards"})
                assert store.check() == []
            trial.count(acknowledged_changes=sum(word == "done" for word, _ in outage.told))
        outage.leave(folder)  # what comes next begins by recovering that


# --- that all this would be seen if it were not so ------------------------------------------------------------------


def written(folder: Path, durability: Durability) -> Record:
    path = folder / "store.db"
    with works.opened(path, START) as store:
        store.create_collection("c")
    return recording(folder, durability, 100, works.write, path, START, 1)


def test_a_write_that_does_not_wait_for_the_disk_is_seen_to_be_lost(folder: Path, left: Path) -> None:
    record = written(folder, "normal")
    ledgers = history(Ledger(default_ttl=None), record.told(), START)
    lost = 0
    for outage in (Outage(record, seed) for seed in range(CUTS)):
        outage.leave(left)
        lost += survived(left / "store.db", ledgers, outage, "full") is None
    assert lost > 0


def test_a_disk_that_does_not_keep_what_it_says_is_seen_to_do_damage(folder: Path, left: Path) -> None:
    honest = written(folder, "full")
    entries: list[Entry] = [Told("kept") if isinstance(entry, Synced) else entry for entry in honest.entries]
    lying = Record(honest.contents, honest.names, entries)
    damaged = 0
    for outage in (Outage(lying, seed) for seed in range(CUTS)):
        outage.leave(left)
        try:
            sound(left / "store.db", START).close()
        except (AssertionError, TtlStoreError):
            damaged += 1
    assert damaged > 0


# --- many at once ---------------------------------------------------------------------------------------------------


@promise("After a loss of power a bulk load is there in whole batches, and inside a transaction as a whole.", share=3)
@both
def test_the_power_fails_in_a_bulk_load(folder: Path, left: Path, durability: Durability, trial: Trial) -> None:
    path = folder / "store.db"
    for _ in trial.rounds(short=1):
        path.unlink(missing_ok=True)
        with works.opened(path, START) as store:
            store.create_collection("c")
        record = recording(folder, durability, 10, works.load, path, START, trial.random.getrandbits(32), 0)
        for outage in outages(record, trial):
            outage.leave(left)
            with sound(left / "store.db", START) as store:
                there = loads_in(store)
            latest = True  # none that came later is there
            for word, number, size, whole in reversed(outage.told):
                if word == "about to":
                    found = there.pop(number, 0)
                    acknowledged = ("done", number, size, whole) in outage.told
                    lost = not (acknowledged and durability == "full") and latest
                    assert found == size or (lost and (found == 0 if whole else found % BATCH_ROWS == 0))
                    latest = latest and found == 0
            assert there == {}


# --- housekeeping ---------------------------------------------------------------------------------------------------


@promise("A loss of power during the vacuum takes nothing that is live, and the next vacuum goes on.", share=2)
@both
def test_the_power_fails_while_it_vacuums(folder: Path, left: Path, durability: Durability, trial: Trial) -> None:
    path, later = folder / "store.db", START + 3600
    for _ in trial.rounds(short=1):
        path.unlink(missing_ok=True)
        with works.opened(path, START, vacuum=False) as store:
            live = fill(store, 1000)
        record = recording(folder, durability, 2, works.vacuum, path, later)
        for outage in outages(record, trial):
            outage.leave(left)
            with sound(left / "store.db", later) as store:
                assert shown(store) == live
                assert store.vacuum().finished
                assert store.stats().waiting_documents == 0
                assert shown(store) == live
                assert store.check() == []


@promise("A backup that returned is there after a loss of power, and whole; one that did not is whole or not there.")
def test_the_power_fails_in_a_backup(folder: Path, left: Path, trial: Trial) -> None:
    path = folder / "store.db"
    (folder / "copies").mkdir()
    with works.opened(path, START) as store:
        fill(store, 300)
    with works.opened(path, START, vacuum=False) as store:
        expected = shown(store)
    for _ in trial.rounds(short=1):
        record = recording(folder, "normal", 6, works.back_up, path, folder / "copies", START, 0)
        for outage in outages(record, trial):
            outage.leave(left)
            copies = {int(copy.stem) for copy in (left / "copies").glob("*.db")}
            assert {done for word, done in outage.told if word == "done"} <= copies
            for each in copies:
                with sound(left / "copies" / f"{each}.db", START) as store:
                    assert shown(store) == expected
            with sound(left / "store.db", START) as store:
                assert shown(store) == expected
            trial.count(backups=len(copies))
        for file in (folder / "copies").iterdir():
            file.unlink()


@promise("After a loss of power a migration has happened or not; the next open goes on, and every document is there.")
@pytest.mark.parametrize("golden", [None, *GOLDEN], ids=lambda golden: golden.stem if golden else "new")
def test_the_power_fails_in_a_migration(folder: Path, left: Path, golden: Path | None, trial: Trial) -> None:
    path = folder / "store.db"
    if golden:
        shutil.copy(golden, path)
    record = recording(folder, trial.random.choice(DURABILITIES), 2, works.migrate, path, START)
    for _ in trial.rounds(short=1):
        for outage in outages(record, trial):
            outage.leave(left)
            with sound(left / "store.db", START) as store:
                assert {collection.name: len(collection) for collection in store.list_collections()} == (
                    {"none": 0, "off": 4, "on": 4, "orders": 4, "sessions": 4} if golden else {}
                )
                store.create_collection("c").create({"id": "a"})


@promise("A new store is there after a loss of power as soon as something in it is.")
@both
def test_the_power_fails_at_a_birth(folder: Path, left: Path, durability: Durability, trial: Trial) -> None:
    record = recording(folder, durability, 100, recorded.be_born, folder / "store.db", START)
    for _ in trial.rounds(short=2):
        for outage in outages(record, trial):
            outage.leave(left)
            with sound(left / "store.db", START) as store:
                names = [collection.name for collection in store.list_collections()]
                assert names == sorted(["c0", "c1", "c2"][: len(names)])
                full = [name for name in names if "a" in store.collection(name)]
                assert full == names[: len(full)]
                assert len(full) in (len(names), len(names) - 1)
                assert durability == "normal" or len(full) >= len(outage.told)


# --- collections ----------------------------------------------------------------------------------------------------


@promise("After a loss of power a collection is dropped or not, and made with its documents or not.", share=2)
@both
def test_the_power_fails_while_collections_are_dropped_and_made(
    folder: Path, left: Path, durability: Durability, trial: Trial
) -> None:
    path, size = folder / "store.db", 200
    for _ in trial.rounds(short=1):
        path.unlink(missing_ok=True)
        with works.opened(path, START) as store:
            store.create_collection("c", default_ttl=60).create_many(works.loaded(0, size))
        record = recording(folder, durability, 12, works.drop_and_make, path, START, 1, size)
        for outage in outages(record, trial):
            outage.leave(left)
            with sound(left / "store.db", START) as store:
                found = loads_in(store) if store.list_collections() else {}
                store.vacuum()
                assert store.stats().waiting_documents == 0
            there: list[dict[int, int]] = [{0: size}]
            for word, number in outage.told:
                if word != "about to drop":
                    there.append({} if word == "dropped" else {number: size})
            acknowledged = len(there) - 1 if durability == "full" else 0
            if outage.told:  # what it was about to do may be done
                word, number = outage.told[-1]
                there.extend([{}] if word == "about to drop" else [{number: size}] if word == "dropped" else [])
            assert found in there[acknowledged:]


@promise("After a loss of power an index is built or not, and every query finds what it should.", share=2)
@both
def test_the_power_fails_while_indexes_are_built(
    folder: Path, left: Path, durability: Durability, trial: Trial
) -> None:
    path, size = folder / "store.db", 300
    with works.opened(path, START) as store:
        store.create_collection("c", default_ttl=60).create_many(works.loaded(1, size))
    for _ in trial.rounds(short=1):
        with sound(path, START) as store:
            first = store.collection("c").indexing
        record = recording(folder, durability, 16, works.build_indexes, path, START, trial.random.getrandbits(32))
        for outage in outages(record, trial):
            outage.leave(left)
            begun = [first, *(policy for word, policy in outage.told if word == "about to")]
            done = sum(word == "done" for word, _ in outage.told)
            with sound(left / "store.db", START) as store:
                collection = store.collection("c")
                assert collection.indexing in begun[done if durability == "full" else 0 :]
                number = trial.random.randrange(size)
                assert [found["n"] for found in collection.query("c.n = @n", {"n": number})] == [number]
                assert len(list(collection.query("c.load = 1 AND c.n < @n", {"n": number}))) == number
                collection.configure(indexing=IndexingPolicy(paths=("/load",)))
                assert store.check() == []
