"""Reads, writes and bulk loads, against the same SQL by hand and against diskcache."""

import random
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

import diskcache
import orjson

import ttlstore
from benchmarks.documents import document
from benchmarks.measure import Bar, Comparison, compare

DOCUMENTS = 20_000
CALLS = 4_000  # a round
TTL = 3600


class ByHand:
    """What one would write with sqlite3 and orjson alone: the store's own SQL, and nothing around it."""

    def __init__(self, path: Path) -> None:
        with ttlstore.open(path, durability="normal") as store:
            collection = store.create_collection("orders", default_ttl=TTL)
            self.read_sql, self.upsert_sql = collection._statements.read.sql, collection._statements.upsert.sql
        self.connection = sqlite3.connect(path, isolation_level=None)
        for setting in ("synchronous = NORMAL", "foreign_keys = ON", "cache_size = -16384"):
            self.connection.execute(f"PRAGMA {setting}")

    def read(self, id: str) -> Any:
        row = self.connection.execute(self.read_sql, (id, "", time.time_ns() // 1_000_000, 1)).fetchone()
        found = orjson.loads(row[0])
        found["_ts"], found["_etag"] = row[1] // 1000, row[2]
        return found

    def values(self, document: dict[str, Any]) -> tuple[Any, ...]:
        body, ts = orjson.dumps(document), time.time_ns() // 1_000_000
        return (document["id"], "", None, ts, f"e{ts}", len(body), crc32(body) ^ (ts & 0xFFFFFFFF), body.decode(), 1)

    def upsert(self, document: dict[str, Any]) -> None:
        self.connection.execute(self.upsert_sql, self.values(document))

    def upsert_many(self, documents: Iterator[dict[str, Any]]) -> None:
        batch = [self.values(each) for each in documents]
        for start in range(0, len(batch), 1000):
            self.connection.execute("BEGIN IMMEDIATE")
            self.connection.executemany(self.upsert_sql, batch[start : start + 1000])
            self.connection.execute("COMMIT")


@contextmanager
def contenders() -> Iterator[tuple[ttlstore.Collection, ByHand, diskcache.Cache]]:
    with tempfile.TemporaryDirectory() as folder:
        by_hand = ByHand(Path(folder, "by-hand.db"))
        cache = diskcache.Cache(Path(folder, "diskcache"))
        with ttlstore.open(Path(folder, "ttlstore.db"), durability="normal") as store:
            yield store.create_collection("orders", default_ttl=TTL), by_hand, cache
        by_hand.connection.close()
        cache.close()


def fill(ours: ttlstore.Collection, by_hand: ByHand, cache: diskcache.Cache) -> None:
    ours.upsert_many(document(number) for number in range(DOCUMENTS))
    by_hand.upsert_many(document(number) for number in range(DOCUMENTS))
    with cache.transact():
        for number in range(DOCUMENTS):
            cache.set(document(number)["id"], document(number), expire=TTL)


def each(work: Callable[[Any], Any], over: list[Any]) -> Callable[[], None]:
    def run() -> None:
        for item in over:
            work(item)

    return run


def run() -> Iterator[Comparison]:
    chosen = random.Random(1)
    with contenders() as (ours, by_hand, cache):
        fill(ours, by_hand, cache)
        documents = [document(number) for number in chosen.choices(range(DOCUMENTS), k=CALLS)]
        ids = [each_document["id"] for each_document in documents]
        yield compare(
            f"read one of {DOCUMENTS:,} documents",
            {"ttlstore": each(ours.read, ids), "by hand": each(by_hand.read, ids), "diskcache": each(cache.get, ids)},
            *(Bar("by hand", 1.35), Bar("diskcache", 1.0)),
            units=CALLS,
        )
        yield compare(
            "upsert one, durability normal",
            {
                "ttlstore": each(ours.upsert, documents),
                "by hand": each(by_hand.upsert, documents),
                "diskcache": each(lambda one: cache.set(one["id"], one, expire=TTL), documents),
            },
            *(Bar("by hand", 1.5), Bar("diskcache", 0.6)),
            units=CALLS,
        )
        everything = [document(number) for number in range(DOCUMENTS)]
        yield compare(
            f"upsert {DOCUMENTS:,} in bulk, per document",
            {
                "ttlstore": lambda: ours.upsert_many(everything),
                "by hand": lambda: by_hand.upsert_many(iter(everything)),
            },
            Bar("by hand", 1 / 0.7),
            units=DOCUMENTS,
            rounds=5,
        )
