"""`stats`: a store or a collection by numbers."""

import dataclasses

from ttlstore.cli.opening import At, opened
from ttlstore.cli.output import Record, counted, format_bytes, format_option, show_record
from ttlstore.cli.params import any_collection_argument, at_option, store_command
from ttlstore.cli.times import format_left, format_time


@store_command("stats")
@any_collection_argument
@at_option
@format_option
def stats_command(db: str, collection: str | None, at: At | None, format: str) -> None:
    """Tell how much is live, how much waits to be deleted, and since when.

    \b
    Examples:
      ttlstore stats app.db
      ttlstore stats app.db carts
      ttlstore stats app.db carts --at +1d --format json
    """
    with opened(db, at=at) as store:
        now = store.now()
        stats = store.stats() if collection is None else store.collection(collection).stats()
    record = {
        # What the vacuum of this process did is nothing.
        **{name: value for name, value in dataclasses.asdict(stats).items() if name not in ("engine", "vacuum")},
        "lag_seconds": lag_seconds(stats.oldest_waiting, now),
        "next_expiry_seconds": None if stats.next_expiry is None else stats.next_expiry - now,
    }
    show_record(record, format, _for_people)


def lag_seconds(oldest_waiting: float | None, now: float) -> float | None:
    """How long the first of the expired documents has been waiting to be deleted."""
    return None if oldest_waiting is None else max(now - oldest_waiting, 0.0)


def _for_people(record: Record) -> Record:
    facts = {
        "live": _amount(record, "live"),
        "waiting": f"{_amount(record, 'waiting')} (expired, not deleted yet)",
        "lag": "none"
        if record["lag_seconds"] is None
        else f"{format_left(record['lag_seconds'])} since the first expired",
        "next expiry": "never"
        if record["next_expiry"] is None
        else f"{format_time(record['next_expiry'])}, in {format_left(record['next_expiry_seconds'])}",
    }
    if "file_bytes" in record:
        facts = {"collections": record["collections"], **facts}
        facts["size"] = f"{format_bytes(record['file_bytes'])}, of which {format_bytes(record['free_bytes'])} unused"
    return facts


def _amount(record: Record, which: str) -> str:
    return f"{counted(record[f'{which}_documents'], 'document')}, {format_bytes(record[f'{which}_bytes'])}"
