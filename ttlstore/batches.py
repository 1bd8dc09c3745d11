"""Streams in batches: of so many, and of so many bytes."""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")

BATCH_ROWS = 1000  # more gain little
BATCH_BYTES = 4 * 1024 * 1024  # of documents held in memory, and about what a batch adds to the log


class Batches(Generic[T]):
    """Lists of bounded size, the next of which can be made ahead. What comes before an error comes before the error.

    A list ends with what fills it: only a document that is larger than a batch makes it longer than that.
    """

    def __init__(self, items: Iterator[T], size: Callable[[T], int]) -> None:
        """`size` tells the bytes of an item."""
        self._items = items
        self._size = size
        self._ahead: list[T] = []
        self._failure: Exception | None = None

    def __iter__(self) -> Iterator[list[T]]:
        while True:
            self.make_next()
            if not self._ahead:
                break
            batch, self._ahead = self._ahead, []
            yield batch
        if self._failure is not None:
            raise self._failure

    def make_next(self) -> None:
        """Unless that was done already."""
        batch = self._ahead
        if batch or self._failure is not None:
            return
        size = 0
        try:
            for item in self._items:
                batch.append(item)
                size += self._size(item)
                if len(batch) == BATCH_ROWS or size >= BATCH_BYTES:
                    return
        except Exception as error:
            self._failure = error
