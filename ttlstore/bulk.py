"""Writing many documents: streaming, in batches, each of them a transaction of its own."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from typing import NoReturn

from ttlstore.document import Encoded, new_etag
from ttlstore.engine import Engine
from ttlstore.errors import DocumentExists, InvalidDocument, InvalidTtl
from ttlstore.statements import Prepared, Values
from ttlstore.ttl import Clock, Moment, moment

BATCH_ROWS = 1000  # more gain little
BATCH_BYTES = 4 * 1024 * 1024  # of documents held in memory, and about what a batch adds to the log


def write_many(
    engine: Engine,
    statement: Prepared,
    documents: Iterator[Encoded],
    context: Callable[[int], Values],
    clock: Clock,
    refuse: Callable[[Encoded], NoReturn],
) -> int:
    """Run a writing statement for every document, and tell how many that were.

    `context` makes the values that follow those of the document, by the present; `refuse` raises why one changed
    nothing. What comes before a document that is refused is stored; inside a transaction, nothing is.
    """
    stored = 0
    all_or_none = engine.in_transaction()
    try:
        with engine.writing() if all_or_none else nullcontext():
            for batch in _batches(documents):
                written = _write(engine, statement, batch, context, clock)
                stored += written
                if written < len(batch):
                    refuse(batch[written])
    except Exception as error:
        kept = "nothing of this call is stored" if all_or_none else f"the {stored} before it are stored"
        if isinstance(error, InvalidDocument | InvalidTtl | DocumentExists):
            raise type(error)(f"document {stored} (counted from 0): {error}; {kept}") from error
        error.add_note(f"after {stored} documents: {kept}")
        raise
    return stored


def _batches(documents: Iterator[Encoded]) -> Iterator[list[Encoded]]:
    """Lists of bounded size. What comes before an error comes before the error."""
    batch: list[Encoded] = []
    size = 0
    try:
        for encoded in documents:
            batch.append(encoded)
            size += len(encoded.body)
            if len(batch) == BATCH_ROWS or size >= BATCH_BYTES:
                yield batch
                batch, size = [], 0
    except Exception:
        if batch:
            yield batch
        raise
    if batch:
        yield batch


def _write(
    engine: Engine,
    statement: Prepared,
    batch: list[Encoded],
    context: Callable[[int], Values],
    clock: Clock,
) -> int:
    """Write a batch up to the first document that is refused, and tell how many that were."""
    with suppress(_SomeRefused), engine.writing():
        if engine.change_many(statement, _rows(batch, context, moment(clock))) < len(batch):
            raise _SomeRefused  # the driver does not tell which: take the batch back, and look at each
        return len(batch)
    with engine.writing():
        for position, row in enumerate(_rows(batch, context, moment(clock))):
            if not engine.change(statement, row):
                return position
    return len(batch)


class _SomeRefused(Exception):
    """Rolls a batch back."""


def _rows(batch: list[Encoded], context: Callable[[int], Values], at: Moment) -> list[Values]:
    now, ts = at
    tail = context(now)
    return [encoded.values(ts, new_etag()) + tail for encoded in batch]
