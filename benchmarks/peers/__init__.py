"""What users would pick instead: each peer is a file here, used as its own documentation recommends.

A peer is imported in the process that measures it, and only if its package is installed.
"""

import importlib
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

Document = dict[str, Any]
Durability = Literal["normal", "full"]

FLOOR = "sqlite3"
OURS = "ttlstore"
TTL_SECONDS = 3600  # of every document, where a peer has such a thing


class NotOfferedError(Exception):
    """A peer cannot do this: its cell stays empty, and this is why."""


class Peer:
    """An open store of documents, in a folder of its own. What it cannot do, the verbs here refuse."""

    package: ClassVar[str]
    """The distribution that it comes with; "" for the standard library."""
    durabilities: ClassVar[frozenset[str]] = frozenset(("normal", "full"))
    """What it can promise of a write that returned: it survives a crash of the process, or a loss of power."""
    many_threads: ClassVar[bool] = True
    many_processes: ClassVar[bool] = True
    in_a_server: ClassVar[bool] = False
    """Whether the data is in the memory of another process."""

    @classmethod
    def serving(cls, folder: Path, durability: Durability) -> AbstractContextManager[object]:
        """What must run beside, for as long as the folder is used."""
        return nullcontext()

    def __init__(self, folder: Path, durability: Durability) -> None:
        """Open the store in a folder, and make it if it is not there."""

    def load(self, documents: list[Document]) -> None:
        """Store many documents, in the way that is meant for many."""
        raise NotOfferedError("no bulk load")

    def loaded(self) -> None:
        """What its documentation says to do after a bulk load."""

    def read(self, id: str) -> Document | None:
        raise NotOfferedError("no read by id")

    def upsert(self, document: Document) -> None:
        raise NotOfferedError("no upsert")

    def all(self) -> Iterable[Document]:
        raise NotOfferedError("no iteration")

    def count(self) -> int:
        raise NotOfferedError("no count")

    def index(self) -> None:
        """Make an index on `customerId`."""
        raise NotOfferedError("no index on a property")

    def of_customer(self, customer: str) -> list[Document]:
        """The documents with this `customerId`, by that index."""
        raise NotOfferedError("no index on a property")

    def load_expiring(self, documents: list[Document], seconds: int) -> None:
        """Store many documents that expire after so many seconds."""
        raise NotOfferedError("nothing expires")

    def purge(self) -> None:
        """What its user has to run after an expiry to get the space back; nothing where that comes by itself."""

    def size(self) -> int:
        """The bytes on disk."""
        raise NotOfferedError("no file")

    def for_thread(self) -> Self:
        """What another thread uses: the same, unless connections are per thread."""
        return self

    def close(self) -> None:
        """Give everything back."""


# The order in which they are shown. The module has the same name.
PEERS = {
    OURS: "Ours",
    FLOOR: "ByHand",
    "diskcache": "DiskCache",
    "tinydb": "TinyDb",
    "sqlitedict": "SqliteDict",
    "lmdb": "Lmdb",
    "rocksdict": "RocksDict",
    "redis": "Redis",
    "postgresql": "PostgreSql",
    "mongita": "Mongita",
    "montydb": "MontyDb",
}


def peer_class(name: str) -> type[Peer]:
    """Raises ImportError where its package is not installed."""
    found: type[Peer] = getattr(importlib.import_module(f"benchmarks.peers.{name}"), PEERS[name])
    return found


def package_version(peer: type[Peer]) -> str:
    try:
        return version(peer.package) if peer.package else ""
    except PackageNotFoundError:
        return ""


def bytes_below(folder: Path) -> int:
    """The bytes in all files of a folder, as the disk holds them: LMDB's file has holes."""
    return sum(each.stat().st_blocks * 512 for each in folder.rglob("*") if each.is_file())
