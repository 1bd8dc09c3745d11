"""`forecast`: what expires when, if nothing is written."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ttlstore.cli.opening import opened
from ttlstore.cli.output import Record, console, counted, format_bytes, format_option, show
from ttlstore.cli.params import COUNT, DURATION, collection_argument, store_command
from ttlstore.cli.times import format_duration, format_left, format_time

if TYPE_CHECKING:
    from ttlstore.insight import CollectionStats, ForecastInterval

LAST_SECOND = 253_402_300_799 - 86_400  # of the year 9999, in any time zone: the last that Python can name
BAR_WIDTH = 30  # characters


@store_command("forecast")
@collection_argument
@click.option("--interval", type=DURATION, default="1h", show_default=True, help="The length of an interval: 15m, 1d.")
@click.option("--intervals", type=COUNT, default=24, show_default=True, help="How many intervals to look ahead.")
@click.option(
    "--png", type=click.Path(dir_okay=False, writable=True), metavar="FILE", help="Draw it into this file as well."
)
@format_option
def forecast_command(db: str, collection: str, interval: int, intervals: int, png: str | None, format: str) -> None:
    """Show how many documents and bytes expire, interval by interval ahead.

    \b
    Examples:
      ttlstore forecast app.db carts
      ttlstore forecast app.db carts --interval 5m --intervals 12
      ttlstore forecast app.db orders --interval 1d --intervals 90 --png orders.png
    """
    with opened(db) as store:
        documents = store.collection(collection)
        if store.now() + interval * intervals > LAST_SECOND:
            raise click.UsageError("a forecast ends before the year 10000: look less far ahead")
        try:
            forecast = documents.forecast(interval=interval, intervals=intervals)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        stats = documents.stats()
    if png is not None:
        from ttlstore.cli.plot import plot

        plot(forecast, f"Expiring documents of {collection!r}", png)
    most = max(each.documents for each in forecast)
    show(map(dataclasses.asdict, forecast), format, lambda record: _for_people(record, most), empty="")
    if format == "table":
        click.echo(_summary(forecast, stats), err=True)


def _for_people(record: Record, most: int) -> Record:
    return {
        "until": format_time(record["end"]),
        "documents": record["documents"],
        "size": format_bytes(record["bytes"]),
        "": _bar(record["documents"], most),
    }


def _bar(documents: int, most: int) -> str:
    """As long as the number, and not empty for any that is not 0."""
    block = "#" if console().options.ascii_only else "█"
    return block * -(-documents * BAR_WIDTH // most) if most else ""


def _summary(forecast: Sequence["ForecastInterval"], stats: "CollectionStats") -> str:
    expiring = sum(each.documents for each in forecast)
    start, end = forecast[0].start, forecast[-1].end
    within = format_duration(round(end - start))
    summary = f"{expiring:,} of {counted(stats.live_documents, 'live document')} would expire within {within}"
    if stats.next_expiry is not None and stats.next_expiry > end:
        summary += f", the first in {format_left(stats.next_expiry - start)}"
    return f"{summary}, if nothing is written"
