"""Mongita: MongoDB's interface, in Python, on files that are cached in memory."""

from collections.abc import Iterable
from pathlib import Path

import mongita

from benchmarks.peers import Document, Durability, Peer, bytes_below


class Mongita(Peer):
    package = "mongita"
    durabilities = frozenset(("normal",))
    many_processes = False

    def __init__(self, folder: Path, durability: Durability) -> None:
        self.folder = folder
        self.client = mongita.MongitaClientDisk(str(folder))
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

    def index(self) -> None:
        self.orders.create_index("customerId")

    def of_customer(self, customer: str) -> list[Document]:
        return list(self.orders.find({"customerId": customer}))

    def size(self) -> int:
        return bytes_below(self.folder)

    def close(self) -> None:
        self.client.close()
