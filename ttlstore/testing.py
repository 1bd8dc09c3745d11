"""For tests: of this package, and of applications that use it."""

from datetime import timedelta


class FakeClock:
    """A clock that stands still until it is told to move.

    >>> import ttlstore
    >>> clock = FakeClock()
    >>> store = ttlstore.open(":memory:", clock=clock)
    >>> tokens = store.create_collection("tokens", default_ttl=60)
    >>> _ = tokens.create({"id": "a"})
    >>> clock.advance(60)
    >>> "a" in tokens
    False
    >>> store.close()
    """

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.set(now)

    def __call__(self) -> float:
        return self._microseconds / 1_000_000

    def advance(self, by: float | timedelta) -> None:
        """Move by seconds, to the microsecond; backwards if negative."""
        seconds = by.total_seconds() if isinstance(by, timedelta) else by
        self._microseconds += round(seconds * 1_000_000)

    def set(self, now: float) -> None:
        """Move to a time in seconds since the Unix epoch."""
        self._microseconds = round(now * 1_000_000)
