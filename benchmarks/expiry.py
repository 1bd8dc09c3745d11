"""A hundred thousand documents that expire at once: how long they stay visible, and who pays for it."""

import threading
import time
from collections.abc import Iterator
from itertools import count

from benchmarks.documents import document
from benchmarks.measure import percentile
from benchmarks.peers import Document, Peer
from benchmarks.work import LOAD_DOCUMENTS, Work

SHORTEST_SECONDS = 3  # that the documents live; longer where writing them takes longer
QUIET_SECONDS = 2.0  # of foreground work before, to compare with
FOREGROUND_SECONDS = 5.0  # of foreground work from the moment on
PATIENCE_SECONDS = 30.0  # for the rest of the space
LOOK_SECONDS = 0.05  # between looks at the size
SAMPLES = 20  # expired documents that are asked for by id
BACK = 1.1  # times the size before: then the space counts as given back

EXPIRY = {
    "visible": Work("expired documents stay visible, to a read or a count"),
    "space": Work("until their space is back"),
    "throughput": Work("foreground calls a second meanwhile, to before", "x", True),
    "slow read": Work("99th percentile of a read meanwhile"),
    "slow write": Work("99th percentile of a write meanwhile"),
}


class Foreground:
    """An application that reads and writes all the time."""

    def __init__(self, peer: Peer, documents: int) -> None:
        self.peer, self.documents = peer, documents
        self.numbers = count()
        self.reset()

    def reset(self) -> None:
        self.reads: list[float] = []
        self.writes: list[float] = []

    def work(self, seconds: float) -> None:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            chosen = document(next(self.numbers) * 7919 % self.documents)
            before = time.perf_counter()
            self.peer.upsert(chosen)
            between = time.perf_counter()
            self.peer.read(chosen["id"])
            self.writes.append(between - before)
            self.reads.append(time.perf_counter() - between)

    def rate(self) -> float:
        return (len(self.reads) + len(self.writes)) / (sum(self.reads) + sum(self.writes))


def expire(peer: Peer, documents: int) -> dict[str, float | str]:
    """The figures of `EXPIRY`, or why there is none. As many documents as expire stay."""
    peer.load_expiring([], 1)  # refuses where nothing expires, before time is spent
    start = time.monotonic()
    for batch in batches(range(documents)):
        peer.load(batch)
    seconds = max(SHORTEST_SECONDS, int((time.monotonic() - start) * 1.5) + 2)
    foreground = Foreground(peer, documents)
    foreground.work(QUIET_SECONDS)
    size, quiet = peer.size(), foreground.rate()
    for batch in batches(range(documents, documents * 2)):
        peer.load_expiring(batch, seconds)
    due = time.monotonic() + seconds
    time.sleep(max(0.0, due - 0.2 - time.monotonic()))
    while time.monotonic() < due:
        pass
    purge = threading.Thread(target=peer.purge)
    patience = f"not within {FOREGROUND_SECONDS + PATIENCE_SECONDS:.0f} s"
    visible: float | str = patience
    back: float | str = patience
    foreground.reset()
    looks = 0
    while (now := time.monotonic()) < due + FOREGROUND_SECONDS + PATIENCE_SECONDS:
        if isinstance(visible, str) and not sees_expired(peer, documents):
            visible = 0.0 if looks == 0 else now - due  # the first look is the moment itself
        if isinstance(back, str) and peer.size() <= size * BACK:
            back = now - due
        if looks == 0:
            purge.start()
        looks += 1
        if now < due + FOREGROUND_SECONDS:
            foreground.work(LOOK_SECONDS)
        elif isinstance(back, float) and isinstance(visible, float):
            break
        else:
            time.sleep(LOOK_SECONDS)
    purge.join()
    return {
        "visible": visible,
        "space": back,
        "throughput": foreground.rate() / quiet,
        "slow read": percentile(foreground.reads, 0.99),
        "slow write": percentile(foreground.writes, 0.99),
    }


def sees_expired(peer: Peer, documents: int) -> bool:
    """Whether a read or a count sees one of the documents that expired."""
    expired = range(documents, documents * 2, max(documents // SAMPLES, 1))
    return any(peer.read(document(number)["id"]) is not None for number in expired) or peer.count() > documents


def batches(numbers: range) -> Iterator[list[Document]]:
    for first in range(0, len(numbers), LOAD_DOCUMENTS):
        yield [document(number) for number in numbers[first : first + LOAD_DOCUMENTS]]
