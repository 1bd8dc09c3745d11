"""Writing many documents: streaming, in batches, each of them a transaction of its own."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from threading import Event
from typing import NoReturn

from ttlstore.document import Encoded, new_etag
from ttlstore.engine import Engine
from ttlstore.errors import DocumentExists, InvalidDocument, InvalidTtl
from ttlstore.statements import Prepared, Values
from ttlstore.ttl import moment, present

BATCH_ROWS = 1000  # more gain little
BATCH_BYTES = 4 * 1024 * 1024  # of documents held in memory, and about what a batch adds to the log


@dataclass(frozen=True, slots=True)
class BulkWrite:
    """A writing statement, to be run for every document of a stream."""

    engine: Engine
    statement: Prepared
    context: Callable[[int], Values]
    """The values that follow those of the document, by the present."""
    refuse: Callable[[Encoded], NoReturn]
    """Raises why a document changed nothing."""
    noticed: Callable[[set[int | None], int], None]
    """Is told the ttls in a batch and when it was written."""

    def run(self, documents: Iterator[Encoded]) -> int:
        """Write, and tell how many.

        What comes before a document that is refused is stored; inside a transaction, nothing is.
        """
        stored = 0
        all_or_none = self.engine.in_transaction()
        try:
            with self.engine.writing() if all_or_none else nullcontext():
                ahead = self.engine.distant and not all_or_none
                for batch, written in (self._one_ahead if ahead else self._in_turn)(_batches(documents)):
                    stored += written
                    if written < len(batch):
                        self.refuse(batch[written])
        except Exception as error:
            kept = "nothing of this call is stored" if all_or_none else f"the {stored} before it are stored"
            if isinstance(error, InvalidDocument | InvalidTtl | DocumentExists):
                raise type(error)(f"document {stored} (counted from 0): {error}; {kept}") from error
            error.add_note(f"after {stored} documents: {kept}")
            raise
        return stored

    def _in_turn(self, batches: Iterator[list[Encoded]]) -> Iterator[tuple[list[Encoded], int]]:
        for batch in batches:
            yield batch, self._write(batch)

    def _one_ahead(self, batches: Iterator[list[Encoded]]) -> Iterator[tuple[list[Encoded], int]]:
        """While the server writes a batch, the next one is made. It is written only if all of the last one was.

        But only once the whole batch is on its way. Before, the next one would be made in its stead: whenever the
        thread that sends has waited for an answer, Python would let the other go on for milliseconds.
        """
        failure: Exception | None = None
        under_way: tuple[list[Encoded], Future[int]] | None = None
        with ThreadPoolExecutor(1, "ttlstore-bulk") as pool:
            while True:
                try:
                    batch = next(batches, None)
                except Exception as error:
                    batch, failure = None, error
                if under_way is not None:
                    yield under_way[0], under_way[1].result()
                if failure is not None:
                    raise failure
                if batch is None:
                    return
                sent = Event()
                under_way = (batch, pool.submit(self._write_telling, batch, sent))
                sent.wait()

    def _write_telling(self, batch: list[Encoded], sent: Event) -> int:
        try:
            return self._write(batch, sent.set)
        finally:
            sent.set()  # also if it failed before

    def _write(self, batch: list[Encoded], sent: Callable[[], None] = lambda: None) -> int:
        """Write a batch up to the first document that is refused, and tell how many that were."""
        with suppress(_SomeRefused), self.engine.writing():
            if self.engine.change_many(self.statement, self._rows(batch), sent) < len(batch):
                raise _SomeRefused  # the driver does not tell which: take the batch back, and look at each
            return len(batch)
        with self.engine.writing():
            for position, row in enumerate(self._rows(batch)):
                if not self.engine.change(self.statement, row):
                    return position
        return len(batch)

    def _rows(self, batch: list[Encoded]) -> list[Values]:
        now, ts = moment(self.engine.statement_clock)
        tail = self.context(now)
        self.noticed({encoded.ttl for encoded in batch}, present(self.engine.clock))
        return [encoded.values(ts, new_etag()) + tail for encoded in batch]


class _SomeRefused(Exception):
    """Rolls a batch back."""


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
