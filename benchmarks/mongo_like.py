"""MongoDB's interface, which several stores in Python have."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.peers import Document, Peer, bytes_below


class MongoLike(Peer):
    """A peer with a client in MongoDB's manner."""

    def __init__(self, folder: Path, client: Any) -> None:
        self.folder = folder
        self.client = client
        self.orders = client.shop.orders

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
