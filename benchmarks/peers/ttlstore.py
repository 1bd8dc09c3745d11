"""This package, as its README shows it."""

from collections.abc import Iterable
from pathlib import Path

import ttlstore
from benchmarks.peers import TTL_SECONDS, Document, Durability, Peer, bytes_below


class Ours(Peer):
    package = "ttlstore"

    def __init__(self, folder: Path, durability: Durability) -> None:
        self.folder = folder
        self.store = ttlstore.open(folder / "store.db", durability=durability)
        self.orders = self.store.ensure_collection("orders", default_ttl=TTL_SECONDS)

    def read(self, id: str) -> Document | None:
        return self.orders.get(id)

    def upsert(self, document: Document) -> None:
        self.orders.upsert(document)

    def count(self) -> int:
        return self.orders.count()

    def load(self, documents: list[Document]) -> None:
        self.orders.upsert_many(documents)

    def all(self) -> Iterable[Document]:
        return self.orders

    def index(self) -> None:
        self.orders.configure(indexing=ttlstore.IndexingPolicy(paths=("/customerId",)))

    def of_customer(self, customer: str) -> list[Document]:
        return list(self.orders.query("c.customerId = @customer", {"customer": customer}))

    def load_expiring(self, documents: list[Document], seconds: int) -> None:
        self.orders.upsert_many({**document, "ttl": seconds} for document in documents)

    def size(self) -> int:
        return bytes_below(self.folder)

    def close(self) -> None:
        self.store.close()
