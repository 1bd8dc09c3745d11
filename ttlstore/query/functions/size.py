"""How large a value may get. A short query must not fill the memory."""

from typing import Literal

from ttlstore.errors import QueryError
from ttlstore.query.values import Value

MAX_TEXT = 16 * 1024 * 1024  # characters in all; eight times the largest document of the reference
MAX_ELEMENTS = 1_000_000  # of an array or object with all that is in it


def checked_text(name: str, length: int) -> Literal[True]:
    """Raise QueryError if a text of this length is too long."""
    if length > MAX_TEXT:
        raise QueryError(f"{name} would make a text of {length} characters, and {MAX_TEXT} are the most")
    return True


def checked_value(name: str, value: Value) -> Value:
    """The value. Raises QueryError if it is too large, with what is in its elements.

    Elements can be shared: an array of two references to an array of two references to … takes little memory, until
    it is compared or written down.
    """
    elements = characters = 0
    waiting = [value]
    while waiting:
        here = waiting.pop()
        kind = type(here)
        if kind is str:
            characters += len(here)
        elif kind is list or kind is dict:
            elements += len(here)
            if elements <= MAX_ELEMENTS:
                waiting.extend(here if kind is list else here.values())
        if elements > MAX_ELEMENTS or characters > MAX_TEXT:
            raise QueryError(
                f"{name} would make a value of more than {MAX_ELEMENTS} elements or {MAX_TEXT} characters of text"
            )
    return value
