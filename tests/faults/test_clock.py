"""Clocks that are wrong"""

import itertools
from pathlib import Path

import ttlstore
from tests.faults.ledger import Ledger
from tests.faults.trial import Trial, promise
from ttlstore.clockguard import TOLERANCE_SECONDS, ClockGuard
from ttlstore.testing import FakeClock
from ttlstore.vacuum import Vacuum, VacuumPolicy

DAY, YEAR = 86_400.0, 365 * 86_400.0


class SetClock:
    """A wall clock that somebody sets, and that goes with the true time otherwise."""

    def __init__(self, true: FakeClock) -> None:
        self.ahead = 0.0
        self._true = true

    def __call__(self) -> float:
        return round(self._true() + self.ahead, 3)


class JumpingClock(SetClock):
    """Is set forward by a year between two of its readings."""

    def __init__(self, true: FakeClock) -> None:
        super().__init__(true)
        self.readings_left = -1

    def __call__(self) -> float:
        if self.readings_left == 0:
            self.ahead = YEAR
        self.readings_left -= 1
        return super().__call__()


@promise(
    "A clock that is set forward at any instant of the vacuum's work, between any two of its looks, destroys nothing."
)
def test_a_jump_between_any_two_readings(path: Path, trial: Trial) -> None:
    for readings in itertools.count():
        true = FakeClock()
        wall = JumpingClock(true)
        with ttlstore.open(path, clock=wall, vacuum=False) as store:
            collection = store.create_collection("c", default_ttl=3600)
            collection.create_many({"id": f"due {n}", "ttl": 1} for n in range(60))
            collection.create_many({"id": f"live {n}", "ttl": 3600} for n in range(60))
            true.advance(2)
            vacuum = Vacuum(store._engine, wall, ClockGuard(wall, true), VacuumPolicy())
            wall.readings_left = readings
            report = vacuum.run(pause=lambda seconds: None)
            untouched = wall.readings_left >= 0
            wall.ahead, wall.readings_left = 0.0, -1
            assert len(collection) == 60
            assert untouched or report.holding or report.finished
        path.unlink()
        trial.count(jumps=1)
        if untouched:
            assert readings > 10
            return


@promise(
    "Set back or forward by seconds, days or years: what expires is what the contract says by that clock, and once the "
    "clock is right again everything is there that should be. The vacuum holds meanwhile."
)
def test_a_clock_that_is_set_to_and_fro(path: Path, trial: Trial) -> None:
    true = FakeClock()
    wall = SetClock(true)
    ledger = Ledger(default_ttl=600)
    with ttlstore.open(path, clock=wall, vacuum=False, durability="normal") as store:
        collection = store.create_collection("c", default_ttl=600)
        vacuum = Vacuum(store._engine, wall, ClockGuard(wall, true), VacuumPolicy())
        for number in trial.rounds(short=60):
            for id in range(4):
                document = {"id": f"{number % 50}/{id}", "n": number, "ttl": trial.random.choice([-1, 30, 7200])}
                collection.upsert(document)
                ledger.apply([("upsert", document)], wall())
            true.advance(trial.random.choice([0.5, 40, 700]))
            vacuum.run(pause=lambda seconds: None)
            assert ids(store) == set(ledger.shown(wall()))
            wall.ahead = trial.random.choice([11, DAY, YEAR, 30 * YEAR, -1, -60, -DAY, -YEAR])
            assert ids(store) == set(ledger.shown(wall())) or wall.ahead < 0, "what was deleted in time stays deleted"
            report = vacuum.run(pause=lambda seconds: None)
            assert bool(report.holding) == (wall.ahead > TOLERANCE_SECONDS)
            wall.ahead = 0.0
            assert ids(store) == set(ledger.shown(wall()))
            trial.count(settings_of_the_clock=2)
        assert store.check() == []


def ids(store: ttlstore.Store) -> set[str]:
    return {document["id"] for document in store.collection("c")}
