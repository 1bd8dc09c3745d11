"""Hosts that come and go"""

from pathlib import Path

import pytest

from tests.faults import works
from tests.faults.ledger import Ledger
from tests.faults.places import Place
from tests.faults.trial import Trial, promise
from tests.faults.victim import Victim
from ttlstore.engine.postgres.connections import MAX_CONNECTIONS

NOW = 1_700_000_000.0


@promise(
    "A signal whose handler raises, as Ctrl-C does, interrupts any call: the change is made as a whole or not at all, "
    "no lock or transaction stays behind, and every thread can use the store as before.",
    share=2,
)
def test_interrupted_by_a_signal(path: Path, trial: Trial) -> None:
    with works.opened(path, NOW) as store:
        store.create_collection("c", default_ttl=60)
    ledger = Ledger(default_ttl=60)
    for _ in trial.rounds(short=1):
        told = Victim(works.interrupt, path, NOW, trial.random.getrandbits(32), 150).ended()
        for word, said in told:
            if word == "done":
                ledger.apply(said, NOW)
            elif word == "interrupted":
                pending = said
                trial.count(interrupted_calls=1)
            elif word == "seen":
                said.pop("of another thread", None)
                if said != numbers(ledger):
                    ledger.apply(pending, NOW)
                    assert said == numbers(ledger)
                pending = []
            elif word == "others":
                assert said == []


@promise(
    "Whatever call on PostgreSQL such a signal interrupts, no connection is lost by it: as many threads as before can "
    "use the store at the same time."
)
@pytest.mark.parametrize("place", ["postgres"], indirect=True)
def test_no_connection_is_lost_to_signals(place: Place, trial: Trial) -> None:
    with works.opened(place.target, NOW) as store:
        store.create_collection("c", default_ttl=60).create({"id": "a"})
    for _ in trial.rounds(short=1):
        told = Victim(works.interrupt_reads, place.target, NOW, 600).ended()
        assert told == [[["a"]] * MAX_CONNECTIONS]
        trial.count(interrupted_calls=600)


def numbers(ledger: Ledger) -> dict[str, int]:
    return {id: document["n"] for id, document in ledger.shown(NOW).items()}


@promise(
    "One process may open a store as often as it likes: what it writes is not lost to another that comes and goes."
)
def test_a_store_opened_twice_in_one_process(path: Path, trial: Trial) -> None:
    first = works.opened(path, NOW, vacuum=False)
    collection = first.create_collection("c")
    for number in trial.rounds(short=2):
        second = works.opened(path, NOW, vacuum=False)
        if number % 2:
            second.close()
        assert Victim(works.come_and_go, path, NOW).ended() == [number]
        collection.create({"id": f"{number}"})
        assert Victim(works.come_and_go, path, NOW).ended() == [number + 1]
        second.close()
        trial.count(second_opens=1)
    first.close()


@promise(
    "What a forked child writes is not lost when the parent's threads come to their end at the same moment.", share=2
)
def test_a_fork_while_threads_end(path: Path, trial: Trial) -> None:
    expected = 0
    for _ in trial.rounds(short=3):
        told = Victim(works.fork_while_threads_end, path, NOW, 20).ended()
        expected += 40
        with works.opened(path, NOW, vacuum=False) as store:
            assert told == [0] * 20
            assert len(store.collection("c")) == expected
            assert store.check() == []
        trial.count(forks=20)


@promise("A child that is forked while its parent reads a snapshot is told that it cannot use the store.")
def test_a_fork_while_a_snapshot_is_read(path: Path) -> None:
    assert Victim(works.fork_in_a_snapshot, path, NOW).ended() == ["StoreFailed", 0, 500, 1]
    with works.opened(path, NOW, vacuum=False) as store:
        assert len(store.collection("c")) == 501
        assert store.check() == []
