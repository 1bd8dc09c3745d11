"""REGEXMATCH, with an engine whose time grows linearly with the text, whatever the pattern."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ttlstore.errors import QueryError, shown
from ttlstore.query.functions.registry import function
from ttlstore.query.values import UNDEFINED, Value

_MODIFIERS = frozenset("imsx")
_SIZE = 8 * 1024 * 1024  # bytes for a compiled pattern


def pattern_problem(pattern: Value = UNDEFINED, modifiers: Value = "") -> str | None:
    """What is wrong with a pattern that stands in a query; None if nothing, or if it is no string."""
    if type(pattern) is not str or type(modifiers) is not str:
        return None
    if not _MODIFIERS.issuperset(modifiers):
        return f"the modifiers of REGEXMATCH are i, m, s and x, got {shown(modifiers)}"
    compiled = _compile(pattern, modifiers)
    return compiled if isinstance(compiled, str) else None


@function("REGEXMATCH", 2, 3, problem=pattern_problem)
def regex_match(text: Value, pattern: Value, modifiers: Value = "") -> Value:
    if type(text) is not str or type(pattern) is not str or type(modifiers) is not str:
        return UNDEFINED
    search = _compile(pattern, modifiers) if _MODIFIERS.issuperset(modifiers) else ""
    return UNDEFINED if isinstance(search, str) else search(text) is not None


@lru_cache(maxsize=256)
def _compile(pattern: str, modifiers: str) -> Callable[[str], Any] | str:
    """The search for a pattern, or what is wrong with it."""
    try:
        import re2
    except ImportError:
        raise QueryError(
            "REGEXMATCH needs google-re2, an engine that no pattern can make hang: pip install 'ttlstore[regex]'"
        ) from None
    if "x" in modifiers:
        pattern = _without_space(pattern)
    options = re2.Options()
    options.case_sensitive = "i" not in modifiers
    options.max_mem = _SIZE
    options.log_errors = False
    flags = "".join(flag for flag in "ms" if flag in modifiers)
    try:
        search: Callable[[str], Any] = re2.compile(f"(?{flags}){pattern}" if flags else pattern, options).search
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        reason = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        return f"this regular expression is not valid: {reason} (look-around and back references are not supported)"
    return search


def _without_space(pattern: str) -> str:
    """Without white space and comments, except where it is escaped or in a class of characters."""
    kept: list[str] = []
    inside = False
    position = 0
    while position < len(pattern):
        char = pattern[position]
        if char == "\\":
            kept.append(pattern[position : position + 2])
            position += 2
            continue
        if char == "#" and not inside:
            end = pattern.find("\n", position)
            position = len(pattern) if end < 0 else end
            continue
        if inside or not char.isspace():
            kept.append(char)
        if char == "[" or (char == "]" and kept[-2:-1] != ["["]):
            inside = char == "["
        position += 1
    return "".join(kept)
