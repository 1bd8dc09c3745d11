"""MontyDB: MongoDB's interface, in Python, on SQLite; it has no indexes but that of the ids."""

from collections.abc import Iterable
from pathlib import Path

import montydb

from benchmarks.peers import Document, Durability, Peer, bytes_below


class MontyDb(Peer):
    package = "montydb"
    many_threads = False

    def __init__(self, folder: Path, durability: Durability) -> None:
        self.folder = folder
        montydb.set_storage(str(folder), storage="sqlite", mongo_version="4.4", use_bson=False)
        self.client = montydb.MontyClient(str(folder), synchronous=durability.upper())
        self.orders = self.client.shop.orders

    def load(self, documents: list[Document]) -> None:
        self.orders.insert_many([{"_id": document["id"], **document} for document in documents])

    def read(self, id: str) -> Document | None:
        found: Document | None = self.orders.find_one({"_id": id})
        return found

    def upsert(self, document: Document) -> None:
        self.orders.replace_one({"_id": document["id"]}, {"_id": document["id"], **document}, upsert=True)

    def all(self) -> Iterable[Document]:
        documents: Iterable[Document] = self.orders.find({})
        return documents

    def count(self) -> int:
        count: int = self.orders.count_documents({})
        return count

    def size(self) -> int:
        return bytes_below(self.folder)

    def close(self) -> None:
        self.client.close()
