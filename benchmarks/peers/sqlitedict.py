"""sqlitedict: a dict on SQLite, which a thread of its own writes. It turns SQLite's syncing off."""

from collections.abc import Iterable
from pathlib import Path

import orjson
import sqlitedict

from benchmarks.peers import Document, Durability, Peer, bytes_below


class SqliteDict(Peer):
    package = "sqlitedict"
    durabilities = frozenset(("normal",))

    def __init__(self, folder: Path, durability: Durability) -> None:
        self.folder = folder
        self.dict = sqlitedict.SqliteDict(
            folder / "dict.db", journal_mode="WAL", encode=orjson.dumps, decode=orjson.loads
        )

    def load(self, documents: list[Document]) -> None:
        self.dict.update((document["id"], document) for document in documents)
        self.dict.commit()

    def read(self, id: str) -> Document | None:
        found: Document | None = self.dict.get(id)
        return found

    def upsert(self, document: Document) -> None:
        self.dict[document["id"]] = document
        self.dict.commit()

    def all(self) -> Iterable[Document]:
        documents: Iterable[Document] = self.dict.values()
        return documents

    def count(self) -> int:
        return len(self.dict)

    def size(self) -> int:
        return bytes_below(self.folder)

    def close(self) -> None:
        self.dict.close()
