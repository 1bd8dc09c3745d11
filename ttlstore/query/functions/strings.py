"""Strings: parts of them, changes to them, comparisons. Positions count characters, from 0."""

from collections.abc import Callable

from ttlstore.query.functions.registry import function
from ttlstore.query.functions.size import checked_text
from ttlstore.query.values import UNDEFINED, Value, whole

MAX_REPLICATED = 10_000  # characters; beyond it the reference gives undefined

# --- comparisons ----------------------------------------------------------------------------------------------------


def _comparison(name: str, holds: Callable[[str, str], bool]) -> None:
    """A function of two strings and, if case is to be ignored, true."""

    def run(text: Value, other: Value, ignore_case: Value = False) -> Value:
        if type(text) is not str or type(other) is not str or type(ignore_case) is not bool:
            return UNDEFINED
        return holds(text.lower(), other.lower()) if ignore_case else holds(text, other)

    function(name, 2, 3)(run)


_comparison("CONTAINS", lambda text, part: part in text)
_comparison("STARTSWITH", str.startswith)
_comparison("ENDSWITH", str.endswith)
_comparison("STRINGEQUALS", lambda text, other: text == other)


@function("INDEX_OF", 2, 3)
def index_of(text: Value, part: Value, start: Value = 0) -> Value:
    first = whole(start)
    if type(text) is not str or type(part) is not str or first is None:
        return UNDEFINED
    return text.find(part, max(first, 0))


# --- parts ----------------------------------------------------------------------------------------------------------


@function("LENGTH", 1)
def length(text: Value) -> Value:
    return len(text) if type(text) is str else UNDEFINED


@function("LEFT", 2)
def left(text: Value, count: Value) -> Value:
    number = whole(count)
    return text[: max(number, 0)] if type(text) is str and number is not None else UNDEFINED


@function("RIGHT", 2)
def right(text: Value, count: Value) -> Value:
    number = whole(count)
    return text[max(len(text) - max(number, 0), 0) :] if type(text) is str and number is not None else UNDEFINED


@function("SUBSTRING", 3)
def substring(text: Value, start: Value, count: Value) -> Value:
    first, number = whole(start), whole(count)
    if type(text) is not str or first is None or number is None:
        return UNDEFINED
    first = max(first, 0)
    return text[first : first + max(number, 0)]


def _trimming(name: str, trim: Callable[[str, str | None], str]) -> None:
    """A function of a string and the characters to take away: white space, unless it is told."""

    def run(text: Value, *characters: Value) -> Value:
        if type(text) is not str or any(type(given) is not str for given in characters):
            return UNDEFINED
        return trim(text, *characters) if characters else trim(text, None)

    function(name, 1, 2)(run)


_trimming("TRIM", str.strip)
_trimming("LTRIM", str.lstrip)
_trimming("RTRIM", str.rstrip)


@function("STRINGSPLIT", 2)
def string_split(text: Value, separator: Value) -> Value:
    if type(text) is not str or type(separator) is not str:
        return UNDEFINED
    return text.split(separator) if separator else [text]


# --- changes --------------------------------------------------------------------------------------------------------


@function("CONCAT", 2, None)
def concat(*texts: Value) -> Value:
    if any(type(text) is not str for text in texts):
        return UNDEFINED
    return checked_text("CONCAT", sum(map(len, texts))) and "".join(texts)


@function("LOWER", 1)
def lower(text: Value) -> Value:
    return text.lower() if type(text) is str else UNDEFINED


@function("UPPER", 1)
def upper(text: Value) -> Value:
    return text.upper() if type(text) is str else UNDEFINED


@function("REVERSE", 1)
def reverse(text: Value) -> Value:
    return text[::-1] if type(text) is str else UNDEFINED


@function("REPLACE", 3)
def replace(text: Value, old: Value, new: Value) -> Value:
    if type(text) is not str or type(old) is not str or type(new) is not str:
        return UNDEFINED
    if not old:
        return text
    checked_text("REPLACE", len(text) + text.count(old) * (len(new) - len(old)))
    return text.replace(old, new)


@function("REPLICATE", 2)
def replicate(text: Value, count: Value) -> Value:
    number = whole(count)
    if type(text) is not str or number is None or number < 0 or len(text) * number > MAX_REPLICATED:
        return UNDEFINED
    return text * number


@function("STRINGJOIN", 2)
def string_join(texts: Value, separator: Value) -> Value:
    if type(texts) is not list or type(separator) is not str or any(type(text) is not str for text in texts):
        return UNDEFINED
    checked_text("STRINGJOIN", sum(map(len, texts)) + len(separator) * len(texts))
    return separator.join(texts)
