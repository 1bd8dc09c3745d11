"""LMDB: a memory-mapped B+ tree of bytes."""

from collections.abc import Iterable
from pathlib import Path

import lmdb
import orjson

from benchmarks.peers import Document, Durability, Peer, bytes_below

MAP_BYTES = 2**34  # of addresses, not of memory


class Lmdb(Peer):
    package = "lmdb"

    def __init__(self, folder: Path, durability: Durability) -> None:
        self.folder = folder
        self.environment = lmdb.open(str(folder), map_size=MAP_BYTES, sync=durability == "full")

    def load(self, documents: list[Document]) -> None:
        with self.environment.begin(write=True) as transaction:
            for document in documents:
                transaction.put(document["id"].encode(), orjson.dumps(document))

    def read(self, id: str) -> Document | None:
        with self.environment.begin(buffers=True) as transaction:
            found = transaction.get(id.encode())
            return None if found is None else orjson.loads(found)

    def upsert(self, document: Document) -> None:
        with self.environment.begin(write=True) as transaction:
            transaction.put(document["id"].encode(), orjson.dumps(document))

    def all(self) -> Iterable[Document]:
        with self.environment.begin(buffers=True) as transaction:
            for value in transaction.cursor().iternext(keys=False):
                yield orjson.loads(value)

    def count(self) -> int:
        entries: int = self.environment.stat()["entries"]
        return entries

    def size(self) -> int:
        return bytes_below(self.folder)

    def close(self) -> None:
        self.environment.close()
