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
from ttlstore.errors import CannotOpen, CollectionExists, InvalidDocument, command
from ttlstore.statements import Values
from ttlstore.store import Store
from ttlstore.ttl import NEVER, Clock, present


class Copied(NamedTuple):
    """What a copy did."""

    collections: int
    documents: int
    """That were looked at: all that were live."""
    written: int
    """That the target did not have, or had as they were before."""
    surplus: int = 0
    """That the target has more of than the source, in the end: deletes are not carried over."""


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
    again brings over what has changed. What was deleted from the source meanwhile stays in the target: `Mirror` in
    `mirroring` deletes it.

    Raises CollectionExists where the target has a collection with other settings, CannotOpen where it is the
    source itself, InvalidDocument where the target has no room for the keys of a document, and what opening raises.
    """
    with both(source, target, clock=clock) as (here, there):
        total = here.stats().live_documents
        documents = written = surplus = 0
        collections = here.list_collections()
        for collection in collections:
            counterpart = _counterpart(collection, there)
            for rows in (batches := Batches(_rows(collection, counterpart), _bytes)):
                try:
                    with there._engine.writing():
                        written += there._engine.change_many(there._statements.copy, rows, batches.make_next)
                except InvalidDocument:  # of one that the server has no room for; it does not tell which
                    written += _one_by_one(rows, counterpart)
                documents += len(rows)
                progress(documents, max(documents, total))
            surplus += max(counterpart.count() - collection.count(), 0)
    return Copied(len(collections), documents, written, surplus)


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
    """The collection of the same name. If it has to be made it has the same settings, indexes included."""
    try:
        return there.create_collection(
            collection.name,
            partition_key=collection.partition_key,
            default_ttl=collection.default_ttl,
            indexing=collection.indexing,
        )
    except CollectionExists:
        found = there.collection(collection.name)
    require_alike(collection, found)
    return found


def require_alike(collection: Collection, found: Collection) -> None:
    """Refuse a collection whose settings decide otherwise which documents there are. Raises CollectionExists.

    Indexes do not: a target may have its own.
    """
    there = f"{found._engine.name} has a collection {found.name!r} with another"
    key, default_ttl = collection.partition_key, collection.default_ttl
    if found.partition_key != key:
        raise CollectionExists(
            f"{there} partition_key: {found.partition_key!r}, not {key!r}; nothing was copied into it. It stays so: "
            f"copy to another place, or drop it first with {command('drop', found._engine.name, found.name)}"
        )
    if found.default_ttl != default_ttl:
        setting = {None: "off", NEVER: "on"}.get(default_ttl, str(default_ttl))
        raise CollectionExists(
            f"{there} default_ttl: {found.default_ttl!r}, not {default_ttl!r}; nothing was copied into it. Make it the "
            f"same with {command('ttl', found._engine.name, found.name, setting)}, which says first what that changes"
        )


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
            yield *encoded.values(ts, etag), counterpart._id, present(counterpart._engine.statement_clock)
        after = last


def _one_by_one(rows: list[Values], counterpart: Collection) -> int:
    """Write as many as can be, and tell how many. Raises InvalidDocument, which names the first that cannot."""
    engine, written = counterpart._engine, 0
    for row in rows:
        try:
            with engine.writing():
                written += engine.change_many(engine.statements.copy, [row])
        except InvalidDocument as error:
            raise InvalidDocument(
                f"document {row[0]!r} of {counterpart.name!r} cannot be copied to {engine.name}: {error}; change "
                "or delete it in the source, then copy again"
            ) from error
    return written


def _bytes(row: Values) -> int:
    size: int = row[5]  # of `Encoded.values`
    return size
