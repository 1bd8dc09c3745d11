"""What the processes do that are killed. Each tells what it is about to do and what is done."""

import gc
import itertools
import os
import random
import signal
import sqlite3
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

import alembic.command  # noqa: F401  # now: a process that migrates would spend its short life on importing it
import psycopg

import ttlstore
import ttlstore.engine.postgres.engine  # as alembic
from tests.faults.victim import LOST, Tell
from ttlstore import Collection, DocumentExists, DocumentNotFound, IndexingPolicy, Store
from ttlstore.cli import cli
from ttlstore.copying import copy
from ttlstore.engine import Durability
from ttlstore.engine.postgres.connections import MAX_CONNECTIONS

Target = str | Path
Step = tuple[Any, ...]

IDS = [f"id {n}" for n in range(12)]
TTLS = [None, None, -1, 1, 5, 60]
INDEXED: list[tuple[Any, ...]] = [(), ("/n",), ("/n", "/load"), (("/load", "/n"),)]
REFUSALS = (DocumentExists, DocumentNotFound)


def opened(path: Target, now: float, *, vacuum: bool = True, durability: Durability | None = None) -> Store:
    """At a time that stands still, so that it is known what has expired.

    The crash of a client takes nothing from `normal` either, but that of a server does.
    """
    if durability is None:
        durability = "full" if "://" in str(path) else "normal"
    return ttlstore.open(path, clock=lambda: now, vacuum=vacuum, durability=durability, busy_timeout=30)


# --- documents one by one -------------------------------------------------------------------------------------------


def planned(chance: random.Random, number: int) -> list[Step]:
    """The steps of one change: one, or several that are a transaction."""
    return [_step(chance, number) for _ in range(chance.choice([1, 1, 1, 2, 5]))]


def _step(chance: random.Random, number: int) -> Step:
    verb = chance.choice(["create", "upsert", "upsert", "replace", "incr", "touch", "delete"])
    id = chance.choice(IDS)
    if verb in ("touch", "delete", "incr"):
        return verb, id
    document = {"id": id, "n": number, "text": "x" * chance.choice([0, 10, 3000, 20_000])}
    ttl = chance.choice(TTLS)
    return verb, document if ttl is None else {**document, "ttl": ttl}


def take(collection: Collection, step: Step) -> None:
    verb, argument = step
    with suppress(*REFUSALS):
        if verb == "incr":
            collection.patch(argument, [{"op": "incr", "path": "/n", "value": 1}])
        else:
            getattr(collection, verb)(argument)


def write(tell: Tell, path: Target, now: float, seed: int) -> None:
    chance = random.Random(seed)
    with opened(path, now) as store:
        collection = store.collection("c")
        for number in itertools.count(1):
            change = planned(chance, number)
            tell(("about to", change))
            with store.transaction() if len(change) > 1 else nullcontext():
                for step in change:
                    take(collection, step)
            tell(("done", change))


def outlive(tell: Tell, path: Target, now: float, seed: int) -> None:
    """As `write`, by a client that goes on after the end of its server. It tells what it finds when that is back."""
    chance = random.Random(seed)
    store = opened(path, now)
    collection = store.collection("c")
    for number in itertools.count(1):
        change = planned(chance, number)
        tell(("about to", change))
        try:
            with store.transaction() if len(change) > 1 else nullcontext():
                for step in change:
                    take(collection, step)
            tell(("done", change))
        except LOST:
            tell(("lost", change))
            tell(("found", *_found_again(collection)))


def _found_again(collection: Collection) -> tuple[dict[str, int], int]:
    """What is there as soon as somebody answers, and after how many calls that failed."""
    for failures in itertools.count():
        with suppress(*LOST):
            return {document["id"]: document["n"] for document in collection}, failures
        threading.Event().wait(0.001)
    raise AssertionError


# --- many at once ---------------------------------------------------------------------------------------------------


def load(tell: Tell, path: Target, now: float, seed: int, first: int) -> None:
    """Bulk loads, one after the other: in batches of their own, and in a transaction."""
    chance = random.Random(seed)
    with opened(path, now) as store:
        collection = store.collection("c")
        for number in itertools.count(first):
            size, whole = chance.choice([10, 1500, 4000]), chance.random() < 0.3
            tell(("about to", number, size, whole))
            with store.transaction() if whole else nullcontext():
                collection.create_many(loaded(number, size))
            tell(("done", number, size, whole))


def loaded(number: int, size: int) -> Iterator[dict[str, Any]]:
    return ({"id": f"{number}/{n}", "load": number, "n": n} for n in range(size))


def copy_from(tell: Tell, path: Target, source: Path, now: float) -> None:
    tell("about to")
    copy(source, path, clock=lambda: now, progress=lambda copied, _: tell(copied))
    tell("done")


def copy_until(tell: Tell, path: Target, source: str, now: float, last: int) -> None:
    """Copy so many documents, and stay there."""

    def told(copied: int, _: int) -> None:
        if copied >= last:
            tell(copied)
            signal.pause()

    copy(source, path, clock=lambda: now, progress=told)


def run_import(tell: Tell, path: Target, file: Path) -> None:
    sys.stderr = open("/dev/null", "w")  # noqa: SIM115  # for the rest of the process
    tell("about to")
    cli.main(["import", str(path), "c", str(file)], standalone_mode=False)
    tell("done")


# --- housekeeping ---------------------------------------------------------------------------------------------------


def vacuum(tell: Tell, path: Target, now: float) -> None:
    with opened(path, now, vacuum=False) as store:
        tell("at work")
        store.vacuum()
        tell("done")


def stay_open(tell: Tell, path: Path, now: float) -> None:
    """Leave it to the vacuum's thread, and do nothing else."""
    with opened(path, now) as store:
        tell("at work")
        for number in itertools.count(1):
            tell(store.stats().vacuum.deleted)
            store.collection("c").upsert({"id": "alive", "ttl": -1, "n": number})


def back_up(tell: Tell, path: Path, folder: Path, now: float, first: int) -> None:
    with opened(path, now, vacuum=False) as store:
        for number in itertools.count(first):
            tell(("about to", number))
            store.backup(folder / f"{number}.db")
            tell(("done", number))


def migrate(tell: Tell, path: Target, now: float) -> None:
    tell("about to")
    with opened(path, now, vacuum=False):
        tell("done")


def die_at_statement(tell: Tell, path: Target, now: float, last: int) -> None:
    """Open the store, and die before the statement of this number is run."""
    numbers = itertools.count(1)
    tell("about to")

    def count(_: object = None) -> None:
        if next(numbers) == last:
            os.kill(os.getpid(), signal.SIGKILL)

    class Mortal(sqlite3.Connection):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.set_trace_callback(count)

    run = psycopg.Cursor.execute

    def count_and_run(*arguments: Any, **options: Any) -> psycopg.Cursor[Any]:
        count()
        return run(*arguments, **options)

    sqlite3.connect = partial(sqlite3.connect, factory=Mortal)  # type: ignore[assignment]
    psycopg.Cursor.execute = count_and_run  # type: ignore[method-assign,assignment]
    with opened(path, now, vacuum=False):
        tell("done")


# --- collections ----------------------------------------------------------------------------------------------------


def drop_and_make(tell: Tell, path: Target, now: float, first: int, size: int) -> None:
    with opened(path, now) as store:
        for number in itertools.count(first):
            tell(("about to drop", number))
            store.delete_collection("c")
            tell(("dropped", number))
            with store.transaction():
                store.create_collection("c", default_ttl=60).create_many(loaded(number, size))
            tell(("made", number))


def build_indexes(tell: Tell, path: Target, now: float, seed: int) -> None:
    chance = random.Random(seed)
    with opened(path, now) as store:
        for paths in iter(lambda: chance.choice(INDEXED), None):
            policy = IndexingPolicy(chance.choice(["consistent", "lazy"]), paths)
            tell(("about to", policy))
            store.collection("c").configure(indexing=policy)
            tell(("done", policy))


# --- hosts ----------------------------------------------------------------------------------------------------------


class Interrupted(Exception):
    """Raised by a signal's handler, as KeyboardInterrupt is, or the time limit of a job."""


def interrupt(tell: Tell, path: Path, now: float, seed: int, rounds: int) -> None:
    """Make changes that a signal interrupts anywhere; tell what was done, and whether others can go on afterwards."""
    chance = random.Random(seed)

    def interrupted(*_: object) -> None:
        raise Interrupted

    signal.signal(signal.SIGALRM, interrupted)
    store = opened(path, now)
    collection = store.collection("c")
    for number in range(rounds):
        change = planned(chance, number)
        tell(("about to", change))
        try:
            signal.setitimer(signal.ITIMER_REAL, chance.choice([2e-5, 1e-4, 3e-4]) * chance.random() + 1e-6)
            with store.transaction() if len(change) > 1 else nullcontext():
                for step in change:
                    take(collection, step)
            signal.setitimer(signal.ITIMER_REAL, 0)
            tell(("done", change))
        except Interrupted:
            signal.setitimer(signal.ITIMER_REAL, 0)
            tell(("interrupted", change))
        tell(("seen", seen_by_another(path, now)))
        failures: list[str] = []
        thread = threading.Thread(target=_write_in_a_thread, args=(collection, failures))
        thread.start()
        thread.join()
        tell(("others", failures))
    store.close()


def seen_by_another(path: Target, now: float) -> dict[str, Any]:
    with opened(path, now, vacuum=False) as store:
        return {document["id"]: document["n"] for document in store.collection("c")}


def _write_in_a_thread(collection: Collection, failures: list[str]) -> None:
    try:
        collection.upsert({"id": "of another thread", "n": 0, "ttl": -1})
    except ttlstore.TtlStoreError as error:
        failures.append(repr(error))


def interrupt_reads(tell: Tell, target: Target, now: float, interrupts: int) -> None:
    """Read until a signal interrupts that, again and again; tell the ids that as many threads as can read at once see.

    A process of its own does that: where such an exception is raised in what measures coverage, it stays locked.
    """

    rung = False

    def interrupted(*_: object) -> None:
        nonlocal rung
        rung = True
        raise Interrupted

    signal.signal(signal.SIGALRM, interrupted)
    sys.unraisablehook = lambda _: None  # of those that are raised where nobody can catch them
    with ttlstore.open(target, clock=lambda: now, vacuum=False, busy_timeout=2.0) as store:
        collection = store.collection("c")
        for _ in range(interrupts):
            rung = False
            with suppress(Interrupted):
                signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0001, 0.001))
                while not rung:
                    with suppress(ttlstore.TtlStoreError):
                        collection.get("a")
                        with store.transaction():
                            collection.get("a")
        everybody = threading.Barrier(MAX_CONNECTIONS)

        def read(_: int) -> list[str]:
            with store.transaction():
                everybody.wait(30)
                return [document["id"] for document in collection]

        with ThreadPoolExecutor(MAX_CONNECTIONS) as pool:
            tell(list(pool.map(read, range(MAX_CONNECTIONS))))


def wait_to_be_killed() -> None:
    threading.Event().wait()


def come_and_go(tell: Tell, path: Path, now: float) -> None:
    with opened(path, now, vacuum=False) as store:
        tell(len(store.collection("c")))


def fork_while_threads_end(tell: Tell, path: Path, now: float, rounds: int) -> None:
    """Each time a thread writes and ends, and a child writes and ends."""
    store = opened(path, now)
    collection = store.ensure_collection("c")
    for _ in range(rounds):
        begun = threading.Event()

        def write(begun: threading.Event = begun) -> None:
            begun.set()
            collection.create({})

        thread = threading.Thread(target=write)
        thread.start()
        begun.wait()
        child = os.fork()
        if child == 0:
            try:
                collection.create({})
                store.close()
            except BaseException:
                os._exit(1)
            os._exit(0)
        tell(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        thread.join()
    store.close()


def keep_house(tell: Tell, path: Target) -> None:
    """Leave it to the vacuum's thread, by the real clock, and tell how far it is."""
    with ttlstore.open(path) as store:
        while True:
            tell(store.stats().vacuum.deleted)
            threading.Event().wait(0.005)


def open_and_close(tell: Tell, path: Path, cycles: int) -> None:
    """Tell the open files, threads and bytes of memory after the first cycles and after the last."""
    for number in range(cycles):
        store = ttlstore.open(path, durability="normal")
        collection = store.ensure_collection("c", default_ttl=60)
        collection.upsert({"id": "a"})
        thread = threading.Thread(target=lambda collection=collection: list(collection))
        thread.start()
        thread.join()
        list(collection.snapshot())
        store.close()
        if number in (cycles // 3, cycles - 1):
            gc.collect()
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            tell([len(os.listdir("/proc/self/fd")), threading.active_count(), pages * os.sysconf("SC_PAGE_SIZE")])


def fork_in_a_snapshot(tell: Tell, path: Path, now: float) -> None:
    with opened(path, now, vacuum=False) as store:
        collection = store.create_collection("c")
        collection.create_many(loaded(1, 500))
        documents = collection.snapshot()
        seen = len([next(documents)])
        child = os.fork()
        if child == 0:
            try:
                collection.read("1/1")
            except ttlstore.TtlStoreError as error:
                tell(type(error).__name__)
            del documents
            os._exit(0)
        tell(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        tell(seen + len(list(documents)))
        collection.create({"id": "afterwards"})
        tell(sum(document["id"] == "afterwards" for document in collection))
