"""diskcache: SQLite for keys and pickled values."""

from collections.abc import Iterable
from pathlib import Path

import diskcache

from benchmarks.peers import TTL_SECONDS, Document, Durability, Peer, bytes_below

UNBOUNDED = 2**40  # bytes: its default of 1 GiB would throw documents away


class DiskCache(Peer):
    package = "diskcache"

    def __init__(self, folder: Path, durability: Durability) -> None:
        self.folder = folder
        synchronous = 2 if durability == "full" else 1
        self.cache = diskcache.Cache(folder, size_limit=UNBOUNDED, sqlite_synchronous=synchronous)

    def read(self, id: str) -> Document | None:
        found: Document | None = self.cache.get(id)
        return found

    def load(self, documents: list[Document]) -> None:
        self.load_expiring(documents, TTL_SECONDS)

    def load_expiring(self, documents: list[Document], seconds: int) -> None:
        with self.cache.transact():
            for document in documents:
                self.cache.set(document["id"], document, expire=seconds)

    def upsert(self, document: Document) -> None:
        self.cache.set(document["id"], document, expire=TTL_SECONDS)

    def all(self) -> Iterable[Document]:
        return (self.cache[id] for id in self.cache)

    def count(self) -> int:
        return len(self.cache)

    def purge(self) -> None:
        self.cache.expire()

    def size(self) -> int:
        return bytes_below(self.folder)

    def close(self) -> None:
        self.cache.close()
