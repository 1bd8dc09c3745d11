"""The expiry rules that need no database: what a valid ttl is, which one applies, and when it runs out."""

from collections.abc import Callable
from datetime import timedelta
from time import time, time_ns
from typing import Literal, NamedTuple

from ttlstore.errors import InvalidTtl, shown

NEVER = -1
MAX_TTL = 2_147_483_647  # seconds, some 68 years: the largest the reference takes

Clock = Callable[[], float]  # seconds since the Unix epoch, as time.time

_MICROSECONDS = 1_000_000


Moment = tuple[int, int]
"""One reading of the clock, in whole milliseconds: the present, and the `_ts` of what is written now.

Between two milliseconds the present is the earlier one and a write counts from the later one: so a document lives its
ttl in full, and less than a millisecond more.
"""


def moment(clock: Clock) -> Moment:
    if clock is time:
        nanoseconds = time_ns()  # the same clock in whole numbers: exact, and half the work
        return nanoseconds // 1_000_000, -(-nanoseconds // 1_000_000)
    # By way of microseconds: seconds * 1000 is off by a hair for most times that are a whole millisecond.
    microseconds = round(clock() * _MICROSECONDS)
    return microseconds // 1000, -(-microseconds // 1000)


def present(clock: Clock) -> int:
    """The present alone, for what writes nothing."""
    if clock is time:
        return time_ns() // 1_000_000
    return round(clock() * _MICROSECONDS) // 1000


def check_clock(clock: Clock) -> None:
    """Refuse what does not tell the time. Raises ValueError."""
    try:
        present(clock)
    except (TypeError, ValueError, OverflowError) as error:  # NaN and infinities are no time either
        raise ValueError(
            f"clock must be a function that returns seconds since the Unix epoch, as time.time, got {shown(clock)}"
        ) from error


def check_ttl(ttl: object) -> int:
    """The ttl of a document, if it is valid. Raises InvalidTtl."""
    if type(ttl) is int and (ttl == NEVER or 1 <= ttl <= MAX_TTL):
        return ttl
    raise InvalidTtl(f"ttl must be -1 (never) or a whole number of seconds from 1 to {MAX_TTL}, got {shown(ttl)}")


def check_default_ttl(default_ttl: object) -> int | None:
    """The default of a collection, if it is valid. Raises InvalidTtl."""
    given = default_ttl
    if isinstance(default_ttl, timedelta) and not default_ttl.microseconds:
        default_ttl = default_ttl.days * 86_400 + default_ttl.seconds
    if default_ttl is None or (type(default_ttl) is int and (default_ttl == NEVER or 1 <= default_ttl <= MAX_TTL)):
        return default_ttl
    raise InvalidTtl(
        f"default_ttl must be None (off), -1 (on, no default) or a whole number of seconds from 1 to {MAX_TTL}, "
        f"as an int or a timedelta, got {shown(given)}"
    )


class Horizons(NamedTuple):
    """What lies at or before them is expired (milliseconds); None: nothing is. The same as in `schema`."""

    own: int | None
    """Of documents with a ttl of their own, by the moment at which they expire."""
    inherited: int | None
    """Of documents that inherit the default, by the moment at which they were written."""


def horizons(default_ttl: int | None, now: int) -> Horizons:
    """The horizons of a collection at `now`."""
    if default_ttl is None:
        return Horizons(None, None)
    return Horizons(now, None if default_ttl == NEVER else now - default_ttl * 1000)


class Expiry(NamedTuple):
    """When a document expires, and why."""

    ttl: int | None
    """The ttl in force, in seconds; -1: never; None: TTL is off."""
    source: Literal["document", "collection", "off"]
    """Whose ttl that is: the document's own or its collection's default. `"off"`: TTL is off for the collection."""
    expires_at: float | None
    """Seconds since the Unix epoch; None: never."""
    seconds_left: float | None
    """From now on; None: never."""

    @property
    def reason(self) -> str:
        """The same in words."""
        if self.ttl is None:
            return "never expires: TTL is off for its collection"
        whose = "its own ttl" if self.source == "document" else "its collection's default"
        if self.ttl == NEVER and self.source == "collection":
            return "never expires: it has no ttl of its own, and its collection has no default"
        if self.ttl == NEVER:
            return "never expires, by its own ttl"
        return f"expires {self.ttl} s after its last write, by {whose}"


def expiry(ttl: int | None, default_ttl: int | None, ts: int, now: int) -> Expiry:
    """The expiry of a document last written at `ts`, seen at `now` (milliseconds)."""
    if default_ttl is None:
        return Expiry(None, "off", None, None)
    effective, source = (default_ttl, "collection") if ttl is None else (ttl, "document")
    if effective == NEVER:
        return Expiry(NEVER, source, None, None)  # type: ignore[arg-type]
    expires_at = ts + effective * 1000
    return Expiry(effective, source, expires_at / 1000, (expires_at - now) / 1000)  # type: ignore[arg-type]
