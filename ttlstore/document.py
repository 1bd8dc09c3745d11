"""Documents on their way in and out: what is valid, how they are stored, and what tells that they are undamaged."""

import itertools
import os
import secrets
import uuid
from collections.abc import Iterator
from math import inf
from typing import Any, NamedTuple
from zlib import crc32

import orjson

from ttlstore.errors import InvalidDocument, StoreCorrupt, shown
from ttlstore.ttl import check_ttl

Document = dict[str, Any]

MAX_ID_BYTES = 1023  # of UTF-8, as in the reference
MAX_DEPTH = 254  # levels of objects and arrays: what the encoder does
_MIN_INT, _MAX_INT = -(2**63), 2**63 - 1  # what SQLite and PostgreSQL compare exactly
_CRC_MASK = 0xFFFFFFFF


class Encoded(NamedTuple):
    """A valid document, ready to be stored."""

    id: str
    partition: str
    ttl: int | None
    body: bytes

    def values(self, ts: int, etag: str) -> tuple[str, str, int | None, int, str, int, int, str]:
        """What the writing statements take: `statements.KEY` and `statements.CONTENT`."""
        id, partition, ttl, body = self
        return id, partition, ttl, ts, etag, len(body), checksum_of(body, ts), body.decode()


def encode(document: Document, partition_path: tuple[str, ...], *, make_id: bool = False) -> tuple[Encoded, Document]:
    """Validate and encode; the second is what will be read back. Raises InvalidDocument or InvalidTtl."""
    if not isinstance(document, dict):
        raise InvalidDocument(f"a document must be a dict, got a {type(document).__name__}: {shown(document)}")
    if "_ts" in document or "_etag" in document:
        document = {name: value for name, value in document.items() if name not in ("_ts", "_etag")}
    ttl = None
    if "ttl" in document:
        ttl = document["ttl"]
        if ttl is None:
            document = {name: value for name, value in document.items() if name != "ttl"}
        else:
            check_ttl(ttl)
    if make_id and "id" not in document:
        document = {"id": str(uuid.uuid4()), **document}
    body, copy = to_json(document)
    if "id" not in copy:
        raise InvalidDocument(f"the document has no id: it needs one, a string, got {shown(document)}")
    id = check_id(copy["id"])
    partition = "" if partition_path == ("id",) else partition_of(copy, partition_path)
    return Encoded(id, partition, ttl, body), copy


def to_json(value: Document) -> tuple[bytes, Document]:
    """JSON, and the copy that will be read back from it, which shares nothing with the original.

    Raises InvalidDocument.
    """
    try:
        body = orjson.dumps(value, option=orjson.OPT_STRICT_INTEGER)
    except TypeError as error:
        # Some integers are too large for JavaScript and fit into 64 bits all the same.
        if problem := _problem(value):
            raise problem from None
        if "53-bit" not in str(error):
            raise InvalidDocument(f"the document is not JSON: {error}") from None
        body = orjson.dumps(value)
    # The encoder turns some values that are not JSON into some that are: NaN into null, a UUID into a string. What is
    # read back from the text tells them all.
    copy: Document = orjson.loads(body)
    if copy != value:
        raise _problem(value) or InvalidDocument("the document does not come back from JSON as it is")
    return body, copy


def with_system(document: Document, ts: int, etag: str) -> Document:
    """Add the system properties."""
    document["_etag"] = etag
    document["_ts"] = ts // 1000
    return document


def checksum_of(body: bytes, ts: int) -> int:
    """Of a document and the time it was written: what a database that keeps that time itself can work out as well."""
    return crc32(body) ^ (ts & _CRC_MASK)


def decode(body: str, ts: int, etag: str, checksum: int) -> Document:
    """The document of a row. Raises StoreCorrupt if the row is not what was written."""
    # On the way of every read: `checksum_of` and `with_system`, without the two calls.
    try:
        encoded = body.encode()
        sound = crc32(encoded) ^ (ts & _CRC_MASK) == checksum
    except (AttributeError, TypeError):  # a column is not even of its kind
        sound = False
    if not sound:
        raise StoreCorrupt(f"a document is damaged (its checksum does not fit): {shown(body)}")
    document: Document = orjson.loads(encoded)
    document["_etag"] = etag
    document["_ts"] = ts // 1000
    return document


# --- identity -------------------------------------------------------------------------------------------------------


def check_id(id: object) -> str:
    """The id, if it is valid. Raises InvalidDocument."""
    if type(id) is str and id and len(id) <= MAX_ID_BYTES // 4 and id.isascii() and "\0" not in id:
        return id
    if not isinstance(id, str):
        raise InvalidDocument(f"id must be a string, got {shown(id)}")
    if not id:
        raise InvalidDocument("id must not be empty")
    check_text("id", id)
    if len(id.encode()) > MAX_ID_BYTES:
        raise InvalidDocument(f"id must be at most {MAX_ID_BYTES} bytes of UTF-8, got {len(id.encode())}: {shown(id)}")
    return str(id)


def check_text(what: str, text: str) -> None:
    """Refuse what a database cannot hold as text."""
    if "\0" in text:
        raise InvalidDocument(f"{what} must not contain NUL, got {shown(text)}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidDocument(f"{what} must be valid Unicode without lone surrogates, got {shown(text)}") from None


def encode_partition(value: object) -> str:
    """The text by which a partition is found: its JSON, the same for equal numbers. Raises InvalidDocument."""
    if isinstance(value, float) and value.is_integer() and _MIN_INT <= value <= _MAX_INT:
        value = int(value)
    if isinstance(value, str):
        check_text("the partition key", value)
    elif not (value is None or isinstance(value, bool | int | float)) or value in (inf, -inf) or value != value:
        raise InvalidDocument(f"a partition key must be a string, a number, true, false or null, got {shown(value)}")
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        raise InvalidDocument(f"a partition key must fit into 64 bits, got {shown(value)}") from None


def partition_of(document: Document, path: tuple[str, ...]) -> str:
    value: Any = document
    for name in path:
        if not isinstance(value, dict) or name not in value:
            raise InvalidDocument(
                f"the document has no {pointer(path)}, the partition key of its collection: {shown(document)}"
            )
        value = value[name]
    return encode_partition(value)


# --- etags ----------------------------------------------------------------------------------------------------------
# A random name for this process and a count: as unique as a random number for every write, without drawing one.

_origin = ""
_writes = itertools.count(1)


def _new_origin() -> None:
    global _origin
    _origin = secrets.token_hex(8)


_new_origin()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_origin)


def new_etag() -> str:
    """A version that no document ever had."""
    return f"{_origin}{next(_writes):x}"


def comparable(if_match: object) -> str:
    """What a condition is compared with the etags of documents by: what cannot be one matches none."""
    return if_match if isinstance(if_match, str) and if_match.isascii() and if_match.isprintable() else ""


# --- paths ----------------------------------------------------------------------------------------------------------


def pointer(path: tuple[str | int, ...]) -> str:
    """The JSON pointer of a path."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def parse_pointer(text: str) -> tuple[str, ...]:
    """The path of a JSON pointer. Raises ValueError."""
    if not text.startswith("/"):
        raise ValueError(f"a path must start with '/', got {shown(text)}")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/"))


# --- what is wrong with a document ----------------------------------------------------------------------------------


def _problem(document: Document) -> InvalidDocument | None:
    """The first value that is not JSON, by its path; None if there is none."""
    for path, value in _walk(document):
        if fault := _fault(value):
            return InvalidDocument(f"{pointer(path) or 'the document'} {fault}")
        if len(path) >= MAX_DEPTH and isinstance(value, dict | list):
            return InvalidDocument(
                f"{pointer(path[:3])}/… is nested more than {MAX_DEPTH} levels deep, or contains itself"
            )
    return None


def _walk(document: Document) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    waiting: list[tuple[tuple[str | int, ...], Any]] = [((), document)]
    while waiting:
        path, value = waiting.pop()
        yield path, value
        if isinstance(value, dict):
            waiting.extend((((*path, name), inner) for name, inner in reversed(value.items())))
        elif isinstance(value, list):
            waiting.extend(((*path, index), value[index]) for index in reversed(range(len(value))))


def _fault(value: Any) -> str | None:
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, dict):
        for name in value:
            if type(name) is not str:
                return f"has a key that is not a string: {shown(name)}"
            if _has_surrogates(name):
                return f"has a key with a lone surrogate: {shown(name)}"
        return None
    if isinstance(value, list):
        return None
    if isinstance(value, str):
        return f"has a lone surrogate: {shown(value)}" if _has_surrogates(value) else None
    if isinstance(value, int):
        return None if _MIN_INT <= value <= _MAX_INT else f"is an integer beyond 64 bits: {shown(value)}"
    if type(value) is float:  # the encoder refuses other kinds
        return None if value - value == 0 else f"is {value}, which JSON does not have"
    hint = ": use a list" if isinstance(value, tuple) else ""
    return f"is a {type(value).__name__}, which JSON does not have{hint}: {shown(value)}"


def _has_surrogates(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
