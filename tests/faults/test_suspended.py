"""Processes that are suspended"""

import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import ttlstore
from tests.faults import suspended, works
from tests.faults.ledger import Ledger, history
from tests.faults.test_kill import START, moment, shown, sound
from tests.faults.trial import Trial, promise
from tests.faults.victim import PATIENCE_SECONDS, Victim
from ttlstore import Store, StoreBusy, background
from ttlstore.testing import FakeClock

DUE = 300


class Sight(NamedTuple):
    """What another saw while the process was suspended."""

    done: int  # changes by then
    now: float
    found: dict[str, dict[str, Any]]


def another(path: Path, clock: FakeClock) -> Store:
    return ttlstore.open(path, clock=clock, vacuum=False, durability="normal", busy_timeout=0.05)


@promise(
    "While a process is suspended, at whatever moment, others see what it has done and nothing that has expired; they "
    "write, or are told StoreBusy while it has the write lock. Resumed, it goes on as if nothing had been.",
    share=2,
)
def test_suspended_at_any_moment(path: Path, trial: Trial) -> None:
    ledger = Ledger(default_ttl=5)
    with works.opened(path, START) as store:
        store.create_collection("c", default_ttl=5)
        store.create_collection("of others")
    for _ in trial.rounds(short=3):
        victim = Victim(works.write, path, START, trial.random.getrandbits(32))
        sights: list[Sight] = []
        for number in range(5):
            victim.listens(moment(trial, 0.1))
            victim.suspend()
            done = sum(word == "done" for word, _ in victim.told)
            clock = FakeClock(START)
            with another(path, clock) as store:
                sights.append(Sight(done, START, shown(store)))
                clock.advance(5)
                sights.append(Sight(done, START + 5, shown(store)))
                try:
                    store.collection("of others").upsert({"id": f"{number}"})
                    trial.count(suspensions=1)
                except StoreBusy:
                    trial.count(suspensions=1, of_them_with_the_write_lock=1)
            victim.resume()
            with works.opened(path, START, vacuum=False) as store:
                store.collection("of others").upsert({"id": f"{number}"})
        told = victim.killed_after(0.01)
        ledgers = history(ledger, told, START)
        place = 0
        with sound(path, START) as store:
            last = Sight(sum(word == "done" for word, _ in told), START, shown(store))
            assert len(store.collection("of others")) == 5
        for done, now, found in [*sights, last]:
            possible = range(max(place, done), len(ledgers))
            place = next((each for each in possible if ledgers[each].shown(now) == found), -1)
            assert place >= 0, "that was not there, or no longer"
        ledger = ledgers[place]


# --- in the middle of something -------------------------------------------------------------------------------------


def fill(path: Path, clock: FakeClock) -> None:
    """Much that expires in a minute, and some that stays."""
    with another(path, clock) as store:
        collection = store.create_collection("c", default_ttl=60)
        collection.create_many({"id": f"due {n}"} for n in range(DUE))
        collection.create({"id": "counter", "n": 1, "ttl": -1})


@promise("Of a process that is suspended in a transaction others see nothing, and are told StoreBusy if they write.")
def test_suspended_in_a_transaction(path: Path, clock: FakeClock) -> None:
    fill(path, clock)
    clock.advance(60)
    victim = Victim(suspended.in_a_transaction, path, clock())
    victim.hears()
    victim.suspend()
    with another(path, clock) as store:
        collection = store.collection("c")
        assert [document["n"] for document in collection] == [1]
        with pytest.raises(StoreBusy):
            collection.upsert({"id": "counter", "n": 0})
        report = store.vacuum(max_seconds=0.1)
        assert (report.deleted, report.finished) == (0, False)
        victim.resume()
        victim.ended()
        assert collection.read("counter")["n"] == 3
        assert store.vacuum().deleted == DUE


@promise("A process that is suspended while it reads is in nobody's way, and reads on what it began to read.")
def test_suspended_in_a_snapshot(path: Path, clock: FakeClock) -> None:
    fill(path, clock)
    victim = Victim(suspended.in_a_snapshot, path, clock())
    victim.hears()
    victim.suspend()
    clock.advance(60)
    with another(path, clock) as store:
        store.collection("c").delete("counter")
        assert store.vacuum().deleted == DUE
        store.collection("c").create({"id": "new"})
        victim.resume()
        assert sorted(victim.ended()[-1]) == sorted(["counter", *(f"due {n}" for n in range(DUE))])
        assert store.check() == []


@promise("A process that is suspended with the vacuum's turn holds up nobody's housekeeping for longer than a while.")
def test_suspended_in_its_turn(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "TURN_PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(background, "OTHERS_TURN_SECONDS", 0.05)
    fill(path, FakeClock(time.time() - 60))
    victim = Victim(suspended.in_its_turn, path)
    victim.hears()
    victim.suspend()
    with ttlstore.open(path) as store:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while store.stats().waiting_documents:
            assert time.monotonic() < deadline, "it waits for ever"
            threading.Event().wait(0.01)
        victim.resume()
        assert victim.ended()[-1] == 0, "left to delete"
        assert [document["id"] for document in store.collection("c")] == ["counter"]
        assert store.check() == []
