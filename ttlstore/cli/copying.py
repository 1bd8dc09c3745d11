"""`copy`: a store to another place or engine."""

import click

from ttlstore.cli import opening
from ttlstore.cli.output import counted
from ttlstore.cli.params import complete_file, store_command
from ttlstore.cli.progress import interrupted, progress


@store_command("copy")
@click.argument("target", help="Where to: a path or a URL. Made if it is not there.", shell_complete=complete_file)
def copy_command(db: str, target: str) -> None:
    """Copy a store to another file or database, and keep the time that each document has left.

    Collections come with their settings, live documents with their `_ts` and `_etag`. A copy that was interrupted, or
    is made again, only writes what the target does not have or has in an older version.

    \b
    Examples:
      ttlstore copy app.db postgresql://me@host/app
      ttlstore copy postgresql://me@host/app app.db
    """
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
        f"copied {counted(copied.documents, 'document')} in {counted(copied.collections, 'collection')}, "
        f"{copied.written:,} of them new or changed"
    )
