"""Every function of the language. A value that does not fit a function makes its result undefined."""

from ttlstore.query.functions import types
from ttlstore.query.functions.registry import AGGREGATES, FUNCTIONS, Function, nearest

__all__ = ["AGGREGATES", "FUNCTIONS", "Function", "nearest", "types"]
