"""The front: python -m benchmarks [name …]; without a name, every suite in turn."""

import platform
import shlex
import sqlite3
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Literal

import click
from rich.console import Console

from benchmarks import difference, table
from benchmarks.measure import Comparison, Promise
from benchmarks.peers import PEERS
from benchmarks.record import Run
from benchmarks.side_by_side import Options, SideBySide

# A suite is a module of this package with a `run()`, which yields what it measured together with what is promised.
# Imported when it runs: each needs other packages of the group `bench`.
SUITES = {
    "point": "Reads, writes and bulk loads, to the same SQL by hand and to diskcache.",
    "query": "Queries with and without indexes, to the same SQL by hand.",
    "vacuum": "What deleting a million expired rows costs.",
    "postgres": "The same on PostgreSQL, to the same SQL by hand and to COPY.",
    "scaling": "PostgreSQL with 16 hash partitions, to one table.",
}

FILE_COLUMNS = 160


@click.group(chain=True, invoke_without_command=True)
@click.pass_context
def main(context: click.Context) -> None:
    """How fast the store is, in one run on one machine. Without a command, every suite of promises in turn."""
    if context.invoked_subcommand is None:
        for name in SUITES:
            run_suite(name)


def run_suite(name: str, **options: int) -> None:
    click.echo(f"{name}: Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {platform.machine()}")
    results: Iterator[Comparison | Promise] = import_module(f"benchmarks.{name}").run(**options)
    for result in results:
        click.echo("\n".join(result.lines()))


for _name, _help in SUITES.items():
    _command = main.command(_name, help=_help)(lambda name=_name, **options: run_suite(name, **options))
    if _name == "query":
        click.option("--documents", type=int, default=100_000, show_default=True)(_command)


def wide_console() -> Console:
    """The terminal; or, into a file, as wide as the tables are."""
    console = Console()
    return console if console.is_terminal else Console(width=FILE_COLUMNS)


@main.command()
@click.option("--peer", "peers", multiple=True, type=click.Choice(list(PEERS)), help="One of them; all, if not given.")
@click.option("--size", "sizes", multiple=True, type=int, default=(10_000, 100_000, 1_000_000), show_default=True)
@click.option("--big-size", "big_sizes", multiple=True, type=int, help="For ttlstore and the floor alone.")
@click.option("--durability", type=click.Choice(["normal", "full"]), default="normal", show_default=True)
@click.option("--rounds", type=int, default=5, show_default=True)
@click.option("--at-once", multiple=True, type=int, default=(1, 2, 4, 8), show_default=True, help="Threads, processes.")
@click.option("--shared-size", type=int, default=100_000, show_default=True, help="Documents they share; 0: left out.")
@click.option("--expiring", type=int, default=100_000, show_default=True, help="Documents, at once; 0: left out.")
@click.option("--budget", type=float, default=6.0, show_default=True, help="Seconds for a cell, and 10 a million.")
@click.option("--load-budget", type=float, default=80.0, show_default=True, help="Microseconds a document, and 10 s.")
@click.option("--output", type=click.Path(path_type=Path), help="The record of the run, as JSON.")
def peers(
    peers: tuple[str, ...],
    sizes: tuple[int, ...],
    big_sizes: tuple[int, ...],
    durability: Literal["normal", "full"],
    rounds: int,
    at_once: tuple[int, ...],
    shared_size: int,
    expiring: int,
    budget: float,
    load_budget: float,
    output: Path | None,
) -> None:
    """The store and what could be used instead, side by side."""
    command = shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]])
    options = Options(
        *(peers or tuple(PEERS), sizes, big_sizes, durability, rounds, at_once, shared_size, expiring),
        *(budget, load_budget),
    )
    console = wide_console()
    measuring = SideBySide(options, command, lambda text: click.echo(text, err=True))
    for run in measuring.parts():
        if output:
            run.save(output)
    table.show(measuring.run, console)


@main.command()
@click.argument("before", type=click.Path(exists=True, path_type=Path))
@click.argument("after", type=click.Path(exists=True, path_type=Path))
def compare(before: Path, after: Path) -> None:
    """What a change did: the records of a run before it and one after it."""
    difference.show(Run.read(before), Run.read(after), wide_console())


@main.command()
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--record", "records", multiple=True, required=True, type=click.Path(exists=True, path_type=Path))
def page(target: Path, records: tuple[Path, ...]) -> None:
    """Write the page of the documentation, and its pictures beside it, from records."""
    from benchmarks import page as pages
    from benchmarks.plots import draw

    folder = target.with_suffix("")
    runs = [(run, draw(run, folder, record.stem)) for record in records for run in (Run.read(record),)]
    pages.write(target, runs, folder.name)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
