"""`ls`: the documents of a collection."""

from collections.abc import Mapping
from typing import Any

import click

from ttlstore.cli.opening import At, opened
from ttlstore.cli.output import Record, format_option, json_text, show
from ttlstore.cli.params import (
    DURATION,
    at_option,
    collection_argument,
    limit_option,
    partition_option,
    store_command,
)
from ttlstore.cli.table import Cut
from ttlstore.cli.times import format_left, format_time

SYSTEM = ("id", "ttl", "_ts", "_etag")  # what the other columns say, or nobody reads in a table


@store_command("ls")
@collection_argument
@partition_option
@limit_option
@click.option("--expiring-within", type=DURATION, help="Only those that expire before this time has passed: 1h.")
@at_option
@format_option
def ls_command(
    db: str,
    collection: str,
    partition: Any,
    limit: int,
    expiring_within: int | None,
    at: At | None,
    format: str,
) -> None:
    """List documents, newest first, with the time each has left.

    The newest is the one that was written last.

    \b
    Examples:
      ttlstore ls app.db carts
      ttlstore ls app.db orders --partition CO18009186470 --limit 100
      ttlstore ls app.db carts --expiring-within 1h --format jsonl
    """
    with opened(db, at=at) as store:
        newest = store.collection(collection).newest(
            limit=limit + 1, partition=partition, expiring_within=expiring_within
        )
    show(
        ({"document": document, **expiry._asdict()} for document, expiry in newest[:limit]),
        format,
        _for_people,
        empty=f"no documents in {collection!r}",
        more=lambda: len(newest) > limit,
    )


def _for_people(record: Record) -> Record:
    return {
        "id": record["document"]["id"],
        "last written": format_time(record["document"]["_ts"]),
        "time left": format_left(record["seconds_left"]),
        "document": contents(record["document"]),
    }


def contents(document: Mapping[str, Any]) -> Cut:
    """A document on a line, without its id and what other columns say."""
    return Cut(json_text({name: value for name, value in document.items() if name not in SYSTEM}))
