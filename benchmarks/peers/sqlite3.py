"""The floor: what one would write with sqlite3 and orjson alone. The store's own tables and SQL, and nothing around."""

import sqlite3
import time
from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import Any, Self

import orjson

import ttlstore
from benchmarks.peers import TTL_SECONDS, Document, Durability, Peer, bytes_below
from ttlstore.document import checksum_of
from ttlstore.engine.sqlite.connections import CACHE_KIB, CHECKPOINT_PAGES
from ttlstore.engine.sqlite.engine import _statements

READ, UPSERT, EVERYTHING, COUNT = (getattr(_statements(), name) for name in ("read", "upsert", "all_in_order", "count"))
BATCH_ROWS = 1000  # as in the store's bulk writes

INDEX = "CREATE INDEX by_customer ON documents (json_extract(body, '$.customerId')) WHERE collection_id = 1"
OF_CUSTOMER = """
    SELECT body, _ts, etag FROM documents
    WHERE collection_id = 1 AND json_extract(body, '$.customerId') = ? AND coalesce(ttl, 3600) * 1000 + _ts > ?
"""
PURGE = """
    DELETE FROM documents WHERE seq IN (
        SELECT seq FROM documents
        WHERE collection_id = 1 AND ttl IS NOT NULL AND expires_at <= ? LIMIT 2000)
"""


class ByHand(Peer):
    package = ""

    def __init__(self, folder: Path, durability: Durability) -> None:
        self.folder, self.durability = folder, durability
        path = folder / "by-hand.db"
        if not path.exists():
            with ttlstore.open(path, vacuum=False) as store:
                store.create_collection("orders", default_ttl=TTL_SECONDS)
        self.connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        for setting in (
            f"synchronous = {durability}",
            "foreign_keys = ON",
            f"cache_size = -{CACHE_KIB}",
            f"wal_autocheckpoint = {CHECKPOINT_PAGES}",
            "busy_timeout = 5000",
        ):
            self.connection.execute(f"PRAGMA {setting}")
        self.writes = count()

    def read(self, id: str) -> Document | None:
        row = self.connection.execute(READ.sql, (id, "", time.time_ns() // 1_000_000, 1)).fetchone()
        if row[0] is None:
            return None
        found: Document = orjson.loads(row[0])
        found["_ts"], found["_etag"] = row[1] // 1000, row[2]
        return found

    def values(self, document: Document) -> tuple[Any, ...]:
        body, ts = orjson.dumps(document), time.time_ns() // 1_000_000
        etag, checksum = f"e{next(self.writes)}", checksum_of(body, ts)
        return (document["id"], "", document.get("ttl"), ts, etag, len(body), checksum, body.decode(), 1)

    def upsert(self, document: Document) -> None:
        self.connection.execute(UPSERT.sql, self.values(document))

    def load(self, documents: list[Document]) -> None:
        for start in range(0, len(documents), BATCH_ROWS):
            batch = [self.values(document) for document in documents[start : start + BATCH_ROWS]]
            self.connection.execute("BEGIN IMMEDIATE")
            self.connection.executemany(UPSERT.sql, batch)
            self.connection.execute("COMMIT")

    def all(self) -> Iterable[Document]:
        values = EVERYTHING.arrange((1, 0, time.time_ns() // 1_000_000))
        for _, _, body, ts, etag, _ in self.connection.execute(EVERYTHING.sql, values):
            found = orjson.loads(body)
            found["_ts"], found["_etag"] = ts // 1000, etag
            yield found

    def count(self) -> int:
        values = COUNT.arrange((time.time_ns() // 1_000_000, 1))
        found: int = self.connection.execute(COUNT.sql, values).fetchone()[0]
        return found

    def index(self) -> None:
        self.connection.execute(INDEX)

    def of_customer(self, customer: str) -> list[Document]:
        rows = self.connection.execute(OF_CUSTOMER, (customer, time.time_ns() // 1_000_000))
        return [{**orjson.loads(body), "_ts": ts // 1000, "_etag": etag} for body, ts, etag in rows]

    def load_expiring(self, documents: list[Document], seconds: int) -> None:
        self.load([{**document, "ttl": seconds} for document in documents])

    def purge(self) -> None:
        other = self.for_thread()
        now = time.time_ns() // 1_000_000
        while other.connection.execute(PURGE, (now,)).rowcount:
            pass
        other.connection.executescript("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE)")
        other.close()

    def size(self) -> int:
        return bytes_below(self.folder)

    def for_thread(self) -> Self:
        return type(self)(self.folder, self.durability)

    def close(self) -> None:
        self.connection.close()
