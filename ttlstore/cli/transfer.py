"""`import` and `export`: documents from and to files and pipes."""

import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from typing import IO, TYPE_CHECKING

import click

from ttlstore.cli.opening import opened
from ttlstore.cli.output import counted, json_text
from ttlstore.cli.params import collection_argument, complete_file, store_command
from ttlstore.cli.progress import interrupted, progress
from ttlstore.cli.records import STDIO, UNFINISHED, Record, Source, check_target, is_same, write_documents
from ttlstore.errors import InvalidDocument, InvalidTtl, TtlStoreError

if TYPE_CHECKING:
    from ttlstore.collection import Collection
    from ttlstore.document import Document

BATCH_RECORDS = 1000  # stored at a time, and what an interruption may have to do again


@store_command("export")
@collection_argument
@click.argument(
    "file",
    default=STDIO,
    help="Where to: .gz is packed, .json an array, else JSON Lines; - for stdout.",
    shell_complete=complete_file,
)
def export_command(db: str, collection: str, file: str) -> None:
    """Write all documents, as they are at one moment.

    `_ts` and `_etag` are written along. An import leaves them out: there every document starts a new life. To keep the
    time that each has left, use `ttlstore backup`.

    \b
    Examples:
      ttlstore export app.db carts carts.jsonl.gz
      ttlstore export app.db carts | jq .items
    """
    written = 0

    def watched(documents: "Iterable[Document]") -> "Iterator[Document]":
        nonlocal written
        for document in documents:
            yield document
            written += 1
            if written % BATCH_RECORDS == 0:
                advance(written)

    with opened(db) as store:
        if file != STDIO:
            check_target(file, store.name)
            check_target(f"{file}{UNFINISHED}", store.name)
        documents = store.collection(collection)
        try:
            with progress(f"export {collection}", documents.count()) as advance:
                write_documents(file, watched(documents.snapshot()))
        except KeyboardInterrupt:
            raise interrupted(f"after {counted(written, 'document')} {_nothing_at(file)}") from None
        except BrokenPipeError:
            raise
        except OSError as error:
            if isinstance(error, TtlStoreError):
                raise
            raise click.ClickException(
                f"{'stdout' if file == STDIO else file} cannot be written: {error.strerror}"
            ) from error
    click.echo(f"exported {counted(written, 'document')} of {collection!r}", err=True)


def _nothing_at(file: str) -> str:
    return "what was written is not complete" if file == STDIO else f"{file} was not written"


@store_command("import")
@collection_argument
@click.argument(
    "file",
    default=STDIO,
    help="JSON Lines or a JSON array, unpacked if its name ends in .gz; - for stdin.",
    shell_complete=complete_file,
)
@click.option(
    "--errors",
    type=click.Path(dir_okay=False, writable=True),
    help="Continue past records that are refused, and write them to this file with the reason.",
)
@click.option(
    "--skip",
    type=click.IntRange(min=0),
    default=0,
    help="Leave out the first records: continues an import that was stopped, which says how many.",
)
def import_command(db: str, collection: str, file: str, errors: str | None, skip: int) -> None:
    """Store documents from a file or a pipe.

    Each is new or takes the place of the one with its id; it must have one, so that an import can be repeated. Exit
    code 1 if any was refused.

    \b
    Examples:
      ttlstore import app.db carts carts.jsonl.gz
      ttlstore import app.db carts carts.json --errors refused.jsonl
      ttlstore export old.db carts | ttlstore import app.db carts
    """
    with ExitStack() as resources:
        store = resources.enter_context(opened(db))
        if errors:
            check_target(errors, store.name)
            if file != STDIO and is_same(errors, file):
                raise click.UsageError(f"{errors} is what is imported, and would be overwritten: name another file")
        documents = store.collection(collection)
        try:
            refused = resources.enter_context(open(errors, "a" if skip else "w")) if errors else None
            source = resources.enter_context(Source(file))
        except OSError as error:
            raise click.ClickException(f"{error.filename} cannot be opened: {error.strerror}") from error
        Import(documents, source, refused, skip).run(f"import {file}")


class Import:
    """An import under way: what was read, stored and refused so far."""

    def __init__(self, collection: "Collection", source: Source, refused_file: IO[str] | None, skip: int) -> None:
        self._collection = collection
        self._source = source
        self._refused_file = refused_file
        self._done = skip  # records up to this number are stored or refused
        self._stored = 0
        self._refused = 0

    def run(self, title: str) -> None:
        start = time.monotonic()
        try:
            with progress(title, self._source.size, bytes=True) as advance:
                records = iter(record for record in self._source if record.number > self._done)
                while batch := list(islice(records, BATCH_RECORDS)):
                    self._store(batch)
                    advance(self._source.position())
        except KeyboardInterrupt:
            raise interrupted(self._so_far()) from None
        except (TtlStoreError, OSError, EOFError, zlib.error) as error:
            raise click.ClickException(f"{error}; {self._so_far()}") from error
        seconds = time.monotonic() - start
        click.echo(
            f"imported {counted(self._stored, 'document')} into {self._collection.name!r} "
            f"in {seconds:.1f} s ({self._stored / seconds:,.0f} a second)",
            err=True,
        )
        if self._refused_file is not None and self._refused:
            raise click.ClickException(f"{counted(self._refused, 'record')} refused: see {self._refused_file.name}")

    def _store(self, batch: list[Record]) -> None:
        while batch:
            try:
                stored = self._collection.upsert_many(record.document() for record in batch)
            except (InvalidDocument, InvalidTtl) as error:
                # Not the record that was read last: others are read while the server has not looked at this one.
                record = batch[error.position]
                self._account(error.position, record.number - 1)
                # The cause is the refusal itself, without the position in this call.
                self._refuse(record, error.__cause__ or error)
                batch = batch[error.position + 1 :]
            else:
                self._account(stored, batch[-1].number)
                return

    def _account(self, stored: int, done: int) -> None:
        """So many more are stored, and records up to number `done` are stored or refused."""
        self._stored += stored
        self._done = done

    def _refuse(self, record: Record, reason: BaseException) -> None:
        if self._refused_file is None:
            raise InvalidDocument(f"record {record.number}: {reason}; go past such records with --errors FILE")
        self._refused_file.write(
            json_text({"record": record.number, "error": str(reason), "content": record.text()}) + "\n"
        )
        self._refused += 1
        self._done = record.number

    def _so_far(self) -> str:
        return f"{counted(self._stored, 'document')} stored; continue with --skip {self._done}"
