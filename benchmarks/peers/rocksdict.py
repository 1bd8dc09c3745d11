"""rocksdict: RocksDB, a log-structured merge tree of bytes. It has a time to live, which only a compaction applies."""

from collections.abc import Iterable
from pathlib import Path

import orjson
import rocksdict

from benchmarks.peers import Document, Durability, NotOfferedError, Peer, bytes_below


class RocksDict(Peer):
    package = "rocksdict"
    many_processes = False  # one that writes, at a time

    def __init__(self, folder: Path, durability: Durability) -> None:
        self.folder = folder
        self.db = rocksdict.Rdict(str(folder), rocksdict.Options(raw_mode=True))
        self.options = rocksdict.WriteOptions()
        self.options.sync = durability == "full"

    def load(self, documents: list[Document]) -> None:
        batch = rocksdict.WriteBatch(raw_mode=True)
        for document in documents:
            batch.put(document["id"].encode(), orjson.dumps(document))
        self.db.write(batch, self.options)

    def read(self, id: str) -> Document | None:
        found = self.db.get(id.encode())
        return None if found is None else orjson.loads(found)

    def upsert(self, document: Document) -> None:
        self.db.put(document["id"].encode(), orjson.dumps(document), self.options)

    def all(self) -> Iterable[Document]:
        return map(orjson.loads, self.db.values())

    def count(self) -> int:
        raise NotOfferedError("an estimate only")

    def load_expiring(self, documents: list[Document], seconds: int) -> None:
        raise NotOfferedError("expired documents are visible until a compaction")

    def size(self) -> int:
        return bytes_below(self.folder)

    def close(self) -> None:
        self.db.close()
