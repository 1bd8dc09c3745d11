"""Full disks"""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ttlstore
from tests.faults import works
from tests.faults.ledger import Ledger
from tests.faults.places import description, until
from tests.faults.rooms import Room, database_on_a_small_disk, limit, small_disk
from tests.faults.trial import Trial, promise
from ttlstore import Store, StoreFull
from ttlstore.testing import FakeClock

NOW = 1_700_000_000.0


@pytest.fixture(params=[small_disk, limit], ids=["disk", "limit"])
def room(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Room]:
    with request.param(tmp_path / "room") as room:
        yield room


def opened(room: Room) -> Store:
    return works.opened(room.folder / "store.db", NOW, vacuum=False)


@promise(
    "When there is no room, at whatever write, it raises StoreFull and nothing of the change is there; what is stored "
    "can be read all the time, and writing works again as soon as there is room. A quota or a limit on file sizes is "
    "the same.",
    share=2,
)
def test_no_room_for_a_change(room: Room, trial: Trial) -> None:
    try_changes(room, str(room.folder / "store.db"), trial, short=25)


@promise(
    "On a PostgreSQL server whose disk is full it is the same: StoreFull, nothing of the change is there, all can be "
    "read, and writing works again as soon as there is room.",
    share=2,
)
def test_no_room_on_the_disk_of_a_server(mortal: Any, trial: Trial) -> None:
    trial.engine = description(mortal.get_uri())
    with database_on_a_small_disk(mortal) as (room, url):
        try_changes(room, url, trial, short=6)
    assert trial.figures["changes_made"] > 0
    assert trial.figures["refused_with_StoreFull"] > 0


def try_changes(room: Room, target: str, trial: Trial, *, short: int) -> None:
    """Make changes with little room or none, and compare what is there with what was acknowledged each time."""
    ledger = Ledger(default_ttl=60)
    with works.opened(target, NOW, vacuum=False) as store:
        store.create_collection("c", default_ttl=60)
    for round in trial.rounds(short):
        with works.opened(target, NOW, vacuum=False) as store:
            collection = store.collection("c")
            room.leave(trial.random.choice([0, 5000, 30_000, 100_000]) + trial.random.randrange(5000))
            for number in range(4):
                change = [noisy(step, trial) for step in works.planned(trial.random, round * 10 + number)]
                try:
                    with store.transaction():
                        for step in change:
                            works.take(collection, step)
                    ledger.apply(change, NOW)
                    trial.count(changes_made=1)
                except StoreFull:
                    trial.count(refused_with_StoreFull=1)
                assert found_in(store) == ledger.shown(NOW)
            room.free()
            last = noisy(("upsert", {"id": "id 0", "n": round, "text": "x" * 20_000}), trial)
            works.take(collection, last)
            ledger.apply([last], NOW)
            assert found_in(store) == ledger.shown(NOW)
            assert store.check() == []


def noisy(step: works.Step, trial: Trial) -> works.Step:
    """With a text that cannot be packed: it takes the room that it seems to."""
    verb, argument = step
    if isinstance(argument, str):
        return step
    return verb, {**argument, "text": trial.random.randbytes(len(argument["text"]) // 2).hex()}


def found_in(store: Store) -> dict[str, object]:
    return {document["id"]: {k: v for k, v in document.items() if k != "_etag"} for document in store.collection("c")}


@promise("Opening a store, or making one, where there is no room works or raises StoreFull, and harms nothing.")
def test_no_room_to_open(room: Room, trial: Trial) -> None:
    with opened(room) as store:
        store.create_collection("c").create_many(works.loaded(1, 100))
    for _ in trial.rounds(short=10):
        room.leave(trial.random.choice([0, 8192, 60_000, 200_000]))
        for name in ("store.db", "new.db"):
            try:
                with works.opened(room.folder / name, NOW, vacuum=False) as store:
                    assert len(store.ensure_collection("c")) in (0, 100)
            except StoreFull:
                trial.count(refused_with_StoreFull=1)
        room.free()
        with opened(room) as store:
            assert len(store.collection("c")) == 100
            assert store.check() == []
        works.opened(room.folder / "new.db", NOW, vacuum=False).close()
        for file in room.folder.glob("new*"):
            file.unlink()
        trial.count(stores_opened=2)


@promise(
    "A backup for which there is no room raises StoreFull, by the name of the copy, and leaves nothing behind.",
    share=0.3,
)
def test_no_room_for_a_backup(room: Room, trial: Trial) -> None:
    with opened(room) as store:
        store.create_collection("c").create_many(works.loaded(1, 3000))
    with opened(room) as store:
        for _ in trial.rounds(short=3):
            room.leave(trial.random.randrange(-200_000, -8192))  # less than the store itself takes
            with pytest.raises(StoreFull, match=r"copy\.db"):
                store.backup(room.folder / "copy.db")
            room.free()
            assert not list(room.folder.glob("copy*"))
            trial.count(backups_refused=1)


@promise("The vacuum, when there is no room, says so in the log and in stats(), and goes on when there is.")
def test_no_room_for_the_vacuum(room: Room, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr("ttlstore.background.FIRST_RETRY_SECONDS", 0.01)
    monkeypatch.setattr("ttlstore.background.LAST_RETRY_SECONDS", 0.01)
    path = room.folder / "store.db"
    with ttlstore.open(path, vacuum=False, clock=FakeClock()) as store:
        store.create_collection("c", default_ttl=60).create_many(works.loaded(1, 2000))
    caplog.set_level(logging.ERROR, "ttlstore.vacuum")
    with ttlstore.open(path, vacuum=False) as witness:
        room.leave(0)
        with ttlstore.open(path) as store:
            until(lambda: store.stats().vacuum.last_error is not None)
            assert "StoreFull" in str(store.stats().vacuum.last_error)
            assert len(witness.collection("c")) == 0
            room.free()
            until(lambda: store.stats().waiting_documents == 0)
            assert store.check() == []
