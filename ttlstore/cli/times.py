"""Durations and times as people write and read them."""

import re
from datetime import UTC, datetime

from ttlstore.errors import shown
from ttlstore.ttl import MAX_TTL, NEVER, Expiry

UNITS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}  # in seconds, largest first

_DURATION = re.compile("".join(rf"(?:(\d{{1,15}}){unit})?" for unit in UNITS), re.ASCII | re.IGNORECASE)
_SHOWN_UNITS = {unit: seconds for unit, seconds in UNITS.items() if unit != "w"}  # 90d says more than 12w6d


def parse_duration(text: str) -> int:
    """The seconds of `90d`, `36h`, `15m`, `1h30m` or `45`. Raises ValueError."""
    packed = "".join(text.split())
    found = _DURATION.fullmatch(f"{packed}s" if packed.isdigit() else packed)
    if not packed or found is None:
        raise ValueError(f"a duration is written like 90d, 36h, 15m, 1h30m or 45 (seconds), got {shown(text)}")
    total = sum(int(count or 0) * seconds for count, seconds in zip(found.groups(), UNITS.values(), strict=True))
    if total > MAX_TTL:
        raise ValueError(f"a duration is at most {MAX_TTL} seconds, some 68 years, got {shown(text)}")
    return total


def format_duration(seconds: int) -> str:
    """The same the other way round, exact: `1h30m`."""
    parts = []
    for unit, size in _SHOWN_UNITS.items():
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def format_left(seconds: float | None) -> str:
    """The time that is left, to about two digits: `3d 4h`, `4.2s`, `never`."""
    if seconds is None:
        return "never"
    if seconds < 10:
        return f"{seconds:.1f}s"
    rest = int(seconds)
    parts: list[str] = []
    for unit, size in _SHOWN_UNITS.items():
        count, rest = divmod(rest, size)
        if count or parts:
            parts.append(f"{count}{unit}")
        if len(parts) == 2:
            break
    return " ".join(parts)


def _parse_life(text: str) -> int:
    seconds = parse_duration(text)
    if not seconds:
        raise ValueError(f"a document lives for 1 second at least, got {shown(text)}")
    return seconds


def parse_ttl(text: str) -> int:
    """A document's ttl: `never` or a duration. Raises ValueError."""
    if text == "never":
        return NEVER
    try:
        return _parse_life(text)
    except ValueError as error:
        raise ValueError(f"a ttl is never or a duration: {error}") from None


def in_words(expiry: Expiry) -> str:
    """Why a document expires or does not, with the time as people read it."""
    return re.sub(r"\b(\d+) s\b", lambda found: format_duration(int(found[1])), expiry.reason)


def parse_default_ttl(text: str) -> int | None:
    """A collection's default: `off`, `on` (no default) or a duration. Raises ValueError."""
    match text:
        case "off":
            return None
        case "on":
            return NEVER
    try:
        return _parse_life(text)
    except ValueError as error:
        raise ValueError(f"a TTL setting is off, on (no default) or a duration: {error}") from None


def format_default_ttl(default_ttl: int | None) -> str:
    """A collection's setting in words."""
    if default_ttl is None:
        return "off"
    return "on, no default" if default_ttl == NEVER else format_duration(default_ttl)


def parse_time(text: str, now: float) -> float:
    """A time in seconds since the Unix epoch: ISO 8601 (local unless it says otherwise) or `+2h`. Raises ValueError."""
    if text.startswith("+"):
        return now + parse_duration(text[1:])
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        raise ValueError(
            f"a time is written like 2030-01-31T12:00, 2030-01-31T12:00Z or +2h, got {shown(text)}"
        ) from None


def format_time(seconds: float | None) -> str:
    """A time in this place's zone; nothing for None."""
    if seconds is None:
        return ""
    return datetime.fromtimestamp(seconds, UTC).astimezone().isoformat(" ", "seconds")
