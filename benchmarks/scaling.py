"""One table on a PostgreSQL server, and the same in 16 hash partitions: do reads, writes and the vacuum stay flat?"""

import random
import time
from collections.abc import Iterator

import psycopg

import ttlstore
from benchmarks.documents import document
from benchmarks.measure import Comparison, Promise, compare, each
from benchmarks.postgres import serving

SCHEMAS = {"ttlstore": "ttlstore_parts", "one table": "ttlstore_whole"}  # the store that is measured has partitions
PARTITIONS = 16
# Without it the server plans each statement anew, for all partitions, because the plan for one of them looks cheaper.
KEEP_PLANS = "options=-cplan_cache_mode%3Dforce_generic_plan"
SIZES = (10_000, 100_000, 1_000_000)
CALLS = 500  # a round
TTL = 3600
VACUUM_SECONDS = 15  # at most, for each


def partitioned(connection: psycopg.Connection, schema: str) -> None:
    """Put a table of 16 partitions, by the hash of a document's key, in the place of the one that is there."""
    connection.execute(f"SET search_path = {schema}")
    connection.execute(
        "CREATE TABLE parts (LIKE documents INCLUDING DEFAULTS INCLUDING GENERATED, "
        "UNIQUE (collection_id, id, partition)) PARTITION BY HASH (collection_id, id, partition)"
    )
    connection.execute("ALTER SEQUENCE documents_seq_seq OWNED BY parts.seq")
    connection.execute("DROP TABLE documents")
    connection.execute("ALTER TABLE parts RENAME TO documents")
    connection.execute("ALTER TABLE documents ADD FOREIGN KEY (collection_id) REFERENCES collections (id)")
    for number in range(PARTITIONS):
        connection.execute(
            f"CREATE TABLE documents_{number} PARTITION OF documents "
            f"FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER {number})"
        )
    for index in (
        "(seq)",
        "(collection_id, expires_at, size, ttl) WHERE ttl IS NOT NULL",
        "(collection_id, _ts, size, ttl) WHERE ttl IS NULL",
        "(collection_id, seq)",
    ):
        connection.execute(f"CREATE INDEX ON documents {index}")


def run() -> Iterator[Comparison | Promise]:
    chosen = random.Random(1)
    with serving() as url, psycopg.connect(url, autocommit=True) as by_hand:
        for size in SIZES:
            stores = {}
            for name, schema in SCHEMAS.items():
                by_hand.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
                target = f"{url}{'&' if '?' in url else '?'}schema={schema}"
                ttlstore.open(target, vacuum=False).close()
                if name != "one table":
                    partitioned(by_hand, schema)
                    target = f"{target}&{KEEP_PLANS}"
                stores[name] = ttlstore.open(target, vacuum=False, durability="normal")
            orders = {name: store.create_collection("orders", default_ttl=TTL) for name, store in stores.items()}
            for name, collection in orders.items():
                collection.create_many(document(number) for number in range(size))
                by_hand.execute(f"ANALYZE {SCHEMAS[name]}.documents")
            documents = [document(number) for number in chosen.choices(range(size), k=CALLS)]
            ids = [one["id"] for one in documents]
            reads = {name: each(collection.read, ids) for name, collection in orders.items()}
            upserts = {name: each(collection.upsert, documents) for name, collection in orders.items()}
            title = f"one of {size:,} documents in {PARTITIONS} partitions"
            yield compare(f"read {title}", reads, units=CALLS, rounds=5)
            yield compare(f"upsert {title}", upserts, units=CALLS, rounds=5)
            for name, store in stores.items():
                by_hand.execute(f"UPDATE {SCHEMAS[name]}.documents SET _ts = _ts - {TTL * 1000}")
                start = time.perf_counter()
                deleted = store.vacuum(max_seconds=VACUUM_SECONDS).deleted
                rate = deleted / (time.perf_counter() - start)
                where = name if name == "one table" else f"{PARTITIONS} partitions"
                title = f"vacuum of {size:,} expired documents, {where}"
                yield Promise(title, rate, 1000, "rows/s", more_is_better=True)
                store.close()
