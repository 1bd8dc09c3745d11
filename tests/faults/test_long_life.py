"""Long lives"""

from pathlib import Path

import ttlstore
from tests.faults import works
from tests.faults.ledger import Ledger
from tests.faults.trial import Trial, promise
from tests.faults.victim import Victim
from ttlstore.testing import FakeClock

MINUTES_OF_A_DAY = 24 * 60
ROOM_FOR_NOISE = 6 * 1024 * 1024  # bytes that an allocator may keep


@promise(
    "A day of work, by the clock: every minute writes, expiry and the vacuum, changes of the default and restarts "
    "agree with a model, no row outlives its document, and the file stays small.",
    share=2,
)
def test_a_day_of_work(tmp_path: Path, trial: Trial) -> None:
    for day in trial.rounds(short=1):
        path = tmp_path / f"{day}.db"
        clock, ledger = FakeClock(), Ledger(default_ttl=900)
        store = ttlstore.open(path, clock=clock, vacuum=False, durability="normal")
        store.create_collection("c", default_ttl=900)
        for minute in range(MINUTES_OF_A_DAY):
            collection = store.collection("c")
            for step in works.planned(trial.random, minute):
                works.take(collection, step)
                ledger.apply([step], clock())
            if minute % 5 == 0:
                found = {document["id"]: document["n"] for document in collection}
                assert found == {id: document["n"] for id, document in ledger.shown(clock()).items()}
                assert store.vacuum().finished
                assert store.stats().waiting_documents == 0
                ledger.rows["c"] = ledger.live("c", round(clock() * 1000))
            if minute % 60 == 59:
                default_ttl = trial.random.choice([None, -1, 60, 900])
                collection.configure(default_ttl=default_ttl)
                ledger.default_ttl["c"] = default_ttl
                store.close()
                store = ttlstore.open(path, clock=clock, vacuum=False, durability="normal")
            clock.advance(60)
        assert store.check() == []
        store.close()
        assert path.stat().st_size < 40 * 20_000
        trial.count(hours_simulated=24)


@promise("Opened and closed thousands of times, a store leaves no file, thread or memory behind.")
def test_opened_and_closed_over_and_over(path: Path, trial: Trial) -> None:
    for _ in trial.rounds(short=1):
        (files, threads, memory), after = Victim(works.open_and_close, path, 150).ended()
        assert after[:2] == [files, threads]
        assert after[2] - memory < ROOM_FOR_NOISE
        trial.count(times_opened_and_closed=150)
