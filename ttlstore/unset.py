"""The default of arguments for which None is a value."""

from enum import Enum
from typing import Final


class Unset(Enum):
    UNSET = "…"

    def __repr__(self) -> str:
        return "…"


UNSET: Final = Unset.UNSET
