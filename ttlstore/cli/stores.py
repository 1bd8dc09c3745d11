"""Commands on the whole store."""

import os

import click

from ttlstore.cli.opening import opened
from ttlstore.cli.output import format_bytes, show_facts
from ttlstore.cli.params import store_command


@store_command("init")
def init_command(db: str) -> None:
    """Create a store, or upgrade an older one.

    \b
    Examples:
      ttlstore init app.db
    """
    from ttlstore import migrate
    from ttlstore.schema import HEAD

    before = migrate.init(db)
    if before is None:
        click.echo(f"created {db}; next: ttlstore create {db} NAME --ttl 90d")
    elif before == HEAD:
        click.echo(f"{db} is up to date (schema {HEAD})")
    else:
        click.echo(f"upgraded {db} from schema {before} to {HEAD}")


@store_command("info")
def info_command(db: str) -> None:
    """What a store is: its schema, size, collections and documents.

    \b
    Examples:
      ttlstore info app.db
    """
    import sqlite3

    from ttlstore.schema import HEAD

    with opened(db) as store:
        collections = store.list_collections()
        show_facts(
            {
                "store": db,
                "engine": f"SQLite {sqlite3.sqlite_version}",
                "schema": HEAD,
                "size": format_bytes(os.path.getsize(db)),
                "collections": len(collections),
                "documents": sum(map(len, collections)),
            }
        )
