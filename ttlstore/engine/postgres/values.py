"""How the values of parameters go to PostgreSQL."""

from struct import Struct

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.types.numeric import Int8BinaryDumper

FIRST_INEXACT = 2**53  # from there on not every integer is a float
PAST_INTEGERS = 2**63  # what 64 bits hold ends before it

_NUMERIC, _TEXT, _TEXTS = 1700, 25, 1009  # what these types are called on every server
_HEADER = Struct("!iiiii")
_LENGTH = Struct("!i").pack


def register(connection: psycopg.Connection) -> None:
    """Have the values of a connection go our way."""
    # Always as wide: by itself the driver chooses by the value, and each choice is a statement to prepare.
    connection.adapters.register_dumper(int, Int8BinaryDumper)
    connection.adapters.register_dumper(float, _ExactFloat)
    connection.adapters.register_dumper(Texts, _AllTexts)


class _ExactFloat(Dumper):
    """All of its digits, as `numeric`; a whole one that integers compare with exactly is spelled out."""

    oid = _NUMERIC

    def dump(self, obj: float) -> bytes:
        whole = obj.is_integer() and abs(obj) >= FIRST_INEXACT and -PAST_INTEGERS <= obj < PAST_INTEGERS
        return (str(int(obj)) if whole else repr(obj)).encode()


class Texts(tuple[str, ...]):
    """An array of text, as the server keeps it. The driver would quote each, which takes ten times as long."""


class _AllTexts(Dumper):
    format = Format.BINARY
    oid = _TEXTS

    def dump(self, obj: Texts) -> bytes:
        return dump_texts(obj)


def dump_texts(texts: Texts) -> bytes:
    parts = [_HEADER.pack(1, 0, _TEXT, len(texts), 1)]
    for text in texts:
        encoded = text.encode()
        parts += (_LENGTH(len(encoded)), encoded)
    return b"".join(parts)


def integers(numbers: tuple[int | None, ...]) -> str:
    """An array of integers, as one writes it: the driver takes longer, and chooses their type by the values."""
    return f"{{{','.join(['NULL' if number is None else str(number) for number in numbers])}}}"
