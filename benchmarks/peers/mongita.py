"""Mongita: MongoDB's interface, in Python, on files that are cached in memory."""

from pathlib import Path

import mongita

from benchmarks.mongo_like import MongoLike
from benchmarks.peers import Document, Durability


class Mongita(MongoLike):
    package = "mongita"
    durabilities = frozenset(("normal",))
    many_processes = False

    def __init__(self, folder: Path, durability: Durability) -> None:
        super().__init__(folder, mongita.MongitaClientDisk(str(folder)))

    def index(self) -> None:
        self.orders.create_index("customerId")

    def of_customer(self, customer: str) -> list[Document]:
        return list(self.orders.find({"customerId": customer}))
