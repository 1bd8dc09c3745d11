"""COUNT, SUM, AVG, MIN and MAX: fed with a value of each row. They leave out what is undefined."""

from abc import ABC, abstractmethod
from typing import Any, Final

from ttlstore.query.values import UNDEFINED, Value, is_number, number, sort_key


class Accumulator(ABC):
    """The state of one aggregate over one group."""

    __slots__ = ()

    @abstractmethod
    def add(self, value: Value) -> None:
        """Take in the value of one more row."""

    @abstractmethod
    def result(self) -> Value:
        """What it comes to."""


class Count(Accumulator):
    __slots__ = ("_count",)

    def __init__(self) -> None:
        self._count = 0

    def add(self, value: Value) -> None:
        if value is not UNDEFINED:
            self._count += 1

    def result(self) -> Value:
        return self._count


class Sum(Accumulator):
    """Undefined as soon as one value is not a number; 0 for no values."""

    __slots__ = ("_count", "_numbers", "_total")

    def __init__(self) -> None:
        self._total: Any = 0
        self._count = 0
        self._numbers = True

    def add(self, value: Value) -> None:
        if is_number(value):
            self._total += value
            self._count += 1
        elif value is not UNDEFINED:
            self._numbers = False

    def result(self) -> Value:
        return number(self._total) if self._numbers else UNDEFINED


class Average(Sum):
    """As Sum, but undefined for no values."""

    __slots__ = ()

    def result(self) -> Value:
        total = super().result()
        return UNDEFINED if total is UNDEFINED or not self._count else number(total / self._count)


class Extreme(Accumulator):
    """The first or last of the values in the order across types; undefined for no values."""

    __slots__ = ("_key", "_value")
    _last: bool

    def __init__(self) -> None:
        self._value: Value = UNDEFINED
        self._key: Any = None

    def add(self, value: Value) -> None:
        if value is UNDEFINED:
            return
        key = sort_key(value)
        if self._value is UNDEFINED or (key > self._key if self._last else key < self._key):
            self._value, self._key = value, key

    def result(self) -> Value:
        return self._value


class Minimum(Extreme):
    __slots__ = ()
    _last = False


class Maximum(Extreme):
    __slots__ = ()
    _last = True


ACCUMULATORS: Final[dict[str, type[Accumulator]]] = {
    "COUNT": Count,
    "SUM": Sum,
    "AVG": Average,
    "MIN": Minimum,
    "MAX": Maximum,
}
