"""`ttl`: a collection's setting, and what a change of it would do."""

from typing import TYPE_CHECKING

import click

from ttlstore.cli.asking import confirm
from ttlstore.cli.opening import opened
from ttlstore.cli.output import counted, format_bytes
from ttlstore.cli.params import DEFAULT_TTL, collection_argument, store_command, yes_option
from ttlstore.cli.times import format_default_ttl
from ttlstore.ttl import NEVER
from ttlstore.unset import UNSET, Unset

if TYPE_CHECKING:
    from ttlstore.insight import TtlChange


@store_command("ttl")
@collection_argument
@click.argument(
    "setting",
    type=DEFAULT_TTL,
    required=False,
    default=UNSET,
    help="The new setting: off, on (no default) or a duration such as 90d. Left out, the setting is shown.",
)
@click.option("--dry-run", is_flag=True, help="Change nothing, and print what the change would do.")
@yes_option
def ttl_command(db: str, collection: str, setting: int | Unset | None, dry_run: bool, yes: bool) -> None:
    """Show or change how long documents live; says what a change does, and asks first.

    A change holds at once, for every document without a ttl of its own.

    \b
    Examples:
      ttlstore ttl app.db orders
      ttlstore ttl app.db orders 90d
      ttlstore ttl app.db orders off --dry-run
      ttlstore ttl app.db orders on --yes
    """
    with opened(db) as store:
        documents = store.collection(collection)
        if setting is UNSET:
            click.echo(_in_words(documents.default_ttl))
            return
        if setting == documents.default_ttl:
            click.echo(f"{collection!r}: TTL {format_default_ttl(setting)} as before, so nothing changes")
            return
        preview = documents.preview_ttl(setting)
        click.echo(_change(preview), err=not dry_run)
        if dry_run:
            return
        if not yes:
            confirm(f"Change the TTL of {collection!r}?")
        documents.configure(default_ttl=setting)
    click.echo(f"{collection!r}: TTL {format_default_ttl(setting)}")


def _in_words(default_ttl: int | None) -> str:
    setting = format_default_ttl(default_ttl)
    if default_ttl is None:
        return f"{setting}: nothing expires, whatever ttl a document has"
    if default_ttl == NEVER:
        return f"{setting}: only a document with a ttl of its own expires"
    return f"{setting}: a document expires {setting} after its last write, unless it has a ttl of its own"


def _change(preview: "TtlChange") -> str:
    before, after = format_default_ttl(preview.default_ttl), format_default_ttl(preview.new_default_ttl)
    return (
        f"TTL {before} -> {after} "
        f"hides {counted(preview.hides, 'document')}{_size(preview.hidden_bytes)} now, "
        f"revives {preview.revives:,}{_size(preview.revived_bytes)}; {preview.live:,} live afterwards"
    )


def _size(bytes: int) -> str:
    return f" ({format_bytes(bytes)})" if bytes else ""
