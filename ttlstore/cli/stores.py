"""Commands on the whole store."""

import os
import shlex

import click

from ttlstore.cli.opening import opened
from ttlstore.cli.output import Record, counted, format_bytes, format_option, show_record
from ttlstore.cli.params import complete_file, store_command
from ttlstore.cli.progress import interrupted, progress
from ttlstore.cli.stats import lag_seconds
from ttlstore.cli.times import format_left


@store_command("init")
def init_command(db: str) -> None:
    """Create a store, or upgrade an older one.

    \b
    Examples:
      ttlstore init app.db
    """
    from ttlstore import migrate

    before, after = migrate.init(db)
    if before.revision is None:
        click.echo(f"created {after.store}; next: ttlstore create {shlex.quote(after.store)} NAME --ttl 90d")
    elif before == after:
        click.echo(f"{after.store} is up to date (schema {after.revision})")
    else:
        click.echo(f"upgraded {after.store} from schema {before.revision} to {after.revision}")


@store_command("info")
@format_option
def info_command(db: str, format: str) -> None:
    """What a store is: its engine, schema, size, collections and documents.

    \b
    Examples:
      ttlstore info app.db
      ttlstore info app.db --format json
    """
    from ttlstore.schema import HEAD

    with opened(db) as store:
        stats = store.stats()
        record = {
            "store": store.name,
            "engine": stats.engine,
            "schema": HEAD,
            "file_bytes": stats.file_bytes,
            "collections": stats.collections,
            "live_documents": stats.live_documents,
            "waiting_documents": stats.waiting_documents,
            "lag_seconds": lag_seconds(stats.oldest_waiting, store.now()),
        }
    show_record(record, format, _for_people)


def _for_people(record: Record) -> Record:
    return {
        "store": record["store"],
        "engine": record["engine"],
        "schema": record["schema"],
        "size": format_bytes(record["file_bytes"]),
        "collections": record["collections"],
        "live": counted(record["live_documents"], "document"),
        "waiting": f"{counted(record['waiting_documents'], 'document')} (expired, not deleted yet)",
        "vacuum": _vacuum_in_words(record),
    }


def _vacuum_in_words(record: Record) -> str:
    if not record["waiting_documents"]:
        return "up to date"
    rows = counted(record["waiting_documents"], "document")
    since = "" if record["lag_seconds"] is None else f", the first expired {format_left(record['lag_seconds'])} ago"
    return f"{rows} to delete{since}: see ttlstore vacuum --help"


@store_command("check")
def check_command(db: str) -> None:
    """Look through a store for damage.

    Checks the file, every document, and that each row says the same as the document in it.

    \b
    Examples:
      ttlstore check app.db
    """
    with opened(db) as store:
        try:
            with progress(f"check {store.name}", None) as advance:
                problems = store.check(progress=advance)
        except KeyboardInterrupt:
            raise interrupted("the check is not complete, and nothing was changed") from None
    for problem in problems:
        click.echo(problem)
    if problems:
        raise click.ClickException(f"{store.name} is damaged: {counted(len(problems), 'problem')}; restore a backup")
    click.echo(f"{store.name} is sound")


@store_command("backup")
@click.argument("file", help="The name of the copy, a new file.", shell_complete=complete_file)
def backup_command(db: str, file: str) -> None:
    """Copy a store to a new file, as it is at one moment.

    Others may go on working with it meanwhile.

    \b
    Examples:
      ttlstore backup app.db app-2030-01-31.db
    """
    with opened(db) as store:
        try:
            with progress(f"backup {store.name}", None) as advance:
                store.backup(file, progress=advance)
        except KeyboardInterrupt:
            raise interrupted(f"{file} was not written") from None
    click.echo(f"copied {store.name} to {file}, {format_bytes(os.path.getsize(file))}")
