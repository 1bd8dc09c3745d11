"""`index`: which properties of a collection's documents are indexed."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from ttlstore.cli.collections import format_indexes, format_indexing
from ttlstore.cli.opening import opened
from ttlstore.cli.params import collection_argument, store_command

if TYPE_CHECKING:
    from ttlstore.indexing import IndexedPath, IndexingPolicy

MODES = ("consistent", "lazy", "none")

paths_argument = click.argument(
    "paths", nargs=-1, required=True, metavar="PATH...", help="A path such as /status; several are one index over all."
)


@click.group("index")
def index_command() -> None:
    """Show or change which properties are indexed.

    \b
    Examples:
      ttlstore index add app.db orders /status
      ttlstore index mode app.db orders lazy
    """


@store_command("list", group=index_command)
@collection_argument
def list_command(db: str, collection: str) -> None:
    """Print the mode, and each indexed path on a line.

    \b
    Examples:
      ttlstore index list app.db orders
    """
    with opened(db) as store:
        policy = store.collection(collection).indexing
    click.echo(f"mode {policy.mode}")
    for path in policy.paths:
        click.echo(path if isinstance(path, str) else " ".join(path))


@store_command("add", group=index_command)
@collection_argument
@paths_argument
def add_command(db: str, collection: str, paths: tuple[str, ...]) -> None:
    """Index a property, or several of them together.

    \b
    Examples:
      ttlstore index add app.db orders /status
      ttlstore index add app.db orders /address/city /total
    """
    from ttlstore.indexing import IndexingPolicy

    added = _index(paths)

    def change(policy: IndexingPolicy) -> IndexingPolicy:
        if added in policy.paths:
            raise click.ClickException(f"there is an index on {' '.join(paths)} in {collection!r} already")
        return IndexingPolicy(policy.mode, (*policy.paths, added))

    _configure(db, collection, change)


@store_command("remove", group=index_command)
@collection_argument
@paths_argument
def remove_command(db: str, collection: str, paths: tuple[str, ...]) -> None:
    """Remove the index on a property, or on several of them together.

    \b
    Examples:
      ttlstore index remove app.db orders /status
      ttlstore index remove app.db orders /address/city /total
    """
    from ttlstore.indexing import IndexingPolicy

    removed = _index(paths)

    def change(policy: IndexingPolicy) -> IndexingPolicy:
        if removed not in policy.paths:
            raise click.ClickException(f"there is no index on {' '.join(paths)} in {collection!r}")
        return IndexingPolicy(policy.mode, tuple(path for path in policy.paths if path != removed))

    _configure(db, collection, change)


@store_command("mode", group=index_command)
@collection_argument
@click.argument("mode", type=click.Choice(MODES), help="When indexes are right: at once, later, or there are none.")
def mode_command(db: str, collection: str, mode: "str") -> None:
    """Set the indexing mode: consistent, lazy or none (which allows no paths and no TTL).

    \b
    Examples:
      ttlstore index mode app.db orders lazy
    """
    from ttlstore.indexing import IndexingPolicy

    def change(policy: IndexingPolicy) -> IndexingPolicy:
        if mode == "none" and policy.paths:
            raise click.ClickException(
                f"mode none has no indexes: remove those of {collection!r} first, {format_indexes(policy.paths)}"
            )
        return IndexingPolicy(mode, policy.paths)  # type: ignore[arg-type]  # Click has checked it

    _configure(db, collection, change)


def _index(paths: tuple[str, ...]) -> "IndexedPath":
    return paths[0] if len(paths) == 1 else paths


def _configure(db: str, collection: str, change: "Callable[[IndexingPolicy], IndexingPolicy]") -> None:
    """Not in a transaction, which would keep writers out while a server makes the index."""
    with opened(db) as store:
        documents = store.collection(collection)
        documents.configure(indexing=change)
        policy = documents.indexing
    click.echo(f"{collection!r}: indexing {format_indexing(policy.mode, policy.paths)}")
