"""Queries: with an index, over all documents, in order, and all of them; against the same by hand."""

import json
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson

import ttlstore
from benchmarks.documents import document
from benchmarks.measure import Bar, Comparison, Promise, compare
from ttlstore.engine.sqlite.connections import CACHE_KIB
from ttlstore.unset import UNSET

DOCUMENTS = 100_000  # for a daily run; a million takes some minutes
HITS = 100
TTL = 24 * 3600
INDEXES = ("/customerId", "/total", ("/status", "/total"))

TYPICAL = "SELECT c.id, c.total FROM c WHERE c.status = @status AND c.total > @least ORDER BY c.total DESC"


def fill(path: Path, documents: int) -> None:
    with ttlstore.open(path, durability="normal", vacuum=False) as store:
        orders = store.create_collection("orders", default_ttl=TTL)
        customers = max(documents // HITS, 1)
        orders.create_many(document(number, customers=customers) for number in range(documents))
        orders.configure(indexing=ttlstore.IndexingPolicy(paths=INDEXES))


class ByHand:
    """The same table, with the indexes and the SQL that one would write for these queries."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        names = "SELECT name FROM sqlite_master WHERE name LIKE 'documents_of_%'"
        for (name,) in self.connection.execute(names).fetchall():
            self.connection.execute(f"DROP INDEX {name}")
        for property in ("customerId", "total"):
            self.connection.execute(f"CREATE INDEX by_{property} ON documents (json_extract(body, '$.{property}'))")

    def documents(self, ending: str, *values: Any) -> list[dict[str, Any]]:
        sql = f"SELECT body, _ts, etag FROM documents WHERE _ts + {TTL * 1000} > ? {ending}"
        found = []
        for body, ts, etag in self.connection.execute(sql, (time.time_ns() // 1_000_000, *values)):
            one = orjson.loads(body)
            one["_ts"], one["_etag"] = ts // 1000, etag
            found.append(one)
        return found

    def count(self, condition: str, value: Any) -> int:
        sql = f"SELECT count(*) FROM documents WHERE _ts + {TTL * 1000} > ? AND {condition}"
        count: int = self.connection.execute(sql, (time.time_ns() // 1_000_000, value)).fetchone()[0]
        return count


def repeated(work: Callable[[], object], times: int) -> Callable[[], None]:
    def run() -> None:
        for _ in range(times):
            work()

    return run


def compared(
    title: str, ours: Callable[[], Any], by_hand: Callable[[], Any], *bars: Bar, times: int = 1, rounds: int = 9
) -> Comparison:
    assert ours() == by_hand(), title
    contenders = {"ttlstore": repeated(ours, times), "by hand": repeated(by_hand, times)}
    return compare(title, contenders, *bars, units=times, rounds=rounds)


def answers(orders: ttlstore.Collection, by_hand: ByHand, documents: int) -> Iterator[Comparison | Promise]:
    chosen = "C-00007"
    yield compared(
        f"equality on an indexed path: {HITS} of {documents:,} documents",
        lambda: list(orders.query("SELECT * FROM c WHERE c.customerId = @customer", {"customer": chosen})),
        lambda: by_hand.documents("AND json_extract(body, '$.customerId') = ?", chosen),
        Bar("by hand", 1.5),
        times=20,
    )
    least = documents // 2
    yield compared(
        f"count by a number without an index, over {documents:,} documents",
        lambda: list(orders.query("SELECT VALUE COUNT(1) FROM c WHERE c.sequence >= @least", {"least": least})),
        lambda: [by_hand.count("json_extract(body, '$.sequence') >= ?", least)],
        Bar("by hand", 1.3),
        rounds=5,
    )
    yield compared(
        f"count by a string without an index, over {documents:,} documents",
        lambda: list(orders.query("SELECT VALUE COUNT(1) FROM c WHERE c.address.city = 'Rome'")),
        lambda: [by_hand.count("json_extract(body, '$.address.city') = ?", "Rome")],
        Bar("by hand", 1.3),
        rounds=5,
    )
    for direction in ("", " DESC"):
        yield from first_in_order(orders, by_hand, documents, direction)


def first_in_order(
    orders: ttlstore.Collection, by_hand: ByHand, documents: int, direction: str
) -> Iterator[Comparison | Promise]:
    ordered = compared(
        f"the first 20 of {documents:,} documents in the order of an indexed path{direction}",
        lambda: list(orders.query(f"SELECT * FROM c ORDER BY c.total{direction} OFFSET 0 LIMIT 20")),
        lambda: by_hand.documents(f"ORDER BY json_extract(body, '$.total'){direction}, seq{direction} LIMIT 20"),
        times=20,
    )
    yield ordered
    if ordered.seconds["by hand"] < 0.001:
        yield Promise("  which by hand takes less than 1 ms", ordered.seconds["ttlstore"] * 1000, 2.0, "ms")


def planning(orders: ttlstore.Collection) -> Iterator[Promise]:
    queries, parameters = orders._queries, {"status": "open", "least": 10}
    for title, texts, limit in (
        ("parse and plan a new text", [f"{TYPICAL} -- {number}" for number in range(300)], 150.0),
        ("parse and plan a text that was seen before", [TYPICAL] * 2000, 150.0),
    ):
        queries._allowed_statement(queries._asked(TYPICAL, parameters, UNSET, scan=False))
        times = []
        for text in texts:
            start = time.perf_counter()
            queries._allowed_statement(queries._asked(text, parameters, UNSET, scan=False))
            times.append(time.perf_counter() - start)
        yield Promise(title, sorted(times)[len(times) // 2] * 1e6, limit, "µs")


def iterate(path: str) -> None:
    """In a process of its own: what it takes to read every document by a query."""
    with ttlstore.open(path, vacuum=False) as store:
        orders = store.collection("orders")
        count = sum(1 for _ in orders.query("SELECT * FROM c"))
        assert count == sum(1 for _ in orders.query("SELECT * FROM c WHERE c.total >= 0"))  # by the index
    print(json.dumps({"documents": count, "mebibytes": peak_mebibytes()}))


def peak_mebibytes() -> float:
    status = Path("/proc/self/status")
    if status.exists():  # what getrusage tells on Linux begins with the memory of the parent
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def memory(path: Path) -> Iterator[Promise]:
    done = subprocess.run(
        [sys.executable, "-c", f"from benchmarks import query; query.iterate({str(path)!r})"],
        check=True,
        capture_output=True,
        text=True,
    )
    measured = json.loads(done.stdout)
    title = f"memory of a process that reads {measured['documents']:,} documents"
    yield Promise(title, measured["mebibytes"], 100.0, "MiB")


def run(documents: int = DOCUMENTS) -> Iterator[Comparison | Promise]:
    with tempfile.TemporaryDirectory() as folder:
        path, copy = Path(folder, "ours.db"), Path(folder, "by-hand.db")
        fill(path, documents)
        shutil.copy(path, copy)
        by_hand = ByHand(copy)
        with ttlstore.open(path, vacuum=False, durability="normal") as store:
            orders = store.collection("orders")
            yield from answers(orders, by_hand, documents)
            yield from planning(orders)
        by_hand.connection.close()
        yield from memory(path)
