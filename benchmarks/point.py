"""Reads, writes and bulk loads, against the same SQL by hand and against diskcache."""

import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import diskcache

import ttlstore
from benchmarks.documents import document
from benchmarks.measure import Bar, Comparison, compare, each
from benchmarks.peers.sqlite3 import ByHand

DOCUMENTS = 20_000
CALLS = 4_000  # a round
TTL = 3600


@contextmanager
def contenders() -> Iterator[tuple[ttlstore.Collection, ByHand, diskcache.Cache]]:
    with tempfile.TemporaryDirectory() as folder:
        by_hand = ByHand(Path(folder), "normal")
        cache = diskcache.Cache(Path(folder, "diskcache"))
        with ttlstore.open(Path(folder, "ttlstore.db"), durability="normal") as store:
            yield store.create_collection("orders", default_ttl=TTL), by_hand, cache
        by_hand.close()
        cache.close()


def fill(ours: ttlstore.Collection, by_hand: ByHand, cache: diskcache.Cache) -> None:
    ours.upsert_many(document(number) for number in range(DOCUMENTS))
    by_hand.load([document(number) for number in range(DOCUMENTS)])
    with cache.transact():
        for number in range(DOCUMENTS):
            cache.set(document(number)["id"], document(number), expire=TTL)


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
                "by hand": lambda: by_hand.load(everything),
            },
            Bar("by hand", 1 / 0.7),
            units=DOCUMENTS,
            rounds=5,
        )
