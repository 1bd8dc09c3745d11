"""The clock of a database server, for what is decided outside of its statements."""

import time
from collections.abc import Callable

from ttlstore.errors import TtlStoreError

TRUSTED_SECONDS = 1.0  # after which the server is asked again: until then a clock here goes on from what it said


class ServerClock:
    """Seconds since the Unix epoch, as the server has them.

    Never behind the server's, as long as the two run alike: it counts from when the server was asked, not from when the
    answer was here. Where the server cannot be asked, it goes on from the last answer.
    """

    def __init__(self, ask: Callable[[], float]) -> None:
        self._ask = ask
        self._asked: tuple[float, float] | None = None  # when, by a clock that nobody sets, and the answer

    def __call__(self) -> float:
        last = self._asked
        start = time.monotonic()
        if last is None or start - last[0] > TRUSTED_SECONDS:
            try:
                last = self._asked = (start, self._ask())
            except TtlStoreError:
                if last is None:
                    raise
        return last[1] + time.monotonic() - last[0]
