"""Writing many documents: streaming, in batches, each of them a transaction of its own."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import NoReturn

from ttlstore.batches import Batches
from ttlstore.document import Encoded, new_etag
from ttlstore.engine import Engine
from ttlstore.errors import DocumentRefused, InvalidDocument
from ttlstore.statements import Prepared, Values
from ttlstore.ttl import moment, present


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
                for batch in (batches := Batches(documents, lambda encoded: len(encoded.body))):
                    written, refusal = self._write(batch, batches.make_next)
                    stored += written
                    if refusal is not None:
                        raise refusal
                    if written < len(batch):
                        self.refuse(batch[written])
        except Exception as error:
            kept = "nothing of this call is stored" if all_or_none else f"the {stored} before it are stored"
            if isinstance(error, DocumentRefused):
                named = type(error)(f"document {stored} (counted from 0): {error}; {kept}")
                named.position = stored
                raise named from error
            error.add_note(f"after {stored} documents: {kept}")
            raise
        return stored

    def _write(self, batch: list[Encoded], meanwhile: Callable[[], None]) -> tuple[int, InvalidDocument | None]:
        """Write a batch up to the first document that is refused.

        Tells how many that were, and what the database had against the next one, unless that just changed nothing.
        """

        def rows() -> Iterator[Values]:
            now, ts = moment(self.engine.statement_clock)
            tail = self.context(now)
            self.noticed({encoded.ttl for encoded in batch}, present(self.engine.clock))
            return (encoded.values(ts, new_etag()) + tail for encoded in batch)

        with suppress(InvalidDocument):
            if self.engine.write_all(self.statement, len(batch), rows, meanwhile):
                return len(batch), None
        # The database does not tell which: look at each.
        with self.engine.writing():
            for position, row in enumerate(rows()):
                try:
                    with self.engine.writing():  # a server goes on after an error from a savepoint only
                        changed = self.engine.change(self.statement, row)
                except InvalidDocument as error:
                    return position, error
                if not changed:
                    return position, None
        return len(batch), None
