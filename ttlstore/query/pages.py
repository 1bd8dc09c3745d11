"""Results in pages: where the last one ended, in a token that fits only the query it came from."""

import base64
import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from hashlib import blake2b
from typing import Any, NamedTuple

import orjson

from ttlstore.engine.json import Json
from ttlstore.errors import QueryError, shown
from ttlstore.query.sql import SortKey

MAX_SIZE = 10_000
DIGEST_BYTES = 12  # of a token: none of another query fits by chance


class Page(NamedTuple):
    """Some of the results of a query, and what to pass for the next ones."""

    items: list[Any]
    token: str | None
    """None: there are no more."""


Keys = tuple[Any, ...]


class Position(NamedTuple):
    """Where a page ended."""

    keys: Keys | None
    """What the last row is sorted by, its place in the collection last; or the place of the last result.

    None: no page was given yet.
    """
    given: int
    """Results of that row that were given."""
    skip: int
    """Results that OFFSET still passes over."""
    left: int | None
    """Results that TOP or LIMIT still lets through."""


class Tokens:
    """The tokens of one query with its parameters, on one collection."""

    def __init__(self, *query: Any) -> None:
        self._fingerprint = blake2b(orjson.dumps(query, option=orjson.OPT_SORT_KEYS)).digest()

    def token(self, position: Position) -> str:
        # Not by orjson, which ends at 254 levels: places have up to three for each of a value.
        content = json.dumps(position, separators=(",", ":"), default=_written).encode()
        return base64.urlsafe_b64encode(self._digest(content) + content).decode()

    def position(self, token: object, are_keys: Callable[[Keys], bool]) -> Position:
        """Where to go on. Raises QueryError for a token of another query, or one that was changed."""
        try:
            decoded = base64.urlsafe_b64decode(token.encode("ascii"))  # type: ignore[attr-defined]  # one of the errors
            digest, content = decoded[:DIGEST_BYTES], decoded[DIGEST_BYTES:]
            # The second: base64 is read whatever stands between its letters.
            if digest != self._digest(content) or base64.urlsafe_b64encode(decoded).decode() != token:
                raise ValueError
            written, given, skip, left = json.loads(content)
            keys = _read(written)
        except (AttributeError, ValueError, TypeError, ArithmeticError, LookupError, RecursionError):
            raise _refused(token) from None
        # Whoever knows the query could make a token: what comes out of it must at least be of the right types.
        numbers = (given, skip, 0 if left is None else left)
        if not are_keys(keys) or not all(type(number) is int and number >= 0 for number in numbers):
            raise _refused(token)
        return Position(keys, given, skip, left)

    def _digest(self, content: bytes) -> bytes:
        return blake2b(content, key=self._fingerprint, digest_size=DIGEST_BYTES).digest()


_DECIMAL = "decimal"


def _written(key: object) -> object:
    """A key that JSON does not have: numbers of PostgreSQL's have more digits than those of JSON."""
    if isinstance(key, Decimal):
        return {_DECIMAL: str(key)}
    raise TypeError(f"{key!r} is no key")


def _read(key: Any) -> Any:
    if type(key) is list:
        return tuple(map(_read, key))
    return Decimal(key[_DECIMAL]) if type(key) is dict else key


def _refused(token: object) -> QueryError:
    return QueryError(
        f"the token {shown(token)} is damaged, or belongs to another query, other parameters or another collection: "
        "pass the token of the page before, with the same query"
    )


def are_sorted_by(keys: Sequence[SortKey]) -> Callable[[Keys], bool]:
    """Tells what rows can be sorted by from what they cannot."""
    scalars = (int, float, str, Decimal)
    return lambda found: type(found) is tuple and len(found) == len(keys) and all(type(key) in scalars for key in found)


def check_size(size: object) -> int:
    if type(size) is int and 1 <= size <= MAX_SIZE:
        return size
    raise QueryError(f"the size of a page is from 1 to {MAX_SIZE}, got {shown(size)}")


class Segment(NamedTuple):
    """A part of what comes after a position, as a condition on the keys, and its parameters."""

    text: str
    values: tuple[Any, ...]
    fixed: int
    """How many of the keys, from the first on, have one value in all of it."""


EVERYTHING = Segment("1 = 1", (), 0)


def after(keys: Sequence[SortKey], position: Sequence[Any], json: Json, *, again: bool) -> list[Segment]:
    """What comes after a position, in parts that follow each other; with `again`, from the position on.

    Where no index finds `(a, b) > (1, 2)`: where a = 1 and b > 2, and then where a > 1.
    """
    if json.seeks_rows and len({key.descending for key in keys}) == 1:
        sign = ("<" if keys[0].descending else ">") + ("=" if again else "")
        row = f"({', '.join(key.text for key in keys)})"
        return [Segment(f"{row} {sign} ({', '.join([json.placeholder] * len(keys))})", tuple(position), 0)]
    segments = []
    for depth in reversed(range(len(keys))):
        sign = "<" if keys[depth].descending else ">"
        if again and depth == len(keys) - 1:
            sign += "="
        conditions = [f"{key.text} = {json.placeholder}" for key in keys[:depth]]
        conditions.append(f"{keys[depth].text} {sign} {json.placeholder}")
        segments.append(Segment(" AND ".join(conditions), tuple(position[: depth + 1]), depth))
    return segments
