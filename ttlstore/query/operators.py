"""What the operators do with values. Values that do not fit an operator make undefined."""

import math
from collections.abc import Callable
from typing import Final

from ttlstore.query.functions.size import checked_text
from ttlstore.query.values import UNDEFINED, Value, compare, equal, is_number, number

Operation = Callable[[Value, Value], Value]

_BITS = 32  # bitwise operators work on signed integers of so many bits, as in the reference and in JavaScript


def _equals(left: Value, right: Value) -> Value:
    return equal(left, right)


def _differs(left: Value, right: Value) -> Value:
    same = equal(left, right)
    return UNDEFINED if same is UNDEFINED else not same


def _less(left: Value, right: Value) -> Value:
    order = compare(left, right)
    return UNDEFINED if order is UNDEFINED else order < 0


def at_most(left: Value, right: Value) -> Value:
    order = compare(left, right)
    return UNDEFINED if order is UNDEFINED else order <= 0


def _greater(left: Value, right: Value) -> Value:
    return _less(right, left)


def at_least(left: Value, right: Value) -> Value:
    return at_most(right, left)


def _arithmetic(calculate: Callable[[float, float], float]) -> Operation:
    def apply(left: Value, right: Value) -> Value:
        if is_number(left) and is_number(right):
            try:
                return number(calculate(left, right))
            except (OverflowError, ZeroDivisionError):
                return UNDEFINED
        return UNDEFINED

    return apply


def _divide(left: float, right: float) -> float:
    if type(left) is int and type(right) is int and left % right == 0:
        return left // right
    return left / right


def _remainder(left: float, right: float) -> float:
    """With the sign of the left one, as in JavaScript; Python's takes the sign of the right one."""
    if type(left) is int and type(right) is int:
        return int(math.copysign(1, left)) * (abs(left) % abs(right))
    if right == 0:
        raise ZeroDivisionError
    return math.fmod(left, right)


def _bitwise(calculate: Callable[[int, int], int]) -> Operation:
    def apply(left: Value, right: Value) -> Value:
        if is_number(left) and is_number(right):
            return signed(calculate(signed(int(left)), signed(int(right))))
        return UNDEFINED

    return apply


def signed(value: int) -> int:
    """The lowest 32 bits, the highest of which is the sign."""
    value &= (1 << _BITS) - 1
    return value - (1 << _BITS) if value >> (_BITS - 1) else value


def _shift_right_unsigned(left: Value, right: Value) -> Value:
    if is_number(left) and is_number(right):
        return (int(left) & ((1 << _BITS) - 1)) >> (int(right) % _BITS)
    return UNDEFINED


def concatenate(left: Value, right: Value) -> Value:
    if type(left) is str and type(right) is str:
        return checked_text("||", len(left) + len(right)) and left + right
    return UNDEFINED


BINARY: Final[dict[str, Operation]] = {
    "=": _equals,
    "!=": _differs,
    "<": _less,
    "<=": at_most,
    ">": _greater,
    ">=": at_least,
    "+": _arithmetic(lambda left, right: left + right),
    "-": _arithmetic(lambda left, right: left - right),
    "*": _arithmetic(lambda left, right: left * right),
    "/": _arithmetic(_divide),
    "%": _arithmetic(_remainder),
    "&": _bitwise(lambda left, right: left & right),
    "|": _bitwise(lambda left, right: left | right),
    "^": _bitwise(lambda left, right: left ^ right),
    "<<": _bitwise(lambda left, right: left << right % _BITS),
    ">>": _bitwise(lambda left, right: left >> right % _BITS),
    ">>>": _shift_right_unsigned,
    "||": concatenate,
}


def negative(value: Value) -> Value:
    return number(-value) if is_number(value) else UNDEFINED


def positive(value: Value) -> Value:
    return value if is_number(value) else UNDEFINED


def complement(value: Value) -> Value:
    return ~signed(int(value)) if is_number(value) else UNDEFINED


def negation(value: Value) -> Value:
    return not value if type(value) is bool else UNDEFINED


UNARY: Final[dict[str, Callable[[Value], Value]]] = {"-": negative, "+": positive, "~": complement, "NOT": negation}


def item(target: Value, key: Value) -> Value:
    """`target[key]`"""
    if type(target) is dict:
        return target.get(key, UNDEFINED) if type(key) is str else UNDEFINED
    if type(target) is list and is_number(key) and key == int(key) and 0 <= key < len(target):
        return target[int(key)]
    return UNDEFINED
