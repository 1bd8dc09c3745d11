"""What a copy does not carry: deletes. Afterwards the target has what the source has, and nothing else.

Nothing tells a document that was deleted from the source from one that somebody wrote into the target alone. So a
mirror is for a target that only copies write, until the switch. What shows that others write there is left, or keeps
it from deleting anything.
"""

import os
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from ttlstore import store as stores
from ttlstore.batches import BATCH_ROWS
from ttlstore.collection import Collection
from ttlstore.copying import both, require_alike
from ttlstore.errors import PreconditionFailed
from ttlstore.store import Store
from ttlstore.ttl import Clock, present


class Surplus(NamedTuple):
    """The live documents that only the target has, in collections that both have."""

    documents: int
    """From before the copy began: to be deleted."""
    newer: int
    """Written since: these are left."""


class _Key(NamedTuple):
    """A live document of one of the stores, without its body."""

    id: str
    partition: str
    ts: int
    etag: str


class Mirror:
    """Deletes from the target what the source does not have. Made before the copy begins: what is newer is left."""

    def __init__(self, source: str | os.PathLike[str], target: str | os.PathLike[str], *, clock: Clock) -> None:
        self._source, self._target, self._clock = source, target, clock
        with both(source, target, clock=clock) as (here, _), stores.open(target, clock=clock, vacuum=False) as there:
            # By the clock that is behind: what is written into the target from now on is newer, whoever dates it.
            self._began = min(present(here.now), present(there.now))

    def survey(self) -> Surplus:
        """How many documents are too many. Raises PreconditionFailed if others have written to the target."""
        documents = newer = 0
        with both(self._source, self._target, clock=self._clock) as (here, there):
            for collection, counterpart in _pairs(here, there):
                for found, original in _beside(collection, counterpart):
                    if original is None:
                        documents += found.ts < self._began
                        newer += found.ts >= self._began
                    elif found.etag != original.etag and found.ts > original.ts:
                        raise PreconditionFailed(
                            f"{there.name} was written to by others than copies: document {found.id!r} of "
                            f"{collection.name!r} is newer there than in {here.name}. What it alone has may be new "
                            "too, so nothing was deleted"
                        )
        return Surplus(documents, newer)

    def delete(self) -> int:
        """Delete those from before the copy began, in batches, and tell how many."""
        deleted = 0
        with both(self._source, self._target, clock=self._clock) as (here, there):
            for collection, counterpart in _pairs(here, there):
                alone = (
                    found
                    for found, original in _beside(collection, counterpart)
                    if original is None and found.ts < self._began and not _is_in(collection, found)
                )
                while batch := list(islice(alone, BATCH_ROWS)):
                    deleted += _deleted(counterpart, batch)
        return deleted


def _pairs(here: Store, there: Store) -> Iterator[tuple[Collection, Collection]]:
    counterparts = {collection.name: collection for collection in there.list_collections()}
    for collection in here.list_collections():
        if collection.name in counterparts:
            # By another default, what has expired in the source would be too many in the target.
            require_alike(collection, counterparts[collection.name])
            yield collection, counterparts[collection.name]


def _beside(collection: Collection, counterpart: Collection) -> Iterator[tuple[_Key, _Key | None]]:
    """Every document of the counterpart, and the one with its key in the collection, if there is one."""
    # The source first: what expires in between is then gone from the target, and not from the source alone.
    originals = _keys(collection)
    original = next(originals, None)
    for found in _keys(counterpart):
        while original is not None and original[:2] < found[:2]:  # as databases do it: by code point
            original = next(originals, None)
        yield found, original if original is not None and original[:2] == found[:2] else None


def _keys(collection: Collection) -> Iterator[_Key]:
    engine = collection._engine
    for row in engine.stream(engine.statements.keys, (collection._id, present(engine.statement_clock))):
        yield _Key(*row)


def _is_in(collection: Collection, found: _Key) -> bool:
    """Asked again, and not by its place in an order: what is deleted by mistake does not come back."""
    engine = collection._engine
    values = (found.id, found.partition, present(engine.statement_clock), collection._id)
    row = engine.one(engine.statements.expiry, values)
    return row is None or row[0] is not None  # None: the collection was dropped, and that is not carried over


def _deleted(collection: Collection, keys: list[_Key]) -> int:
    engine = collection._engine
    with engine.writing():
        now = present(engine.statement_clock)
        rows = [(key.id, key.partition, collection._id, now, key.etag) for key in keys]
        return engine.change_many(engine.statements.delete_if, rows)
