"""Killed at any moment"""

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.faults import works
from tests.faults.ledger import Ledger
from tests.faults.places import Place
from tests.faults.trial import Trial, promise
from tests.faults.victim import PATIENCE_SECONDS, Victim
from ttlstore import IndexingPolicy, Store, copying
from ttlstore.batches import BATCH_ROWS

GOLDEN = sorted((Path(__file__).parent.parent / "golden").glob("*.db"))
START = 1_700_000_000.0

clients_killed = pytest.mark.parametrize("place", ["file", "postgres"], indirect=True)


def moment(trial: Trial, longest: float) -> float:
    """When to kill: as often in the first millisecond as in the last tenth of a second."""
    return float(trial.random.choice([0.001, 0.01, 0.1, 1.0]) * longest * trial.random.random())


def sound(path: str | Path, now: float) -> Store:
    """The store, opened by the next process and found undamaged."""
    store = works.opened(path, now, vacuum=False)
    assert store.check() == []
    return store


def shown(store: Store) -> dict[str, dict[str, Any]]:
    """What is there, but for the etags: nobody was told those of a write that was not acknowledged."""
    found = list(store.collection("c"))
    assert len(found) == store.collection("c").count()
    return {document["id"]: {k: v for k, v in document.items() if k != "_etag"} for document in found}


# --- documents one by one -------------------------------------------------------------------------------------------


@promise(
    "A write that returned is there after a kill -9; one that had not returned is there as a whole or not at all. "
    "Nothing expired is visible and nothing live is gone.",
    share=10,
)
def test_killed_while_it_writes(place: Place, trial: Trial) -> None:
    ledger, now = Ledger(default_ttl=5), START
    with works.opened(place.target, now) as store:
        store.create_collection("c", default_ttl=5)
    for _ in place.rounds(short=12):
        victim = Victim(works.write, place.target, now, trial.random.getrandbits(32))
        told = place.strike(victim, moment(trial, 0.3))
        for word, change in told:
            if word == "done":
                ledger.apply(change, now)
        with sound(place.target, now) as store:
            found = shown(store)
            if found != ledger.shown(now):
                word, change = told[-1]
                assert word == "about to", "what was acknowledged is not what is there"
                ledger.apply(change, now)
                assert found == ledger.shown(now), "a change is half there"
            now = round(now + trial.random.choice([0, 0.001, 0.5, 1, 4.999, 5, 70]), 3)
        with sound(place.target, now) as store:
            assert shown(store) == ledger.shown(now)
            default_ttl = trial.random.choice([None, -1, 1, 5, 60])
            store.collection("c").configure(default_ttl=default_ttl)
            ledger.default_ttl["c"] = default_ttl
            if default_ttl is not None:  # what has expired may be deleted from here on
                ledger.rows["c"] = ledger.live("c", round(now * 1000))
            store.vacuum()
            assert shown(store) == ledger.shown(now)
        trial.count(acknowledged_changes=sum(word == "done" for word, _ in told))


# --- many at once ---------------------------------------------------------------------------------------------------


def loads_in(store: Store) -> dict[int, int]:
    """How many documents of each load are there: always the first ones."""
    loads: dict[int, int] = {}
    for document in store.collection("c"):
        number, n = document["load"], document["n"]
        assert n == loads.get(number, 0), "a gap"
        loads[number] = n + 1
    return loads


@promise(
    "A bulk load that is killed leaves whole batches, and inside a transaction nothing; what returned is all there.",
    share=4,
)
def test_killed_in_a_bulk_load(place: Place, trial: Trial) -> None:
    with works.opened(place.target, START) as store:
        store.create_collection("c")
    for round in place.rounds(short=6):
        victim = Victim(works.load, place.target, START, trial.random.getrandbits(32), round * 1000)
        told = place.strike(victim, moment(trial, 0.4))
        with sound(place.target, START) as store:
            there = loads_in(store)
            for word, number, size, whole in told:
                if word == "done":
                    assert there.pop(number) == size
                    trial.count(documents=size)
                elif ("done", number, size, whole) not in told and number in there:
                    left = there.pop(number)
                    assert left == size or (not whole and left % BATCH_ROWS == 0)
            assert there == {}
            store.delete_collection("c")
            store.create_collection("c")
            store.vacuum()


@promise("An import that is killed leaves the first records, in whole batches, and can be run again.", share=3)
@clients_killed
def test_killed_in_an_import(place: Place, tmp_path: Path, trial: Trial) -> None:
    file, size = tmp_path / "documents.jsonl", 5500
    documents = list(works.loaded(1, size))
    file.write_text("".join(json.dumps(document) + "\n" for document in documents))
    for _ in place.rounds(short=3):
        with works.opened(place.target, START) as store:
            store.create_collection("c")
        victim = Victim(works.run_import, place.target, file)
        told = place.strike(victim, moment(trial, 0.3))
        with sound(place.target, START) as store:
            left = loads_in(store).get(1, 0)
            assert left == size or (left % BATCH_ROWS == 0 and "done" not in told)
        assert Victim(works.run_import, place.target, file).ended() == ["about to", "done"]
        with sound(place.target, START) as store:
            assert loads_in(store) == {1: size}
            store.delete_collection("c")
            store.vacuum()
        trial.count(documents=size)


@promise(
    "A copy that is killed leaves the first documents, in whole batches, as they are in the source; started again, it "
    "goes on from there.",
    share=2,
)
def test_killed_in_a_copy(place: Place, tmp_path: Path, trial: Trial) -> None:
    source, size = tmp_path / "source.db", 3500
    with works.opened(source, START) as store:
        store.create_collection("c", default_ttl=60).create_many(works.loaded(1, size))
        expected = list(store.collection("c"))
    later = START + 30
    for _ in place.rounds(short=3):
        told = place.strike(Victim(works.copy_from, place.target, source, later), moment(trial, 0.3))
        acknowledged = max((word for word in told if isinstance(word, int)), default=0)
        with sound(place.target, later) as store:
            there = list(store.ensure_collection("c", default_ttl=60))
            assert there == expected[: len(there)]
            assert len(there) == size or len(there) % BATCH_ROWS == 0
            assert acknowledged <= len(there)
        assert copying.copy(source, place.target, clock=lambda: later).written == size - len(there)
        with sound(place.target, later) as store:
            assert list(store.collection("c")) == expected
        place.clear()
        trial.count(documents=size)


# --- housekeeping ---------------------------------------------------------------------------------------------------


def fill(store: Store, size: int) -> dict[str, dict[str, Any]]:
    """One in ten stays; the others expire by the default, by their own ttl, or with their collection."""
    store.ensure_collection("c", default_ttl=60).upsert_many(
        {"id": f"{n}", "n": n, **({"ttl": -1} if n % 10 == 0 else {"ttl": 30} if n % 3 == 0 else {})}
        for n in range(size)
    )
    store.ensure_collection("dropped").upsert_many({"id": f"{n}"} for n in range(size))
    store.delete_collection("dropped")
    return {id: document for id, document in shown(store).items() if document["n"] % 10 == 0}


@promise("Killed in the middle of a batch, the vacuum has taken nothing live, and the next one goes on.", share=4)
def test_killed_while_it_vacuums(place: Place, trial: Trial) -> None:
    for _ in place.rounds(short=2):
        with works.opened(place.target, START, vacuum=False) as store:
            live = fill(store, 5000)
        later = START + 3600
        for _ in range(3):
            victim = Victim(works.vacuum, place.target, later)
            place.strike(victim, moment(trial, 0.1))
            with sound(place.target, later) as store:
                assert shown(store) == live
        with sound(place.target, later) as store:
            assert store.vacuum().finished
            stats = store.stats()
            assert (stats.live_documents, stats.waiting_documents) == (len(live), 0)
            assert shown(store) == live
            trial.count(rows_deleted=10_000 - len(live))
        place.clear()


@promise("A backup that is killed leaves nothing under its name; one that returned is whole.", share=4)
def test_killed_in_a_backup(path: Path, tmp_path: Path, trial: Trial) -> None:
    folder = tmp_path / "copies"
    folder.mkdir()
    with works.opened(path, START) as store:
        fill(store, 3000)
    with works.opened(path, START, vacuum=False) as store:
        expected = shown(store)
    number = 0
    for _ in trial.rounds(short=5):
        told = Victim(works.back_up, path, folder, START, number).killed_after(moment(trial, 0.3))
        _, number = told[-1]
        copies = {int(copy.stem) for copy in folder.glob("*.db")}
        assert {done for word, done in told if word == "done"} <= copies
        with works.opened(path, START, vacuum=False) as store:
            if number not in copies:
                store.backup(folder / f"{number}.db")  # what the killed one left is not in the way
                copies.add(number)
            assert shown(store) == expected
        for each in copies:
            with sound(folder / f"{each}.db", START) as store:
                assert shown(store) == expected
            (folder / f"{each}.db").unlink()
        number += 1
        trial.count(kills=1, backups=len(copies))
    with sound(path, START) as store:
        assert shown(store) == expected


@promise(
    "A migration that is killed has happened or not; the next open goes on, and every document is there.", share=0.7
)
@pytest.mark.parametrize(
    ("place", "golden"),
    [*(("file", golden) for golden in (None, *GOLDEN)), ("postgres", None), ("postgres crashes", None)],
    indirect=["place"],
    ids=lambda value: value.stem if isinstance(value, Path) else value or "new",
)
def test_killed_in_a_migration(place: Place, golden: Path | None, trial: Trial) -> None:
    for _ in place.rounds(short=3):
        if golden:
            shutil.copy(golden, place.target)
        victim = Victim(works.migrate, place.target, START)
        place.strike(victim, moment(trial, 0.15))
        with sound(place.target, START) as store:
            names = [collection.name for collection in store.list_collections()]
            counts = [len(store.collection(name)) for name in names]
            assert dict(zip(names, counts, strict=True)) == (
                {"none": 0, "off": 4, "on": 4, "orders": 4, "sessions": 4} if golden else {}
            )
            store.ensure_collection("c").create({"id": "a"})
        place.clear()


@promise("Killed before any of the statements that make a new store, the next open makes it.")
@clients_killed
def test_killed_before_each_statement_of_a_birth(place: Place, trial: Trial) -> None:
    for number in itertools.count(1):
        victim = Victim(works.die_at_statement, place.target, START, number)
        if victim.killed_after(PATIENCE_SECONDS)[-1] == "done":
            assert number > 20, "some were counted"
            return
        trial.count(kills=1)
        with sound(place.target, START) as store:
            store.ensure_collection("c").create({"id": "a"})
        place.clear()


# --- collections ----------------------------------------------------------------------------------------------------


@promise(
    "A collection is dropped or not, and made with its documents or not; a name never shows another's documents.",
    share=3,
)
def test_killed_while_collections_are_dropped_and_made(place: Place, trial: Trial) -> None:
    size = 700
    with works.opened(place.target, START) as store:
        store.create_collection("c", default_ttl=60).create_many(works.loaded(0, size))
        store.create_collection("bystander").create_many(works.loaded(0, size))
    number = 1
    for _ in place.rounds(short=5):
        victim = Victim(works.drop_and_make, place.target, START, number, size)
        told = place.strike(victim, moment(trial, 0.3))
        word, number = told[-1]
        with sound(place.target, START) as store:
            assert len(store.collection("bystander")) == size
            names = {collection.name for collection in store.list_collections()}
            if word == "dropped" and "c" in names:
                word = "made"
            elif word == "about to drop" and "c" not in names:
                word = "dropped"
            if word == "dropped":
                assert "c" not in names
                store.create_collection("c", default_ttl=60).create_many(works.loaded(number, size))
            assert loads_in(store) == {number - 1 if word == "about to drop" else number: size}
            store.vacuum()
            assert store.stats().waiting_documents == 0
        number += word != "about to drop"
        trial.count(collections_dropped=sum(word == "dropped" for word, _ in told))


@promise(
    "An index is built or not: killed in between, every query finds what it should, and the next build works. What is "
    "left of it on PostgreSQL is used for nothing, and removed by the vacuum.",
    share=3,
)
def test_killed_while_indexes_are_built(place: Place, trial: Trial) -> None:
    size = 2500
    with works.opened(place.target, START) as store:
        store.create_collection("c", default_ttl=60).create_many(works.loaded(1, size))
    policy = IndexingPolicy()
    for _ in place.rounds(short=5):
        victim = Victim(works.build_indexes, place.target, START, trial.random.getrandbits(32))
        told = place.strike(victim, moment(trial, 0.2))
        for word, said in told:
            policy = said if word == "done" else policy
        with works.opened(place.target, START, vacuum=False) as store:
            collection = store.collection("c")
            assert collection.indexing in (policy, told[-1][1])
            policy = collection.indexing
            number = trial.random.randrange(size)
            assert [found["n"] for found in collection.query("c.n = @n", {"n": number})] == [number]
            assert len(list(collection.query("c.load = 1 AND c.n < @n", {"n": number}))) == number
            assert len(collection) == size
            # What is left of an index on a server is the vacuum's to mend; twice, if it was still made at the first.
            assert store.vacuum().finished
            assert store.check() == [] or (store.vacuum().finished and store.check() == [])
        trial.count(indexes_changed=sum(word == "done" for word, _ in told))
