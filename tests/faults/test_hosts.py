"""Hosts that come and go"""

from pathlib import Path

from tests.faults import works
from tests.faults.ledger import Ledger
from tests.faults.trial import Trial, promise
from tests.faults.victim import Victim

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


def numbers(ledger: Ledger) -> dict[str, int]:
    return {id: document["n"] for id, document in ledger.shown(NOW).items()}
