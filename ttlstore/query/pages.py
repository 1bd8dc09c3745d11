"""Results in pages: where the last one ended, in a token that fits only the query it came from."""

import base64
from collections.abc import Sequence
from decimal import Decimal
from hashlib import blake2b
from typing import Any, NamedTuple

import orjson

from ttlstore.errors import QueryError, shown
from ttlstore.query.sql import SortKey

MAX_SIZE = 10_000
DIGEST_BYTES = 12  # of a token: none of another query fits by chance


class Page(NamedTuple):
    """Some of the results of a query, and what to pass for the next ones."""

    items: list[Any]
    token: str | None
    """None: there are no more."""


Keys = tuple[int | float | str | Decimal, ...]


class Position(NamedTuple):
    """Where a page ended."""

    keys: Keys | None
    """What the last row is sorted by, its place in the collection last; None: the results are counted."""
    given: int
    """Results of that row that were given; where they are counted, of all."""
    skip: int
    """Results that OFFSET still passes over."""
    left: int | None
    """Results that TOP or LIMIT still lets through."""


class Tokens:
    """The tokens of one query with its parameters, on one collection."""

    def __init__(self, *query: Any) -> None:
        self._fingerprint = blake2b(orjson.dumps(query, option=orjson.OPT_SORT_KEYS)).digest()

    def token(self, position: Position) -> str:
        keys = None if position.keys is None else [_written(key) for key in position.keys]
        content = orjson.dumps((keys, *position[1:]))
        return base64.urlsafe_b64encode(self._digest(content) + content).decode()

    def position(self, token: object, keys: int) -> Position:
        """Where to go on. Raises QueryError for a token of another query, or one that was changed."""
        try:
            decoded = base64.urlsafe_b64decode(token.encode("ascii"))  # type: ignore[attr-defined]  # one of the errors
            digest, content = decoded[:DIGEST_BYTES], decoded[DIGEST_BYTES:]
            # The second: base64 is read whatever stands between its letters.
            if digest != self._digest(content) or base64.urlsafe_b64encode(decoded).decode() != token:
                raise ValueError
            found, given, skip, left = orjson.loads(content)
            position = Position(None if found is None else tuple(map(_read, found)), given, skip, left)
        except (AttributeError, ValueError, TypeError, ArithmeticError):
            raise _refused(token) from None
        if not _is_valid(position, keys):
            raise _refused(token)
        return position

    def _digest(self, content: bytes) -> bytes:
        return blake2b(content, key=self._fingerprint, digest_size=DIGEST_BYTES).digest()


def _written(key: int | float | str | Decimal) -> object:
    """A key as JSON. Numbers of PostgreSQL's have more digits than those of JSON."""
    return [str(key)] if isinstance(key, Decimal) else key


def _read(key: Any) -> Any:
    return Decimal(*key) if type(key) is list else key


def _refused(token: object) -> QueryError:
    return QueryError(
        f"the token {shown(token)} is damaged, or belongs to another query, other parameters or another collection: "
        "pass the token of the page before, with the same query"
    )


def _is_valid(position: Position, keys: int) -> bool:
    """Whoever knows the query could make a token: what comes out of it must at least be of the right types."""
    numbers = (position.given, position.skip, 0 if position.left is None else position.left)
    if not all(type(number) is int and number >= 0 for number in numbers):
        return False
    if position.keys is None:
        return True
    return len(position.keys) == keys and all(type(key) in (int, float, str, Decimal) for key in position.keys)


def check_size(size: object) -> int:
    if type(size) is int and 1 <= size <= MAX_SIZE:
        return size
    raise QueryError(f"the size of a page is from 1 to {MAX_SIZE}, got {shown(size)}")


class Segment(NamedTuple):
    """A part of what comes after a position, as a condition on the keys, and its parameters."""

    text: str
    values: tuple[Any, ...]


def after(keys: Sequence[SortKey], position: Sequence[Any], placeholder: str, *, again: bool) -> list[Segment]:
    """What comes after a position, in parts that follow each other; with `again`, from the position on.

    Not `(a, b) > (1, 2)`, for which SQLite uses no index: where a = 1 and b > 2, and then where a > 1.
    """
    segments = []
    for depth in reversed(range(len(keys))):
        sign = "<" if keys[depth].descending else ">"
        if again and depth == len(keys) - 1:
            sign += "="
        conditions = [f"{key.text} = {placeholder}" for key in keys[:depth]]
        conditions.append(f"{keys[depth].text} {sign} {placeholder}")
        segments.append(Segment(" AND ".join(conditions), tuple(position[: depth + 1])))
    return segments
