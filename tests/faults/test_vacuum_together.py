"""The vacuum among processes"""

import time

import pytest

import ttlstore
from tests.faults import works
from tests.faults.places import Place
from tests.faults.trial import Trial, promise
from tests.faults.victim import PATIENCE_SECONDS, Victim
from ttlstore.testing import FakeClock

DUE, LIVE = 6000, 200


@promise(
    "Of many processes one vacuums at a time. When that one is killed another takes over, until everything that is due "
    "is deleted and nothing else.",
    share=2,
)
@pytest.mark.parametrize("place", ["file", "postgres"], indirect=True)
def test_another_takes_over_from_the_one_that_is_killed(place: Place, trial: Trial) -> None:
    for _ in place.rounds(short=1):
        an_hour_ago = time.time() - 3600
        with ttlstore.open(place.target, clock=FakeClock(an_hour_ago), vacuum=False, durability="normal") as store:
            collection = store.create_collection("c", default_ttl=60)
            collection.create_many({"id": f"due {n}"} for n in range(DUE))
            collection.create_many({"id": f"live {n}", "ttl": -1} for n in range(LIVE))
            store.create_collection("dropped").create_many({"id": f"{n}"} for n in range(DUE))
            store.delete_collection("dropped")
        for _ in range(3):
            victims = [Victim(works.keep_house, place.target) for _ in range(2)]
            for victim in victims:
                victim.hears()
            for victim in victims:
                victim.killed_after(0.02 * trial.random.random())
                trial.count(kills=1)
        last = [Victim(works.keep_house, place.target) for _ in range(2)]
        deadline = time.monotonic() + PATIENCE_SECONDS
        with ttlstore.open(place.target, vacuum=False) as store:
            while store.stats().waiting_documents:
                assert time.monotonic() < deadline, "nobody took over"
                last[0].hears()
            assert len(store.collection("c")) == LIVE
            assert store.check() == []
        for victim in last:
            victim.killed_after(0)
            trial.count(kills=1)
        with ttlstore.open(place.target, vacuum=False) as store:
            assert len(store.collection("c")) == LIVE
            assert store.check() == []
        place.clear()
