"""`migrate`: the schema of a store, for deployments that manage it."""

from typing import TYPE_CHECKING

import click

from ttlstore.cli.asking import confirm
from ttlstore.cli.output import Record, format_option, show
from ttlstore.cli.params import store_command, yes_option

if TYPE_CHECKING:
    from ttlstore.migrate import Direction

sql_option = click.option("--sql", is_flag=True, help="Change nothing, and print the SQL that would.")


@click.group("migrate")
def migrate_command() -> None:
    """Show or change the revision of a store's schema.

    \b
    Examples:
      ttlstore migrate current app.db
      ttlstore migrate upgrade app.db --sql
    """


@store_command("current", group=migrate_command)
def current_command(db: str) -> None:
    """Print the revision of a store.

    \b
    Examples:
      ttlstore migrate current app.db
    """
    from ttlstore import migrate

    click.echo(_named(migrate.current(db).revision))


@migrate_command.command("history")
@format_option
def history_command(format: str) -> None:
    """List the revisions that this version knows, the newest first.

    \b
    Examples:
      ttlstore migrate history
    """
    from ttlstore import migrate

    show((revision._asdict() for revision in migrate.history()), format, _for_people, empty="no revisions")


def _for_people(record: Record) -> Record:
    return {"revision": _named(record["name"]), "brings": record["description"]}


@store_command("upgrade", group=migrate_command)
@click.argument("revision", default="head", help="Where to; the newest if left out.")
@sql_option
def upgrade_command(db: str, revision: str, sql: bool) -> None:
    """Upgrade a store to the newest or to a given revision.

    \b
    Examples:
      ttlstore migrate upgrade app.db
      ttlstore migrate upgrade app.db --sql > review.sql
    """
    _migrate(db, revision, "upgrade", sql=sql)


@store_command("downgrade", group=migrate_command)
@click.argument("revision", help="Where to; base is before the first, without any table.")
@sql_option
@yes_option
def downgrade_command(db: str, revision: str, sql: bool, yes: bool) -> None:
    """Take a store back to an older revision; asks first, because what only newer ones know is lost.

    \b
    Examples:
      ttlstore migrate downgrade app.db 0001
      ttlstore migrate downgrade app.db 0001 --sql
    """
    from ttlstore import migrate

    if not (sql or yes):
        store = migrate.planned(db, revision, direction="downgrade").store
        lost = "every collection and document" if revision == "base" else "what older revisions do not know"
        confirm(f"Downgrade {store} to {revision} and lose {lost}?")
    _migrate(db, revision, "downgrade", sql=sql)


def _migrate(db: str, revision: str, direction: "Direction", *, sql: bool) -> None:
    from ttlstore import migrate

    if sql:
        click.echo(migrate.script(db, revision, direction=direction))
        return
    before, after = migrate.change(db, revision, direction=direction)
    if before == after:
        click.echo(f"{after.store} is at {_named(after.revision)} already")
    else:
        click.echo(f"{after.store}: {_named(before.revision)} -> {_named(after.revision)}")


def _named(revision: str | None) -> str:
    from ttlstore.schema import HEAD

    return f"{HEAD} (head)" if revision == HEAD else revision or "base"
