"""What the commands print: tables for people, JSON and CSV for programs."""

import csv
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ttlstore.cli.table import facts, table

if TYPE_CHECKING:
    from rich.console import Console

F = TypeVar("F", bound=Callable[..., Any])
Record = Mapping[str, Any]

TABLE_ROWS = 1_000  # at most: a table takes what it shows as a whole, and nobody reads more
PIPE_WIDTH = 10_000  # columns: what is not read on a screen is not cut to one
KIB = 1024

BEYOND_TABLES = "see --format jsonl"


def format_option(function: F) -> F:
    return click.option(
        "--format",
        type=click.Choice(["table", "json", "jsonl", "csv"]),
        default="table",
        show_default=True,
        help="A table for people; the others for programs, with times in seconds and sizes in bytes.",
    )(function)


def console(*, stderr: bool = False) -> "Console":
    """The terminal, or what stands in for it: without colours and as wide as need be, or as COLUMNS says."""
    from rich.console import Console

    class PipeConsole(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would end the program with an error

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    return PipeConsole(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


def show(
    records: Iterable[Record],
    format: str,
    for_people: Callable[[Record], Record],
    *,
    empty: str,
    more: Callable[[], bool] = lambda: False,
) -> None:
    """Print records in a format. `for_people` turns one into the cells of a table by their titles.

    `more` tells whether there are others, beyond a limit. A table has one of its own.
    """
    match format:
        case "table":
            rest = iter(records)
            rows = [for_people(record) for record in islice(rest, TABLE_ROWS)]
            if rows:
                screen = console()
                screen.print(table(rows, screen.width))
            else:
                click.echo(empty, err=True)
            these = "this is 1" if len(rows) == 1 else f"these are {len(rows):,}"
            if any(True for _ in rest):
                click.echo(f"{these}, and there are more: {BEYOND_TABLES}", err=True)
            elif more():
                click.echo(f"{these}, and there are more: see --limit", err=True)
        case "json":
            _print_json_array(records)
        case "jsonl":
            for record in records:
                click.echo(json_text(record))
        case "csv":
            _print_csv(list(records))


def show_document(document: Any) -> None:
    """Print a document, or any JSON, to be read and to be piped."""
    import orjson
    from rich.highlighter import JSONHighlighter

    text = orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()
    console().print(JSONHighlighter()(_without_controls(text)), soft_wrap=True)


def show_record(record: Record, format: str, for_people: Callable[[Record], Record]) -> None:
    """Print one record in a format. `for_people` turns it into a few named values."""
    if format == "table":
        show_facts(for_people(record))
    elif format == "json":
        click.echo(json_text(record))
    else:
        show([record], format, for_people, empty="")


def show_facts(record: Record) -> None:
    """Print a few named values below each other."""
    for line in facts(record):
        click.echo(line)


def json_text(value: Any) -> str:
    import orjson

    return orjson.dumps(value).decode()


def message(error: Exception) -> str:
    """What an error says, with the options of the command line for those of the library."""
    return str(error).replace("pass scan=True", "pass --scan").replace("pass partition=", "pass --partition")


def _without_controls(json: str) -> str:
    """The same JSON with the characters escaped that JSON may leave as they are and a terminal could obey."""
    return re.sub("[\x7f-\x9f]", lambda found: f"\\u{ord(found[0]):04x}", json)


def counted(number: int, noun: str) -> str:
    """`1 document`, `12,340 documents`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def format_bytes(count: int) -> str:
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < KIB:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
        size /= KIB
    return f"{size:.1f} GiB"


def _print_json_array(records: Iterable[Record]) -> None:
    opening = "["
    for record in records:
        click.echo(f"{opening}{json_text(record)}", nl=False)
        opening = ",\n "
    click.echo("[]" if opening == "[" else "]")


def _print_csv(records: list[Record]) -> None:
    fields = list(dict.fromkeys(name for record in records for name in record))
    writer = csv.DictWriter(sys.stdout, fields, lineterminator="\n")
    writer.writeheader()
    for record in records:
        writer.writerow(
            {name: json_text(value) if isinstance(value, dict | list) else value for name, value in record.items()}
        )
