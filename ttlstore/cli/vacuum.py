"""`vacuum`: delete the rows of expired documents, once or as a service."""

import logging
import math
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from ttlstore.cli.opening import opened
from ttlstore.cli.output import counted, format_bytes
from ttlstore.cli.params import DURATION, store_command
from ttlstore.cli.progress import interrupted, progress
from ttlstore.cli.times import format_time
from ttlstore.ttl import MAX_TTL


class _Seconds(click.FloatRange):
    """A time to wait for. As long as a duration at most: what waits cannot count to any number."""

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True, max=MAX_TTL)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds: float = super().convert(value, param, ctx)
        if math.isnan(seconds):  # which is not beyond any bound either
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
        return seconds


@store_command("vacuum")
@click.option("--watch", is_flag=True, help="Go on as a service: delete what expires, until Ctrl-C or SIGTERM.")
@click.option("--max-seconds", type=_Seconds(), help="Stop after this time.")
@click.option("--grace", type=DURATION, default=0, help="Keep what expired less than so long ago: it can be recovered.")
def vacuum_command(db: str, watch: bool, max_seconds: float | None, grace: int) -> None:
    """Delete expired documents for good, and give the space back.

    They are gone for every reader already. Works in small batches, behind everybody else who writes. Applications that
    have the store open do the same in the background.

    \b
    Examples:
      ttlstore vacuum app.db
      ttlstore vacuum app.db --max-seconds 60
      ttlstore vacuum app.db --watch --grace 1d
    """
    if watch:
        _watch(db, max_seconds, grace)
    else:
        _vacuum(db, max_seconds, grace)


def _vacuum(db: str, max_seconds: float | None, grace: int) -> None:
    deleted = 0

    def tell(done: int, total: int) -> None:
        nonlocal deleted
        deleted = done
        advance(done, total)

    with opened(db) as store:
        try:
            with progress(f"vacuum {store.name}", None) as advance:
                report = store.vacuum(max_seconds=max_seconds, grace=grace, progress=tell)
        except KeyboardInterrupt:
            raise interrupted(f"{counted(deleted, 'expired document')} deleted; the rest can wait") from None
        left = 0 if report.finished else store.stats().waiting_documents
    if report.holding:
        raise click.ClickException(report.holding)
    click.echo(
        f"deleted {counted(report.deleted, 'expired document')} in {report.seconds:.1f} s, "
        f"gave {format_bytes(report.bytes_returned)} back" + (f"; {left:,} still wait" if left else "")
    )


def _watch(db: str, max_seconds: float | None, grace: int) -> None:
    from ttlstore import VacuumPolicy

    with _logged(), _stop_signal() as stop, opened(db, vacuum=VacuumPolicy(grace=grace)) as store:
        click.echo(f"watching {store.name}; stop with Ctrl-C", err=True)
        stop.wait(max_seconds)
        deleted = store.stats().vacuum.deleted
    click.echo(f"stopped: deleted {counted(deleted, 'expired document')}")


@contextmanager
def _stop_signal() -> Iterator[threading.Event]:
    """What Ctrl-C and SIGTERM set: both are how a service ends."""
    stop = threading.Event()
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _logged() -> Iterator[None]:
    """What the background vacuum logs, on stderr."""
    log = logging.getLogger("ttlstore.vacuum")
    level = log.level
    handler = logging.StreamHandler()
    handler.setFormatter(_OneLine())
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        log.setLevel(level)
        log.removeHandler(handler)


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return f"{format_time(record.created)}  {record.getMessage()}"
