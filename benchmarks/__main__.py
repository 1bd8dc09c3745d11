"""The front: python -m benchmarks [name …]; without a name, every suite in turn."""

import platform
import sqlite3
from collections.abc import Iterator
from importlib import import_module

import click

from benchmarks.measure import Comparison, Promise

# A suite is a module of this package with a `run()`, which yields what it measured together with what is promised.
# Imported when it runs: each needs other packages of the group `bench`.
SUITES = {
    "point": "Reads, writes and bulk loads, to the same SQL by hand and to diskcache.",
    "vacuum": "What deleting a million expired rows costs.",
}


@click.group(chain=True, invoke_without_command=True)
@click.pass_context
def main(context: click.Context) -> None:
    """How fast the store is, in one run on one machine. Without a command, every suite of promises in turn."""
    if context.invoked_subcommand is None:
        for name in SUITES:
            run_suite(name)


def run_suite(name: str) -> None:
    click.echo(f"{name}: Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {platform.machine()}")
    results: Iterator[Comparison | Promise] = import_module(f"benchmarks.{name}").run()
    for result in results:
        click.echo("\n".join(result.lines()))


for _name, _help in SUITES.items():
    main.command(_name, help=_help)(lambda name=_name: run_suite(name))


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
