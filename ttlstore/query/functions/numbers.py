"""Mathematics. What has no finite result is undefined."""

import math
from collections.abc import Callable

from ttlstore.query.functions.registry import function
from ttlstore.query.values import UNDEFINED, Value, is_number, number

Number = int | float
_EXACT = 2**62  # powers up to here are calculated as integers


def _mathematics(name: str, least: int, most: int, calculate: Callable[..., Number]) -> None:
    """A function of numbers."""

    def run(*values: Value) -> Value:
        if not all(map(is_number, values)):
            return UNDEFINED
        try:
            return number(calculate(*values))
        except (ValueError, OverflowError, ZeroDivisionError):
            return UNDEFINED

    function(name, least, most)(run)


def _round(value: Number) -> Number:
    """To the nearest whole number; from the middle, away from zero."""
    if type(value) is int:
        return value
    below = math.floor(abs(value))
    return int(math.copysign(below + (abs(value) - below >= 0.5), value))


def _sign(value: Number) -> Number:
    return (value > 0) - (value < 0)


def _power(base: Number, exponent: Number) -> Number:
    power = math.pow(base, exponent)
    if type(base) is int and type(exponent) is int and exponent >= 0 and abs(power) < _EXACT:
        return int(base**exponent)
    return power


def _logarithm(value: Number, base: Number = math.e) -> Number:
    if base == math.e:
        return math.log(value)
    if base == 10:
        return math.log10(value)
    return math.log2(value) if base == 2 else math.log(value, base)


def _bin(value: Number, size: Number = 1) -> Number:
    """The multiple of a size that is next below, or above for a negative size."""
    return math.floor(value / size) * size


_mathematics("ABS", 1, 1, abs)
_mathematics("CEILING", 1, 1, math.ceil)
_mathematics("FLOOR", 1, 1, math.floor)
_mathematics("ROUND", 1, 1, _round)
_mathematics("TRUNC", 1, 1, math.trunc)
_mathematics("SIGN", 1, 1, _sign)
_mathematics("SQRT", 1, 1, math.sqrt)
_mathematics("SQUARE", 1, 1, lambda value: value * value)
_mathematics("POWER", 2, 2, _power)
_mathematics("EXP", 1, 1, math.exp)
_mathematics("LOG", 1, 2, _logarithm)
_mathematics("LOG10", 1, 1, math.log10)
_mathematics("NUMBERBIN", 1, 2, _bin)
_mathematics("PI", 0, 0, lambda: math.pi)
_mathematics("SIN", 1, 1, math.sin)
_mathematics("COS", 1, 1, math.cos)
_mathematics("TAN", 1, 1, math.tan)
_mathematics("COT", 1, 1, lambda value: 1 / math.tan(value))
_mathematics("ASIN", 1, 1, math.asin)
_mathematics("ACOS", 1, 1, math.acos)
_mathematics("ATAN", 1, 1, math.atan)
_mathematics("ATN2", 2, 2, math.atan2)
_mathematics("DEGREES", 1, 1, math.degrees)
_mathematics("RADIANS", 1, 1, math.radians)
