"""How large the result of a function may get. A short query must not fill the memory."""

from typing import Literal

from ttlstore.errors import QueryError
from ttlstore.query.values import Value

MAX_TEXT = 16 * 1024 * 1024  # characters; eight times the largest document of the reference
MAX_ELEMENTS = 1_000_000  # of an array with all that is in it


def checked_text(name: str, length: int) -> Literal[True]:
    """Raise QueryError if a text of this length is too long."""
    if length > MAX_TEXT:
        raise QueryError(f"{name} would make a text of {length} characters, and {MAX_TEXT} are the most")
    return True


def checked_value(name: str, value: Value) -> Value:
    """The value. Raises QueryError if it has too many elements, those inside its elements included.

    Elements can be shared: an array of two references to an array of two references to … takes little memory, until
    it is compared or written down.
    """
    count = 0
    waiting = [value]
    while waiting:
        here = waiting.pop()
        if type(here) is dict:
            here = here.values()
        elif type(here) is not list:
            continue
        count += len(here)
        if count > MAX_ELEMENTS:
            raise QueryError(f"{name} would make a value of more than {MAX_ELEMENTS} elements")
        waiting.extend(here)
    return value
