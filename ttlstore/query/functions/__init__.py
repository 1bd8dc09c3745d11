"""Every function of the language. A value that does not fit a function makes its result undefined."""

from ttlstore.query.functions import arrays, conversions, dates, numbers, regex, strings, types
from ttlstore.query.functions.registry import AGGREGATES, FUNCTIONS, Function, nearest

__all__ = [
    "AGGREGATES",
    "FUNCTIONS",
    "Function",
    "arrays",
    "conversions",
    "dates",
    "nearest",
    "numbers",
    "regex",
    "strings",
    "types",
]
