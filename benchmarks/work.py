"""The kinds of work that are measured, each a function that runs in the process of one peer."""

import gc
import random
import resource
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from benchmarks.documents import document
from benchmarks.peers import Document, NotOfferedError, Peer

CALLS = 4000  # a round, unless the time is used up before
ROUND_SECONDS = 0.25  # for a round of point operations
SCALE_SECONDS = 0.25  # for a round with many threads or processes
LOAD_DOCUMENTS = 10_000  # handed over at a time, so that they are made outside of the time that is taken
WRITES_IN_MIXED = 20  # one of so many calls is a write: 5 %
ORDERS_OF_A_CUSTOMER = 10  # at every size, so that a query finds the same number of documents

Unit = Literal["s", "bytes", "1/s", "x"]


@dataclass(frozen=True)
class Work:
    """What is measured, and how its figure reads."""

    title: str
    unit: Unit = "s"
    more_is_better: bool = False
    axis: Literal["documents", "threads", "processes"] = "documents"


@dataclass(frozen=True)
class Plan:
    """What a round works on."""

    size: int
    round: int

    def document(self, number: int) -> Document:
        return document(number, customers=max(self.size // ORDERS_OF_A_CUSTOMER, 1))

    def chosen(self, calls: int = CALLS) -> list[Document]:
        """Documents of the store at random: others in each round, the same for each peer."""
        numbers = random.Random(self.round).choices(range(self.size), k=calls)
        return [self.document(number) for number in numbers]


WORK = {
    "load": Work("bulk load, per document"),
    "read": Work("read one"),
    "miss": Work("read one that is not there"),
    "upsert": Work("upsert one"),
    "mixed": Work("95 reads to 5 upserts, per call"),
    "index": Work("make an index on a property, per document"),
    "query": Work(f"query by an indexed property, {ORDERS_OF_A_CUSTOMER} documents found"),
    "count": Work("count all"),
    "iterate": Work("iterate over all, per document"),
    "open": Work("open and read one"),
    "size": Work("bytes on disk, per document", "bytes"),
    "memory": Work("memory that all of this took, once open", "bytes"),
}


def per_call(call: Callable[[Any], object], items: Iterable[Any], seconds: float = ROUND_SECONDS) -> float:
    """Seconds a call, with the items in turn, until they or the time are used up."""
    todo, done, chunk = deque(items), 0, 1
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        while todo and time.perf_counter() - start < seconds:
            for _ in range(min(chunk, len(todo))):
                call(todo.popleft())
                done += 1
            chunk = min(chunk * 2, 256)  # so that the time is rarely looked at, but by peers that take long
        return (time.perf_counter() - start) / done
    finally:
        gc.enable()


def load(peer: Peer, plan: Plan) -> float:
    taken = 0.0
    for first in range(0, plan.size, LOAD_DOCUMENTS):
        documents = [plan.document(number) for number in range(first, min(first + LOAD_DOCUMENTS, plan.size))]
        start = time.perf_counter()
        peer.load(documents)
        taken += time.perf_counter() - start
    start = time.perf_counter()
    peer.loaded()
    return (taken + time.perf_counter() - start) / plan.size


def read(peer: Peer, plan: Plan) -> float:
    return per_call(peer.read, [chosen["id"] for chosen in plan.chosen()])


def miss(peer: Peer, plan: Plan) -> float:
    return per_call(peer.read, [f"{chosen['id']}-gone" for chosen in plan.chosen()])


def upsert(peer: Peer, plan: Plan) -> float:
    return per_call(peer.upsert, plan.chosen())


def mixed(peer: Peer, plan: Plan) -> float:
    return per_call(mixed_call(peer), enumerate(plan.chosen()))


def mixed_call(peer: Peer) -> Callable[[tuple[int, Document]], None]:
    def call(numbered: tuple[int, Document]) -> None:
        position, chosen = numbered
        if (position + 1) % WRITES_IN_MIXED:
            peer.read(chosen["id"])
        else:
            peer.upsert(chosen)

    return call


def index(peer: Peer, plan: Plan) -> float:
    start = time.perf_counter()
    peer.index()
    return (time.perf_counter() - start) / plan.size


def query(peer: Peer, plan: Plan) -> float:
    customers = [chosen["customerId"] for chosen in plan.chosen(CALLS // 10)]
    found = len(peer.of_customer(customers[0]))
    if found != ORDERS_OF_A_CUSTOMER:
        raise AssertionError(f"{found} documents of a customer instead of {ORDERS_OF_A_CUSTOMER}")
    return per_call(peer.of_customer, customers)


def count(peer: Peer, plan: Plan) -> float:
    found = peer.count()
    if found != plan.size:
        raise AssertionError(f"{found} documents instead of {plan.size}")
    return per_call(lambda _: peer.count(), range(100))


def iterate(peer: Peer, plan: Plan) -> float:
    start = time.perf_counter()
    found = sum(1 for _ in peer.all())
    if found != plan.size:
        raise AssertionError(f"{found} documents instead of {plan.size}")
    return (time.perf_counter() - start) / found


def size(peer: Peer, plan: Plan) -> float:
    return peer.size() / plan.size


def highest_memory() -> int:
    """The most memory that this program ever held, in bytes."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):  # not getrusage(): it counts what was in the process before the program
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


# --- many at once ---------------------------------------------------------------------------------------------------

SHARED = {
    "read in threads": Work("reads a second of all threads", "1/s", True, "threads"),
    "mixed in threads": Work("95 reads to 5 upserts, calls a second of all threads", "1/s", True, "threads"),
    "read in processes": Work("reads a second of all processes", "1/s", True, "processes"),
    "mixed in processes": Work("95 reads to 5 upserts, calls a second of all processes", "1/s", True, "processes"),
}


def calls_in_time(peer: Peer, plan: Plan, kind: str, seconds: float = SCALE_SECONDS) -> int:
    """How many calls one after the other fit into the time."""
    chosen = plan.chosen()
    call: Callable[[Any], object] = peer.read if kind == "read" else mixed_call(peer)
    items: list[Any] = [each["id"] for each in chosen] if kind == "read" else list(enumerate(chosen))
    done, end = 0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = done % len(items)
        for item in items[start : start + 32]:
            call(item)
            done += 1
    return done


def in_threads(peer: Peer, plan: Plan, kind: str, threads: int) -> float:
    """Calls a second of all threads together."""
    if not peer.many_threads:
        raise NotOfferedError("not for many threads")
    done: list[int] = []

    def work(number: int) -> None:
        own = peer.for_thread()
        done.append(calls_in_time(own, Plan(plan.size, plan.round * 100 + number), kind))
        if own is not peer:
            own.close()

    running = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if len(done) < threads:
        raise RuntimeError(f"{threads - len(done)} of {threads} threads failed")
    return sum(done) / SCALE_SECONDS
