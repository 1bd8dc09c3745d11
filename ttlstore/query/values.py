"""The values of the query language: JSON and undefined. How they are compared, equated and put in order."""

import json
from collections.abc import Hashable
from enum import Enum
from hashlib import blake2b
from typing import Any, Final

Value = Any  # None, bool, int, float, str, list, dict, or UNDEFINED


class Undefined(Enum):
    """What a missing property is, and what comes of values that do not fit an operation. Not null."""

    UNDEFINED = "undefined"

    def __repr__(self) -> str:
        return "undefined"


UNDEFINED: Final = Undefined.UNDEFINED

# The order across types; false and true are types of their own in it.
_FALSE, _TRUE = 2, 3
RANK: Final[dict[type, int]] = {Undefined: 0, type(None): 1, bool: _FALSE, int: 4, float: 4, str: 5, list: 6, dict: 7}
_ORDERED = frozenset((str, int, float, bool, type(None)))

LONG = 256  # characters of a string, or of an array or object as JSON: from there on a digest stands for the rest
_DIGEST_BYTES = 16

MIN_INT, MAX_INT = -(2**63), 2**63 - 1  # what documents can hold, and SQL compares exactly


def is_number(value: Value) -> bool:
    """Whether it is a number: true and false are not."""
    kind = type(value)
    return kind is int or kind is float


def equal(left: Value, right: Value) -> bool | Undefined:
    """`left = right`: undefined unless both are of one type."""
    kind = type(left)
    if kind is type(right):
        if kind is dict or kind is list:
            return identity(left) == identity(right)
        return UNDEFINED if left is UNDEFINED else bool(left == right)
    return bool(left == right) if RANK[kind] == RANK[type(right)] else UNDEFINED


def compare(left: Value, right: Value) -> int | Undefined:
    """Negative, 0 or positive; undefined unless both are null, booleans, numbers or strings."""
    kind = type(left)
    if RANK[kind] != RANK[type(right)] or kind not in _ORDERED:
        return UNDEFINED
    if left is None:
        return 0
    return int(left > right) - int(left < right)


def identity(value: Value) -> Hashable:
    """The same for equal values, and different for others: what DISTINCT, GROUP BY and IN look up."""
    kind = type(value)
    if kind is str or kind is int or kind is float:
        return value  # type: ignore[no-any-return]  # narrowed by its type, which mypy does not follow
    if kind is list:
        return (RANK[list], *map(identity, value))
    if kind is dict:
        return RANK[dict], frozenset(zip(value, map(identity, value.values()), strict=True))
    return _rank(value), ()


def sort_key(value: Value) -> tuple[Any, ...]:
    """Puts any values into their total order: by type, then by value.

    Arrays are compared element by element, objects property by property in the order of their names.
    """
    kind = type(value)
    if kind is list:
        return RANK[list], tuple(map(sort_key, value))
    if kind is dict:
        names = sorted(value)
        return RANK[dict], tuple(zip(names, map(sort_key, map(value.__getitem__, names)), strict=True))
    rank = _rank(value)
    return (rank, value) if rank > _TRUE else (rank,)


def order_key(value: Value) -> tuple[Any, ...]:
    """What ORDER BY goes by: the total order, but for arrays, which are all equal in it, and objects, which are too."""
    kind = type(value)
    return (RANK[kind],) if kind is list or kind is dict else sort_key(value)


def value_key(value: Value) -> tuple[Any, ...]:
    """Puts any values into a total order, as `sort_key`, and is never long: different for different values.

    A long string goes by its beginning and then by a digest; a long array or object goes by that alone.
    """
    kind = type(value)
    if kind is str:
        return (RANK[str], value) if len(value) <= LONG else (RANK[str], value[:LONG], _digest(value))
    if kind is list or kind is dict:
        text = json.dumps(_same_numbers(value), sort_keys=True)
        if len(text) > LONG:
            return RANK[kind], (), _digest(text)
    return sort_key(value)


def is_key(key: Any) -> bool:
    """Whether this, whoever made it, can be compared with what `value_key` and `order_key` make."""
    if type(key) is not tuple or not key or type(key[0]) is not int:
        return False
    match key[1:]:
        case ():
            return True
        case (int() | float() as value,) if key[0] == RANK[int]:
            return type(value) is not bool
        case (str(),) | (str(), str()) if key[0] == RANK[str]:
            return True
        case (tuple() as items,) if key[0] == RANK[list]:
            return all(map(is_key, items))
        case (tuple() as items,) if key[0] == RANK[dict]:
            return all(
                type(item) is tuple and len(item) == 2 and type(item[0]) is str and is_key(item[1]) for item in items
            )
        case ((), str()):
            return key[0] in (RANK[list], RANK[dict])
    return False


def _same_numbers(value: Value) -> Value:
    """The value with equal numbers written alike: 1.0 as 1."""
    kind = type(value)
    if kind is float:
        return int(value) if value.is_integer() else value
    if kind is list:
        return [_same_numbers(item) for item in value]
    return {name: _same_numbers(item) for name, item in value.items()} if kind is dict else value


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()


def _rank(value: Value) -> int:
    return _TRUE if value is True else RANK[type(value)]


def number(value: int | float) -> Value:
    """The result of a calculation: undefined where it is not finite, a float where it leaves 64 bits.

    Raises OverflowError for an integer that is too large even for that.
    """
    if type(value) is int:
        return value if MIN_INT <= value <= MAX_INT else float(value)
    return value if value - value == 0 else UNDEFINED


def whole(value: Value) -> int | None:
    """A number as an integer, if it is one: 2 and 2.0, not 2.5."""
    if type(value) is int:
        return value
    return int(value) if type(value) is float and value.is_integer() else None
