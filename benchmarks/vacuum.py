"""What the vacuum costs: a million due rows among two million, idle and under a process that never rests."""

import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import ttlstore
from benchmarks.documents import document
from benchmarks.measure import Promise, percentile

DOCUMENTS = 2_000_000  # every second one is due
FOREGROUND_SECONDS = 8.0
FOREGROUND_ROUNDS = 3
OPENINGS = 15

# By hand, in the usual way: the rows to delete by the index, 2,000 at a time.
BY_HAND = """
    DELETE FROM documents WHERE seq IN (
        SELECT seq FROM documents
        WHERE collection_id = 1 AND ttl IS NOT NULL AND expires_at <= ? LIMIT 2000)
"""


def fill(path: Path, *, with_due: bool) -> None:
    """The documents that stay, and between them those that are due by now."""
    numbers = range(DOCUMENTS) if with_due else range(0, DOCUMENTS, 2)
    with ttlstore.open(path, durability="normal", vacuum=False, clock=lambda: time.time() - 3600) as store:
        orders = store.create_collection("orders", default_ttl=-1)
        orders.create_many({**document(number), "ttl": 60 if number % 2 else -1} for number in numbers)


def copy(source: Path, name: str) -> Path:
    target = source.with_name(name)
    shutil.copy(source, target)
    return target


def idle(base: Path) -> Iterator[Promise]:
    by_hand, ours = copy(base, "by-hand.db"), copy(base, "ours.db")
    connection = sqlite3.connect(by_hand, isolation_level=None)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA cache_size = -16384")
    now = int(time.time() * 1000)
    start, deleted = time.perf_counter(), 0
    while changed := connection.execute(BY_HAND, (now,)).rowcount:
        deleted += changed
    by_hand_rate = deleted / (time.perf_counter() - start)
    connection.close()
    with ttlstore.open(ours, durability="normal", vacuum=False) as store:
        start = time.perf_counter()
        job = store._vacuum  # to be stopped when all is deleted: by hand, too, the space is left as it is
        job.run(pause=time.sleep, stopped=lambda: job.stats.deleted >= deleted)
        rate = deleted / (time.perf_counter() - start)
        store.vacuum()
    yield Promise(
        f"idle: rows deleted a second, {rate:,.0f} of {by_hand_rate:,.0f} by hand",
        *(rate / by_hand_rate, 0.6, "x", True),
    )


def space(base: Path, never: Path) -> Iterator[Promise]:
    purged = base.with_name("ours.db").stat().st_size
    yield Promise(
        "size after the purge, to that of a store that never held the rows", purged / never.stat().st_size, 1.1, "x"
    )


def opening(base: Path) -> Iterator[Promise]:
    times: dict[str, list[float]] = {"due": [], "empty": []}
    with ttlstore.open(base.with_name("empty.db"), vacuum=False) as store:
        store.create_collection("orders", default_ttl=60)
    for _ in range(OPENINGS):
        for name, path in (("due", base), ("empty", base.with_name("empty.db"))):
            start = time.perf_counter()
            store = ttlstore.open(path)
            store.collection("orders")
            times[name].append(time.perf_counter() - start)
            store.close()
    due, empty = statistics.median(times["due"]), statistics.median(times["empty"])
    yield Promise(f"opening with a million due rows ({due * 1000:.1f} ms), to an empty store", due / empty, 1.25, "x")


def foreground(path: Path, seconds: float) -> dict[str, list[float]]:
    """A process that writes and reads all the time; its times per call."""
    script = f"from benchmarks.vacuum import work; work({str(path)!r}, {seconds})"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    times: dict[str, list[float]] = json.loads(done.stdout)
    return times


def work(path: str, seconds: float) -> None:
    times: dict[str, list[float]] = {"write": [], "read": []}
    with ttlstore.open(path, durability="normal") as store:
        orders = store.collection("orders")
        number, end = 0, time.perf_counter() + seconds
        while time.perf_counter() < end:
            number = (number + 7_919 * 2) % DOCUMENTS
            one = {**document(number), "ttl": -1}
            start = time.perf_counter()
            orders.upsert(one)
            middle = time.perf_counter()
            orders.read(one["id"])
            times["write"].append(middle - start)
            times["read"].append(time.perf_counter() - middle)
    print(json.dumps(times))


def under_load(base: Path, never: Path) -> Iterator[Promise]:
    busy, quiet = copy(base, "busy.db"), copy(never, "quiet.db")
    calls: dict[str, list[float]] = {"busy": [], "quiet": []}
    slowest: dict[str, dict[str, list[float]]] = {name: {"write": [], "read": []} for name in ("busy", "quiet")}
    for _ in range(FOREGROUND_ROUNDS):
        for name, path in (("quiet", quiet), ("busy", busy)):
            times = foreground(path, FOREGROUND_SECONDS)
            calls[name].append(len(times["write"]) / FOREGROUND_SECONDS)
            for kind in ("write", "read"):
                slowest[name][kind].append(percentile(times[kind], 0.99))
    with ttlstore.open(busy, vacuum=False) as store:
        left = store.stats().waiting_documents
    with_due, without = statistics.median(calls["busy"]), statistics.median(calls["quiet"])
    yield Promise(
        f"under load: throughput with due rows ({DOCUMENTS // 2 - left:,} deleted meanwhile), to without",
        *(with_due / without, 0.85, "x", True),
    )
    for kind, limit in (("write", 10.0), ("read", 1.0)):
        growth = statistics.median(slowest["busy"][kind]) - statistics.median(slowest["quiet"][kind])
        yield Promise(f"under load: growth of the 99th percentile of a {kind}", growth * 1000, limit, "ms")


def run() -> Iterator[Promise]:
    with tempfile.TemporaryDirectory() as folder:
        base, never = Path(folder, "base.db"), Path(folder, "never.db")
        fill(base, with_due=True)
        fill(never, with_due=False)
        yield from idle(base)
        yield from space(base, never)
        os.unlink(base.with_name("by-hand.db"))
        yield from under_load(base, never)
        yield from opening(base)
