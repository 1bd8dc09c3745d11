"""Long work on a terminal: a bar with the rate and the time left. Nothing where nobody watches."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import click

from ttlstore.cli.output import console
from ttlstore.start import INTERRUPTED

TITLE_WIDTH = 30  # characters: the URL of a store would leave no room for the bar and the numbers


class Advance(Protocol):
    def __call__(self, done: int, total: int | None = None) -> None:
        """So much is done, of a total that may have become known by now."""


@contextmanager
def progress(title: str, total: int | None, *, bytes: bool = False) -> Iterator[Advance]:
    """A bar on stderr; what it yields is told how much of `total` is done. A total of None is not known."""
    if not sys.stderr.isatty():
        yield lambda done, total=None: None
        return
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )
    from rich.table import Column
    from rich.text import Text

    class RateColumn(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(f"{task.speed:,.0f}/s" if task.speed else "")

    amount = (DownloadColumn(), TransferSpeedColumn()) if bytes else (MofNCompleteColumn(), RateColumn())
    bar = Progress(
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, max_width=TITLE_WIDTH)),
        BarColumn(),
        *amount,
        TimeRemainingColumn(),
        console=console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task(title, total=total)
        yield lambda done, total=None: bar.update(task, completed=done, total=total)


def interrupted(done: str) -> click.exceptions.Exit:
    """What ends a command after Ctrl-C. Says what was done."""
    click.echo(f"\ninterrupted: {done}", err=True)
    return click.exceptions.Exit(INTERRUPTED)
