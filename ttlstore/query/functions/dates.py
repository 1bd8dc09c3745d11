"""Date and time: strings such as 2026-01-31T08:30:00.0000000Z, milliseconds and ticks since 1970.

Inside, a time is a whole number of ticks of 100 nanoseconds since 1970, which seven digits of a second write exactly.
"""

import re
from calendar import monthrange
from datetime import date
from typing import Final

from ttlstore.query.functions.registry import function
from ttlstore.query.values import UNDEFINED, Value, whole

_SECOND = 10_000_000  # ticks
_MILLISECOND = _SECOND // 1000
_DAY = 24 * 3600 * _SECOND
_TICK_NANOSECONDS = 100
_EPOCH = date(1970, 1, 1).toordinal()
_FIRST, _LAST = (1 - _EPOCH) * _DAY, (date.max.toordinal() + 1 - _EPOCH) * _DAY  # years 1 to 9999
_FORMAT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,7}))?)?Z?)?", re.ASCII
)  # what is left out is zero

_NAMES: Final = {
    **dict.fromkeys(("year", "yyyy", "yy"), "year"),
    **dict.fromkeys(("month", "mm", "m"), "month"),
    **dict.fromkeys(("day", "dd", "d"), "day"),
    **dict.fromkeys(("hour", "hh"), "hour"),
    **dict.fromkeys(("minute", "mi", "n"), "minute"),
    **dict.fromkeys(("second", "ss", "s"), "second"),
    **dict.fromkeys(("millisecond", "ms"), "millisecond"),
    **dict.fromkeys(("microsecond", "mcs"), "microsecond"),
    **dict.fromkeys(("nanosecond", "ns"), "nanosecond"),
}
# The parts that are always equally long, in nanoseconds.
_NANOSECONDS: Final = {
    "day": _DAY * _TICK_NANOSECONDS,
    "hour": 3600 * 10**9,
    "minute": 60 * 10**9,
    "second": 10**9,
    "millisecond": 10**6,
    "microsecond": 10**3,
    "nanosecond": 1,
}


# --- reading and writing --------------------------------------------------------------------------------------------


def parse_time(text: Value) -> int | None:
    """The ticks of a time; None if it is not one."""
    match = _FORMAT.fullmatch(text) if type(text) is str else None
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    if hour > 23 or minute > 59 or second > 59:
        return None
    try:
        days = date(year, month, day).toordinal() - _EPOCH
    except ValueError:
        return None
    fraction = int((match[7] or "").ljust(7, "0"))
    return days * _DAY + ((hour * 60 + minute) * 60 + second) * _SECOND + fraction


def format_time(ticks: int) -> Value:
    """The string for a time; undefined before the year 1 and after 9999."""
    if not _FIRST <= ticks < _LAST:
        return UNDEFINED
    days, rest = divmod(ticks, _DAY)
    seconds, fraction = divmod(rest, _SECOND)
    day = date.fromordinal(days + _EPOCH)
    hour, minute, second = seconds // 3600, seconds // 60 % 60, seconds % 60
    return f"{day.isoformat()}T{hour:02}:{minute:02}:{second:02}.{fraction:07}Z"


def _part(name: Value) -> str | None:
    return _NAMES.get(name.lower()) if type(name) is str else None


def _day(ticks: int) -> date:
    return date.fromordinal(ticks // _DAY + _EPOCH)


# --- now ------------------------------------------------------------------------------------------------------------


@function("GETCURRENTDATETIME", 0, timed=True)
def get_current_date_time(now_ms: int) -> Value:
    return format_time(now_ms * _MILLISECOND)


@function("GETCURRENTTIMESTAMP", 0, timed=True)
def get_current_timestamp(now_ms: int) -> Value:
    return now_ms


@function("GETCURRENTTICKS", 0, timed=True)
def get_current_ticks(now_ms: int) -> Value:
    return now_ms * _MILLISECOND


# --- conversions ----------------------------------------------------------------------------------------------------


@function("DATETIMETOTIMESTAMP", 1)
def date_time_to_timestamp(text: Value) -> Value:
    ticks = parse_time(text)
    return UNDEFINED if ticks is None else ticks // _MILLISECOND


@function("TIMESTAMPTODATETIME", 1)
def timestamp_to_date_time(timestamp: Value) -> Value:
    milliseconds = whole(timestamp)
    return UNDEFINED if milliseconds is None else format_time(milliseconds * _MILLISECOND)


@function("DATETIMETOTICKS", 1)
def date_time_to_ticks(text: Value) -> Value:
    ticks = parse_time(text)
    return UNDEFINED if ticks is None else ticks


@function("TICKSTODATETIME", 1)
def ticks_to_date_time(ticks: Value) -> Value:
    number = whole(ticks)
    return UNDEFINED if number is None else format_time(number)


# --- calculations ---------------------------------------------------------------------------------------------------


@function("DATETIMEADD", 3)
def date_time_add(part: Value, count: Value, text: Value) -> Value:
    """From the last days of a month, whole months lead to the last day of a shorter one."""
    name, number, ticks = _part(part), whole(count), parse_time(text)
    if name is None or number is None or ticks is None:
        return UNDEFINED
    if name in _NANOSECONDS:
        return format_time((ticks * _TICK_NANOSECONDS + number * _NANOSECONDS[name]) // _TICK_NANOSECONDS)
    start = _day(ticks)
    year, month = divmod(start.year * 12 + start.month - 1 + number * (12 if name == "year" else 1), 12)
    if not 1 <= year <= 9999:
        return UNDEFINED
    moved = date(year, month + 1, min(start.day, monthrange(year, month + 1)[1]))
    return format_time((moved.toordinal() - _EPOCH) * _DAY + ticks % _DAY)


@function("DATETIMEDIFF", 3)
def date_time_diff(part: Value, start: Value, end: Value) -> Value:
    """How many beginnings of a year, a day, … lie between: one from 23:59 to 00:00."""
    name, first, last = _part(part), parse_time(start), parse_time(end)
    if name is None or first is None or last is None:
        return UNDEFINED
    if name in _NANOSECONDS:
        length = _NANOSECONDS[name]
        return last * _TICK_NANOSECONDS // length - first * _TICK_NANOSECONDS // length
    years = _day(last).year - _day(first).year
    return years if name == "year" else years * 12 + _day(last).month - _day(first).month


@function("DATETIMEPART", 2)
def date_time_part(text: Value, part: Value) -> Value:
    """A part as a number; those below a second count from the beginning of the second."""
    name, ticks = _part(part), parse_time(text)
    if name is None or ticks is None:
        return UNDEFINED
    if name in ("year", "month", "day"):
        number: int = getattr(_day(ticks), name)
        return number
    within = {"hour": _DAY, "minute": 3600 * _SECOND, "second": 60 * _SECOND}.get(name, _SECOND)
    return ticks % within * _TICK_NANOSECONDS // _NANOSECONDS[name]


@function("DATETIMEBIN", 2, 4)
def date_time_bin(text: Value, part: Value, size: Value = 1, origin: Value = "1970-01-01") -> Value:
    """The beginning of the bin a time lies in; bins are so many days or less long, counted from an origin."""
    name, ticks, count, start = _part(part), parse_time(text), whole(size), parse_time(origin)
    if name not in _NANOSECONDS or ticks is None or count is None or count <= 0 or start is None:
        return UNDEFINED
    length = count * _NANOSECONDS[name]
    passed = (ticks - start) * _TICK_NANOSECONDS
    return format_time(start + passed // length * length // _TICK_NANOSECONDS)
