"""TinyDB: one JSON file, written anew, and synced, by every write."""

from collections.abc import Iterable
from pathlib import Path

import tinydb

from benchmarks.peers import Document, Durability, Peer, bytes_below


class TinyDb(Peer):
    package = "tinydb"
    many_threads = False
    many_processes = False

    def __init__(self, folder: Path, durability: Durability) -> None:
        self.folder = folder
        self.db = tinydb.TinyDB(folder / "db.json")
        self.id = tinydb.Query().id

    def load(self, documents: list[Document]) -> None:
        self.db.insert_multiple(documents)

    def read(self, id: str) -> Document | None:
        found: Document | None = self.db.get(self.id == id)
        return found

    def upsert(self, document: Document) -> None:
        self.db.upsert(document, self.id == document["id"])

    def all(self) -> Iterable[Document]:
        documents: Iterable[Document] = self.db
        return documents

    def count(self) -> int:
        return len(self.db)

    def size(self) -> int:
        return bytes_below(self.folder)

    def close(self) -> None:
        self.db.close()
