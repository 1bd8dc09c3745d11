"""`recover`: documents that have expired and are not deleted yet."""

from itertools import islice
from typing import Any

import click

from ttlstore.cli.listing import contents
from ttlstore.cli.opening import opened
from ttlstore.cli.output import Record, format_option, show
from ttlstore.cli.params import collection_argument, limit_option, partition_option, store_command
from ttlstore.cli.times import format_time, in_words


@store_command("recover")
@collection_argument
@click.argument("ids", nargs=-1, metavar="[ID]...", help="The documents to bring back. Left out, they are listed.")
@partition_option
@limit_option
@format_option
def recover_command(db: str, collection: str, ids: tuple[str, ...], partition: Any, limit: int, format: str) -> None:
    """List expired documents that are not deleted yet, or bring some back.

    A document that is brought back starts a new life, as if it were written now. How long that is possible depends on
    the vacuum: an application keeps expired documents for a while with VacuumPolicy(grace=...).

    \b
    Examples:
      ttlstore recover app.db carts
      ttlstore recover app.db carts c1 c2
      ttlstore recover app.db orders SO05 --partition CO18009186470
    """
    with opened(db) as store:
        documents = store.collection(collection)
        if not ids:
            waiting = ({"document": document, **expiry._asdict()} for document, expiry in documents.waiting())
            show(
                islice(waiting, limit),
                format,
                _for_people,
                empty=f"no expired documents wait in {collection!r}",
                more=lambda: next(waiting, None) is not None,
            )
            return
        with store.transaction():  # all of them or none
            for id in ids:
                documents.recover(id, partition=partition)
        for id in ids:
            click.echo(f"recovered {id!r}: it {in_words(documents.expiry(id, partition=partition))}")


def _for_people(record: Record) -> Record:
    return {
        "id": record["document"]["id"],
        "last written": format_time(record["document"]["_ts"]),
        "expired": format_time(record["expires_at"]),
        "document": contents(record["document"]),
    }
