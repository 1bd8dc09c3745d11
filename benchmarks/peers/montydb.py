"""MontyDB: MongoDB's interface, in Python, on SQLite; it has no indexes but that of the ids."""

from pathlib import Path

import montydb

from benchmarks.mongo_like import MongoLike
from benchmarks.peers import Durability


class MontyDb(MongoLike):
    package = "montydb"
    many_threads = False

    def __init__(self, folder: Path, durability: Durability) -> None:
        montydb.set_storage(str(folder), storage="sqlite", mongo_version="4.4", use_bson=False)
        super().__init__(folder, montydb.MontyClient(str(folder), synchronous=durability.upper()))
