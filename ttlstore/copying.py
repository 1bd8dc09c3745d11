"""Move a store to another place or engine: every live document as it is, with the life that it has left."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ttlstore import store as stores
from ttlstore.batches import Batches
from ttlstore.collection import Collection
from ttlstore.document import decode, encode, parse_pointer
from ttlstore.engine import Progress
from ttlstore.errors import CannotOpen, CollectionExists
from ttlstore.statements import Values
from ttlstore.store import Store
from ttlstore.ttl import Clock, present


class Copied(NamedTuple):
    """What a copy did."""

    collections: int
    documents: int
    """That were looked at: all that were live."""
    written: int
    """That the target did not have, or had as they were before."""


def copy(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    clock: Clock,
    progress: Progress = lambda copied, total: None,
) -> Copied:
    """Copy the collections of a store and their live documents into another, which is made if it is not there.

    `_ts` and `_etag` are kept, so that every document expires when it would have. What the target has already is passed
    over, and what is newer there is left: a copy that was interrupted goes on where it stopped, and one that is made
    again brings over what has changed. What was deleted from the source meanwhile stays in the target.

    Raises CollectionExists where the target has a collection with other settings, CannotOpen where it is the
    source itself, and what opening raises.
    """
    with both(source, target, clock=clock) as (here, there):
        total = here.stats().live_documents
        documents = written = 0
        collections = here.list_collections()
        for collection in collections:
            for rows in Batches(_rows(collection, _counterpart(collection, there)), _bytes):
                with there._engine.writing():
                    written += there._engine.change_many(there._statements.copy, rows)
                documents += len(rows)
                progress(documents, max(documents, total))
    return Copied(len(collections), documents, written)


@contextmanager
def both(
    source: str | os.PathLike[str], target: str | os.PathLike[str], *, clock: Clock
) -> Iterator[tuple[Store, Store]]:
    """The source, to be read, and the target, which is made if it is not there. Raises CannotOpen if they are one."""
    with (
        stores.open(source, clock=clock, read_only=True) as here,
        # By the clock of the source: the target's own is asked for no time, least of all for that of the last write.
        stores.open(target, clock=here.now, vacuum=False) as there,
    ):
        if here._engine.is_same(there._engine):
            raise CannotOpen(f"{there.name} is the store itself: name another place to copy it to")
        yield here, there


def _counterpart(collection: Collection, there: Store) -> Collection:
    """The collection of the same name, with the same settings."""
    settings = {
        "partition_key": collection.partition_key,
        "default_ttl": collection.default_ttl,
        "indexing": collection.indexing,
    }
    try:
        return there.create_collection(collection.name, **settings)  # type: ignore[arg-type]  # each is of its own type
    except CollectionExists:
        found = there.collection(collection.name)
    for name in ("partition_key", "default_ttl"):
        if getattr(found, name) != settings[name]:
            raise CollectionExists(
                f"{there.name} has a collection {collection.name!r} with another {name}: {getattr(found, name)!r}, not "
                f"{settings[name]!r}; nothing was copied into it"
            )
    return found


def _rows(collection: Collection, counterpart: Collection) -> Iterator[Values]:
    """The documents that are live now, each as it is when its turn comes, as the statement that copies them takes them.

    Not by one statement: however few documents a driver fetches at a time, those could be too large to be held.
    """
    engine, path = collection._engine, parse_pointer(collection.partition_key)
    after = 0
    places = engine.stream(engine.statements.sizes, (collection._id, after, present(engine.statement_clock)))
    for some in Batches(places, lambda place: int(place[1])):
        last = some[-1][0]
        values = (collection._id, after, last, present(engine.statement_clock))
        for _, _, *stored in engine.all(engine.statements.up_to, values):
            encoded, _ = encode(decode(*stored), path)
            _, ts, etag, _ = stored
            yield *encoded.values(ts, etag), counterpart._id
        after = last


def _bytes(row: Values) -> int:
    size: int = row[5]  # of `Encoded.values`
    return size
