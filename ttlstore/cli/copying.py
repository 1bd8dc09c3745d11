"""`copy`: a store to another place or engine."""

from typing import TYPE_CHECKING

import click

from ttlstore.cli import opening
from ttlstore.cli.asking import confirm
from ttlstore.cli.output import counted
from ttlstore.cli.params import complete_file, store_command, yes_option
from ttlstore.cli.progress import interrupted, progress

if TYPE_CHECKING:
    from ttlstore.mirroring import Mirror


@store_command("copy")
@click.argument("target", help="Where to: a path or a URL. Made if it is not there.", shell_complete=complete_file)
@click.option("--mirror", is_flag=True, help="Also delete from the target what the source does not have; asks first.")
@yes_option
def copy_command(db: str, target: str, mirror: bool, yes: bool) -> None:
    """Copy a store to another file or database, and keep the time that each document has left.

    Collections come with their settings, live documents with their `_ts` and `_etag`. A copy that was interrupted, or
    is made again, only writes what the target does not have or has in an older version. What was deleted from the
    source since stays in the target, unless you pass `--mirror`: for a target that nothing but copies has written to.

    \b
    Examples:
      ttlstore copy app.db postgresql://me@host/app
      ttlstore copy app.db postgresql://me@host/app --mirror
      ttlstore copy postgresql://me@host/app app.db
    """
    from ttlstore.mirroring import Mirror

    mirrored = Mirror(db, target, clock=opening.clock) if mirror else None  # before the copy: what is newer is left
    surplus = _copy(db, target)
    if mirrored is not None:
        try:
            _mirror(mirrored, yes)
        except KeyboardInterrupt:
            raise interrupted("all is copied; start it again to delete the rest of what is too many") from None
    elif surplus:
        click.echo(
            f"the target has {counted(surplus, 'document')} more than the source: deletes are carried over by --mirror "
            "alone"
        )


def _copy(db: str, target: str) -> int:
    """Returns how many documents more the target has in the end."""
    from ttlstore import copying

    done = 0
    try:
        with progress("copy", None) as advance:

            def tell(copied: int, total: int) -> None:
                nonlocal done
                done = copied
                advance(copied, total)

            copied = copying.copy(db, target, clock=opening.clock, progress=tell)
    except KeyboardInterrupt:
        again = "start it again, and it goes on from there"
        raise interrupted(f"{counted(done, 'document')} in the target; {again}") from None
    click.echo(
        f"copied {copied.written:,} of {counted(copied.documents, 'document')} in "
        f"{counted(copied.collections, 'collection')}; the target has the others"
        if copied.written < copied.documents
        else f"copied {counted(copied.documents, 'document')} in {counted(copied.collections, 'collection')}"
    )
    return copied.surplus


def _mirror(mirror: "Mirror", yes: bool) -> None:
    found = mirror.survey()
    if found.documents and not yes:
        confirm(f"Delete {counted(found.documents, 'document')} from the target, which the source does not have?")
    were = "was" if found.newer == 1 else "were"
    left = f", and left {found.newer:,} that {were} written since the copy began" if found.newer else ""
    deleted = mirror.delete() if found.documents else 0
    click.echo(f"deleted {counted(deleted, 'document')} that the source does not have{left}")
