"""Where rows were deleted between others that stay.

Their pages are left half empty, and a database such as SQLite joins pages only when they are emptier than that: the
file would not shrink. What stays there is written anew, side by side, once enough around it is gone.
"""

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress

WINDOW_ROWS = 256  # places in the order that are written anew together: some 4 ms of work
SPARSE_ROWS = 64  # of them gone: for each row that was deleted, at most three are written
MAX_WINDOWS = 100_000  # that are remembered, some 10 MB: what is forgotten is space, until others take it


class Gaps:
    """The places (`seq`) of deleted rows, counted by window."""

    def __init__(self) -> None:
        self._gone: Counter[int] = Counter()
        self._sparse: list[int] = []

    def note(self, places: Iterable[int]) -> None:
        """Rows were deleted there."""
        self._gone.update([place // WINDOW_ROWS for place in places])
        if len(self._gone) > MAX_WINDOWS:
            self._gone.clear()

    def next(self) -> tuple[int, int] | None:
        """The first and the last place of a window that is worth it, until `closed()`; None if there is none."""
        if not self._sparse:
            # A window that is gone as a whole has left nothing to write.
            found = [window for window, gone in self._gone.items() if SPARSE_ROWS <= gone < WINDOW_ROWS]
            for window in found:
                del self._gone[window]
            self._sparse = sorted(found, reverse=True)
        if not self._sparse:
            return None
        first = self._sparse[-1] * WINDOW_ROWS
        return first, first + WINDOW_ROWS - 1

    def closed(self, first: int) -> None:
        """The window that begins there was written anew."""
        with suppress(ValueError):  # another thread's vacuum was faster
            self._sparse.remove(first // WINDOW_ROWS)
