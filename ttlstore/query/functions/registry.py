"""The functions of the language by their names, and how many arguments each takes."""

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, TypeVar

from ttlstore.query.values import Value

Body = Callable[..., Value]
_F = TypeVar("_F", bound=Body)

AGGREGATES: Final = ("COUNT", "SUM", "AVG", "MIN", "MAX")


@dataclass(frozen=True, slots=True)
class Function:
    """`run` gets the values of the arguments; of those that may be left out, only the ones that are there.

    `timed` functions get the time of the query, in milliseconds, before them. `problem` looks at the arguments after
    the first, if they are constants, and tells what is wrong with them before the query runs.
    """

    name: str
    least: int
    most: int | None
    run: Body
    timed: bool = False
    problem: Callable[..., str | None] | None = None

    def takes(self, count: int) -> bool:
        return self.least <= count and (self.most is None or count <= self.most)

    def arity(self) -> str:
        if self.most is None:
            return f"{self.least} arguments or more"
        if self.least == self.most:
            return f"{self.least or 'no'} argument{'' if self.least == 1 else 's'}"
        return f"{self.least} {'or' if self.most == self.least + 1 else 'to'} {self.most} arguments"


FUNCTIONS: Final[dict[str, Function]] = {}


def function(
    name: str,
    least: int,
    most: int | None = -1,
    *,
    timed: bool = False,
    problem: Callable[..., str | None] | None = None,
) -> Callable[[_F], _F]:
    """Register what is decorated. Without `most`, the function takes exactly `least` arguments."""

    def register(run: _F) -> _F:
        FUNCTIONS[name] = Function(name, least, least if most == -1 else most, run, timed, problem)
        return run

    return register


def nearest(name: str) -> str | None:
    """The function that may have been meant."""
    longest = max(map(len, FUNCTIONS))
    found = get_close_matches(name[: 2 * longest], [*FUNCTIONS, *AGGREGATES], n=1, cutoff=0.7)
    return found[0] if found else None
