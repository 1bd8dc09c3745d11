"""Many documents of a collection, one after the other: live ones in order, and those that wait."""

from collections.abc import Iterator

from ttlstore.document import Document, decode
from ttlstore.engine import Engine, Row
from ttlstore.errors import StoreCorrupt
from ttlstore.ttl import Expiry, expiry, present

# Read a page at a time: no lock or snapshot is held while the caller works on a document.
FIRST_PAGE_ROWS = 16
MAX_PAGE_ROWS = 1000
WAITING_PAGE_ROWS = 100
PAGE_BYTES = 256 * 1024  # about what a page may hold, by the size of the documents before it


class Walk:
    """Goes through one collection. Nothing is also what it finds in one that was dropped."""

    def __init__(self, engine: Engine, collection: int) -> None:
        self._engine = engine
        self._statements = engine.statements
        self._collection = collection

    def live(self) -> Iterator[Document]:
        """Each as it is when its turn comes near, unless it expires before."""
        after, rows = 0, FIRST_PAGE_ROWS
        while page := self._engine.all(self._statements.page, (self._collection, after, self._now(), rows)):
            for _, expires_at, body, ts, etag, checksum in page:
                if expires_at is None or expires_at > present(self._engine.clock):
                    yield decode(body, ts, etag, checksum)
            after = self._further(after, page)
            average = sum([len(row[2]) for row in page]) // len(page) + 1
            rows = min(max(PAGE_BYTES // average, 1), MAX_PAGE_ROWS)

    def snapshot(self) -> Iterator[Document]:
        """Each as it is when the first is asked for."""
        for _, _, *stored in self._engine.stream(self._statements.all_in_order, (self._collection, 0, self._now())):
            yield decode(*stored)

    def waiting(self) -> Iterator[tuple[Document, Expiry]]:
        """The expired ones whose rows are still there."""
        after = 0
        while page := self._engine.all(
            self._statements.waiting, (self._collection, after, self._now(), WAITING_PAGE_ROWS)
        ):
            for _, own_ttl, default_ttl, now, *stored in page:
                yield decode(*stored), expiry(own_ttl, default_ttl, stored[1], now)
            after = self._further(after, page)

    def _now(self) -> int:
        return present(self._engine.statement_clock)

    def _further(self, after: int, page: list[Row]) -> int:
        """Where the next page begins: further on, or a damaged file would be gone through for ever."""
        last: int = page[-1][0]
        if last <= after:
            raise StoreCorrupt(f"{self._engine.name} is damaged: its rows are out of order")
        return last
