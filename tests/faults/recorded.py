"""Work of which a recorder keeps everything that the disk is told. Runs in a process of its own."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from tests.faults import works
from tests.faults.recorder import Recorder
from tests.faults.victim import Tell
from ttlstore import vacuum
from ttlstore.engine import Durability
from ttlstore.engine.sqlite import connections

# As small as the works are: so that logs are folded in, begin anew and are cut off, and large transactions are written
# before their end.
SETTINGS = (
    (connections, "CHECKPOINT_PAGES", 50),
    (connections, "WAL_LIMIT_BYTES", 100_000),
    (connections, "CACHE_KIB", 200),
    (vacuum, "CHECKPOINT_BATCHES", 3),
)


class Enough(Exception):
    """So many words were told."""


def record(
    tell: Tell, folder: Path, durability: Durability, words: int, work: Callable[..., None], *arguments: Any
) -> None:
    """Do so much of the work, and tell the record of it."""
    for module, name, value in SETTINGS:
        assert hasattr(module, name)
        setattr(module, name, value)
    works.opened = partial(works.opened, durability=durability)
    recorder = Recorder(folder)
    told = 0

    def tell_so_many(word: object) -> None:
        nonlocal told
        recorder.tell(word)
        told += 1
        if told == words:
            raise Enough

    with suppress(Enough):
        work(tell_so_many, *arguments)
    tell(recorder.record())


def be_born(tell: Tell, path: Path, now: float) -> None:
    """Make a store, and something in it right away."""
    with works.opened(path, now) as store:
        for number in range(3):
            store.create_collection(f"c{number}").create({"id": "a"})
            tell(number + 1)
