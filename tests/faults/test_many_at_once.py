"""Many at once"""

from collections import Counter

import pytest

import ttlstore
from tests.faults import crowd
from tests.faults.crowd import OWN_TTL, Event
from tests.faults.places import Place
from tests.faults.trial import Trial, promise
from tests.faults.victim import Victim

PROCESSES, THREADS = 8, 8
SECONDS = 2.0  # longer than the shortest ttl
MILLISECOND = 0.001  # a write counts from the next whole one


@promise(
    "Eight processes of eight threads each, all verbs on the same documents, while the default changes and the vacuum "
    "runs: no update is lost, every counter adds up, nothing is read that was never written or has expired, and "
    "nothing live is missing.",
    share=4,
)
@pytest.mark.parametrize("place", ["file", "postgres"], indirect=True)
def test_a_crowd_on_the_same_documents(place: Place, trial: Trial) -> None:
    for _ in place.rounds(short=1):
        crowd.prepare(place.target)
        ruler = Victim(crowd.rule, place.target, trial.random.getrandbits(32), SECONDS)
        members = [
            Victim(crowd.join, place.target, trial.random.getrandbits(32), THREADS, SECONDS) for _ in range(PROCESSES)
        ]
        events = [event for member in members for event in member.ended()[0]]
        history = History(events, ruler.ended()[0])
        history.check_reads()
        with ttlstore.open(place.target) as store:
            history.check_numbers({document["id"]: document.get("n", 0) for document in store.collection("c")})
            assert store.check() == []
        trial.count(operations_checked=len(events), changes_of_the_default=len(history.defaults))
        place.clear()


class History:
    """What all of them saw, and whether it can have been."""

    def __init__(self, events: list[Event], defaults: list[Event]) -> None:
        self.defaults = [Event("configure", "", 0, 0, crowd.DEFAULTS[0]), *defaults]
        self._reads = [event for event in events if event.verb == "read"]
        self._writes = [event for event in events if event.verb != "read" and event.result is not None]

    def check_numbers(self, found: dict[str, int]) -> None:
        replaced = Counter(write.before for write in self._writes if write.verb == "swap")
        assert replaced.most_common(1)[0][1] == 1, "two took the place of the same version: an update is lost"
        successes = Counter(write.id for write in self._writes if write.verb in ("incr", "swap"))
        for number in range(crowd.DOCUMENTS):
            for kind in ("counter", "swapped"):
                assert found[f"{kind} {number}"] == successes[f"{kind} {number}"]

    def check_reads(self) -> None:
        by_etag = {write.result: write for write in self._writes}
        assert len(by_etag) == len(self._writes), "an etag was given twice"
        by_id: dict[str, list[Event]] = {}
        for write in self._writes:
            by_id.setdefault(write.id, []).append(write)
        for read in self._reads:
            if read.result is None:
                assert not any(self._surely_live(write, read) for write in by_id.get(read.id, [])), "a live one is gone"
            elif read.result in by_etag:
                write = by_etag[read.result]
                assert (write.id, write.start <= read.end) == (read.id, True)
                assert not self._surely_expired(write, read), "an expired one was read"
            else:
                assert read.id.startswith(("counter", "swapped")), "it was never written"  # or by prepare()

    @staticmethod
    def _surely_live(write: Event, read: Event) -> bool:
        """Nobody deletes it, and nobody gives it less time."""
        return write.id.startswith("own") and write.end < read.start and read.end < write.start + OWN_TTL

    def _surely_expired(self, write: Event, read: Event) -> bool:
        if write.id.startswith(("counter", "swapped")):
            return False
        ttls = {OWN_TTL} if write.id.startswith("own") else self._defaults_during(read)
        return -1 not in ttls and read.start > write.end + MILLISECOND + max(ttls)

    def _defaults_during(self, read: Event) -> set[int]:
        """Those that may have been in force at any moment of the call."""
        return {
            default.result
            for number, default in enumerate(self.defaults)
            if default.start <= read.end
            and (number + 1 == len(self.defaults) or self.defaults[number + 1].end >= read.start)
        }
