"""A forecast as a picture."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ttlstore.insight import ForecastInterval

SIZE_INCHES = (10, 5)
KIB = 1024


def plot(forecast: Sequence["ForecastInterval"], title: str, file: str) -> None:
    """Draw the documents and the bytes of each interval into a PNG file."""
    try:
        from matplotlib.figure import Figure  # not pyplot, which would look for a screen
    except ModuleNotFoundError:
        raise click.ClickException("--png needs matplotlib: pip install 'ttlstore[plot]'") from None

    starts = [_local(each.start) for each in forecast]
    width = timedelta(seconds=forecast[0].end - forecast[0].start)
    figure = Figure(figsize=SIZE_INCHES, layout="constrained")
    documents, sizes = figure.subplots(2, sharex=True)
    documents.bar(starts, [each.documents for each in forecast], width, align="edge")
    documents.set_ylabel("documents")
    documents.set_title(title)
    sizes.bar(starts, [each.bytes / KIB for each in forecast], width, align="edge")
    sizes.set_ylabel("KiB")
    sizes.set_xlim(starts[0], _local(forecast[-1].end))
    for axes in (documents, sizes):
        axes.set_ylim(bottom=0)
    try:
        figure.savefig(file, format="png")
    except OSError as error:
        raise click.ClickException(f"{file} cannot be written: {error.strerror}") from error


def _local(seconds: float) -> datetime:
    """As the clocks here show it: matplotlib would show UTC."""
    return datetime.fromtimestamp(seconds, UTC).astimezone().replace(tzinfo=None)
