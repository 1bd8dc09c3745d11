"""`query`: the query language, from the command line, a pipe or a shell of its own."""

import sys
import time
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from ttlstore.cli.opening import At, opened
from ttlstore.cli.output import BEYOND_TABLES, TABLE_ROWS, Record, counted, format_option, json_text, show
from ttlstore.cli.params import PARAMETER, at_option, collection_argument, partition_option, store_command
from ttlstore.cli.table import RightAligned, Wrapped

if TYPE_CHECKING:
    from ttlstore.collection import Collection

VALUE = "value"  # the title of what has no properties


@store_command("query")
@collection_argument
@click.argument("text", required=False, help="SELECT ..., or a condition. Left out, it is read from stdin or a shell.")
@click.option(
    "--param",
    "parameters",
    type=PARAMETER,
    multiple=True,
    metavar="NAME=VALUE",
    help="The value of @NAME, read as JSON (5, true, null) or else as text. May be given several times.",
)
@partition_option
@click.option("--scan", is_flag=True, help="Look at every document of a collection that has no indexes (mode none).")
@click.option("--explain", is_flag=True, help="Do not run the query, but tell how it would be run.")
@at_option
@format_option
def query_command(
    db: str,
    collection: str,
    text: str | None,
    parameters: tuple[tuple[str, Any], ...],
    partition: Any,
    scan: bool,
    explain: bool,
    at: At | None,
    format: str,
) -> None:
    """Run a query, or open a shell for queries.

    The shell has a history, runs what ends in a semicolon, and explains itself with \\?.

    \b
    Examples:
      ttlstore query app.db orders "SELECT c.id, c.total FROM c WHERE c.total > @min" --param min=10
      ttlstore query app.db orders "c.status = 'open'" --format jsonl
      ttlstore query app.db orders "SELECT VALUE COUNT(1) FROM c" --at +30d
      ttlstore query app.db orders "c.status = 'open'" --explain
      ttlstore query app.db orders
    """
    with opened(db, at=at) as store:
        documents = store.collection(collection)
        queries = Queries(documents, dict(parameters), partition, format, scan=scan, explain=explain)
        if text is None and sys.stdin.isatty():
            from ttlstore.cli.shell import Shell

            Shell(documents, queries.run).run()
        else:
            queries.run(sys.stdin.read() if text is None else text)


class Queries:
    """How the queries of one command are run."""

    def __init__(
        self,
        collection: "Collection",
        parameters: dict[str, Any],
        partition: Any,
        format: str,
        *,
        scan: bool,
        explain: bool,
    ) -> None:
        self._collection = collection
        self._parameters = parameters
        self._partition = partition
        self._format = format
        self._scan = scan
        self._explain = explain

    def run(self, text: str) -> None:
        """Run a query, which may end in a semicolon, and print what it finds. Raises QueryError."""
        text = text.rstrip().removesuffix(";")
        if self._explain:
            click.echo(str(self._collection.explain(text, self._parameters, partition=self._partition)))
            return
        start = time.perf_counter()
        results = self._collection.query(text, self._parameters, partition=self._partition, scan=self._scan)
        if self._format == "table":
            rows = _rows(islice(results, TABLE_ROWS))
            more = any(True for _ in results)
            taken = _seconds(time.perf_counter() - start)
            if any(rows):
                show(rows, "table", dict, empty="")
            if more:
                click.echo(
                    f"the first {TABLE_ROWS:,} results in {taken}, and there are more: {BEYOND_TABLES}", err=True
                )
            else:
                click.echo(f"{counted(len(rows), 'result')} in {taken}", err=True)
        elif self._format == "csv":
            show(map(_record, results), "csv", dict, empty="")
        else:
            show(results, self._format, dict, empty="")


def _record(result: Any) -> Record:
    return result if isinstance(result, dict) else {VALUE: result}


def _rows(results: Iterable[Any]) -> list[Record]:
    """Results as the cells of a table, each with all of the titles."""
    records = [_record(result) for result in results]
    titles = dict.fromkeys(title for record in records for title in record)
    return [{title: _cell(record[title]) if title in record else "" for title in titles} for record in records]


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return Wrapped(value)
    if isinstance(value, dict | list):
        return Wrapped(json_text(value))
    return RightAligned(json_text(value))


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"
