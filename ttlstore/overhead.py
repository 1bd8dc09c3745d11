"""What a batch costs however small it is.

A server that is far away, or the traces of rows that were deleted under somebody's old snapshot, take their time with
one row as with a thousand. Batches that are made smaller and smaller for that would delete next to nothing.
"""

STEP = 2  # how much smaller or larger a batch must be than the one before it to tell: less is noise


class Overhead:
    """Learned from the times of batches of different sizes."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._size = 0  # of the last batch
        self._taken = 0.0

    def note(self, size: int, taken: float) -> None:
        """So many rows took so long, in seconds."""
        before, taken_before = self._size, self._taken
        self._size, self._taken = size, taken
        if not before or max(size, before) < STEP * min(size, before):
            return
        # Where the line through the two meets no rows at all.
        fixed = (taken_before * size - taken * before) / (size - before)
        fixed = min(max(fixed, 0.0), taken, taken_before)
        # Only what shrinking did not cure counts as overhead: by chance a larger one may take no longer than a smaller.
        self.seconds = fixed if size < before else min(self.seconds, fixed)
