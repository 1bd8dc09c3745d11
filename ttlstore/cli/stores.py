"""Commands on the whole store."""

import os

import click

from ttlstore.cli.opening import opened
from ttlstore.cli.output import format_bytes, show_facts
from ttlstore.cli.params import store_command
from ttlstore.cli.progress import interrupted, progress, working


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


@store_command("check")
def check_command(db: str) -> None:
    """Look through a store for damage.

    Checks the file, every document, and that each row says the same as the document in it.

    \b
    Examples:
      ttlstore check app.db
    """
    with opened(db) as store, working(f"check {db}"):
        problems = store.check()
    for problem in problems:
        click.echo(problem)
    if problems:
        raise click.ClickException(f"{db} is damaged: {len(problems):,} problems; restore a backup")
    click.echo(f"{db} is sound")


@store_command("backup")
@click.argument("file", help="The name of the copy, a new file.")
def backup_command(db: str, file: str) -> None:
    """Copy a store to a new file, as it is at one moment.

    Others may go on working with it meanwhile.

    \b
    Examples:
      ttlstore backup app.db app-2030-01-31.db
    """
    with opened(db) as store, progress(f"backup {db}", None) as advance:
        try:
            store.backup(file, progress=advance)
        except KeyboardInterrupt:
            click.echo(f"\ninterrupted: {file} was not written", err=True)
            raise interrupted() from None
    click.echo(f"copied {db} to {file}, {format_bytes(os.path.getsize(file))}")
