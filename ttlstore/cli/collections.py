"""Commands on collections."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from ttlstore.cli.asking import confirm
from ttlstore.cli.opening import opened
from ttlstore.cli.output import Record, counted, format_bytes, format_option, show
from ttlstore.cli.params import DEFAULT_TTL, collection_argument, store_command, yes_option
from ttlstore.cli.table import Wrapped
from ttlstore.cli.times import format_default_ttl, format_left
from ttlstore.errors import CollectionNotFound

if TYPE_CHECKING:
    from ttlstore.collection import Collection
    from ttlstore.indexing import IndexedPath
    from ttlstore.store import Store


@store_command("collections")
@format_option
def collections_command(db: str, format: str) -> None:
    """List the collections with their settings and sizes.

    \b
    Examples:
      ttlstore collections app.db
      ttlstore collections app.db --format json
    """
    with opened(db) as store:
        show(_records(store), format, _for_people, empty=f"no collections in {store.name}")


def _records(store: "Store") -> Iterator[Record]:
    for collection in store.list_collections():
        with suppress(CollectionNotFound):  # dropped by another meanwhile
            yield _record(collection, store.now())


def _record(collection: "Collection", now: float) -> Record:
    indexing, stats = collection.indexing, collection.stats()
    return {
        "name": collection.name,
        "default_ttl": collection.default_ttl,
        "partition_key": collection.partition_key,
        "indexing": indexing.mode,
        "indexed_paths": list(indexing.paths),
        "live_documents": stats.live_documents,
        "live_bytes": stats.live_bytes,
        "waiting_documents": stats.waiting_documents,
        "waiting_bytes": stats.waiting_bytes,
        "next_expiry": stats.next_expiry,
        "next_expiry_seconds": None if stats.next_expiry is None else stats.next_expiry - now,
    }


def _for_people(record: Record) -> Record:
    return {
        "name": record["name"],
        "TTL": Wrapped(format_default_ttl(record["default_ttl"])),
        "partition": record["partition_key"],
        "indexes": Wrapped(_indexes(record["indexing"], record["indexed_paths"])),
        "live": record["live_documents"],
        "waiting": record["waiting_documents"],
        "size": format_bytes(record["live_bytes"] + record["waiting_bytes"]),
        "next expiry": "never" if record["next_expiry"] is None else f"in {format_left(record['next_expiry_seconds'])}",
    }


def _indexes(mode: str, paths: list["IndexedPath"]) -> str:
    """The mode is named where it is not the usual one."""
    return format_indexes(paths) if mode == "consistent" else format_indexing(mode, paths)


def format_indexing(mode: str, paths: Iterable["IndexedPath"]) -> str:
    """`consistent: /status, (/city /age)`."""
    listed = format_indexes(paths)
    return f"{mode}: {listed}" if listed else mode


def format_indexes(paths: Iterable["IndexedPath"]) -> str:
    """`/status, (/city /age)`."""
    return ", ".join(path if isinstance(path, str) else f"({' '.join(path)})" for path in paths)


@store_command("create")
@click.argument("collection", help="The name of the new collection.")
@click.option(
    "--ttl",
    "default_ttl",
    type=DEFAULT_TTL,
    default="off",
    show_default=True,
    help="off, on (no default) or how long a document lives after its last write: 90d, 1h30m, 45.",
)
@click.option("--partition-key", default="/id", show_default=True, help="The property that partitions the documents.")
def create_command(db: str, collection: str, default_ttl: int | None, partition_key: str) -> None:
    """Create a collection.

    \b
    Examples:
      ttlstore create app.db carts --ttl 1h30m
      ttlstore create app.db orders --ttl on --partition-key /customerId
    """
    with opened(db) as store:
        store.create_collection(collection, default_ttl=default_ttl, partition_key=partition_key)
    click.echo(f"created {collection!r} in {store.name}, TTL {format_default_ttl(default_ttl)}")


@store_command("drop")
@collection_argument
@yes_option
def drop_command(db: str, collection: str, yes: bool) -> None:
    """Drop a collection and all its documents; asks first.

    \b
    Examples:
      ttlstore drop app.db carts
      ttlstore drop app.db carts --yes
    """
    with opened(db) as store:
        documents = counted(store.collection(collection).count(), "document")
        if not yes:
            confirm(f"Drop {collection!r} and its {documents}?")
        store.delete_collection(collection)
    click.echo(f"dropped {collection!r} with {documents}")
