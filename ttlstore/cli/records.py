"""Documents in files and pipes: JSON Lines and JSON arrays, packed by gzip or not."""

import gzip
import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import IO, Any, NamedTuple

import click

from ttlstore.cli.output import json_text
from ttlstore.errors import InvalidDocument

STDIO = "-"
ARRAY_SUFFIXES = (".json", ".json.gz")
UNFINISHED = ".unfinished"  # ends the name of a file that is not complete

_DATABASE = b"SQLite format 3\0"  # how a file of SQLite's begins
_OF_A_STORE = ("", "-wal", "-shm", "-journal")  # how the names of its files end


class Record(NamedTuple):
    """A line of JSON Lines or an element of an array."""

    number: int
    """Counted from 1."""
    content: Any
    """The text of a line, the value of an element."""

    def document(self) -> Any:
        """Raises InvalidDocument."""
        import orjson

        if not isinstance(self.content, bytes):
            return self.content
        try:
            return orjson.loads(self.content)
        except orjson.JSONDecodeError as error:
            raise InvalidDocument(f"not JSON: {error}") from None

    def text(self) -> str:
        if isinstance(self.content, bytes):
            return self.content.decode(errors="replace").strip()
        return json_text(self.content)


class Source:
    """A file, or stdin, to read records from."""

    def __init__(self, name: str) -> None:
        self.size: int | None = None
        """In bytes, packed as they are; None: not known."""
        with ExitStack() as files:
            if name == STDIO:
                self._file: IO[bytes] = sys.stdin.buffer
            else:
                self._file = files.enter_context(open(name, "rb"))
                self.size = os.fstat(self._file.fileno()).st_size
            unpacked = files.enter_context(gzip.open(self._file)) if name.endswith(".gz") else self._file
            self._text = io.BufferedReader(unpacked)  # type: ignore[type-var]  # has what it needs: readinto
            self._files = files.pop_all()

    def __enter__(self) -> "Source":
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    def position(self) -> int:
        """How many bytes were read; 0 where that is not known."""
        return 0 if self.size is None else self._file.tell()

    def __iter__(self) -> Iterator[Record]:
        """Lines one after the other; an array is read as a whole."""
        import orjson

        if self._text.peek(1).lstrip()[:1] == b"[":
            try:
                elements = orjson.loads(self._text.read())
            except orjson.JSONDecodeError as error:
                raise InvalidDocument(f"the array is not JSON: {error}") from None
            for number, element in enumerate(elements, start=1):
                yield Record(number, element)
            return
        for number, line in enumerate(self._text, start=1):
            if not line.isspace():
                yield Record(number, line)


def check_target(name: str, store: str) -> None:
    """Refuse to write over the store or another database. Raises UsageError."""
    # By its names and by stat. It is not opened: closing it would drop the locks that SQLite holds there.
    if any(is_same(name, own) for path in (store, os.path.realpath(store)) for own in _files(path)):
        raise click.UsageError(f"{name} is a file of the store {store}, and would be overwritten: name another file")
    if _is_database(name):
        raise click.UsageError(f"{name} is a database, and would be overwritten: name another file, or remove it first")


def _files(store: str) -> list[str]:
    return [f"{store}{ending}" for ending in _OF_A_STORE]


def is_same(one: str, other: str) -> bool:
    """Whether two names are of one file, or would be."""
    try:
        return os.path.samefile(one, other)
    except OSError:  # one is not there, and could be made
        return os.path.realpath(one) == os.path.realpath(other)


def _is_database(name: str) -> bool:
    if not os.path.isfile(name):  # to open a pipe would wait for its other end
        return False
    try:
        with open(name, "rb") as file:
            return file.read(len(_DATABASE)) == _DATABASE
    except OSError:  # may be written and not read
        return False


def write_documents(name: str, documents: Iterable[Any]) -> None:
    """Write an array to a file whose name says so, else JSON Lines. A file takes its name when it is complete."""
    with _target(name) as target:
        if name.endswith(ARRAY_SUFFIXES):
            separator = b"["
            for document in documents:
                target.write(separator + json_text(document).encode())
                separator = b",\n"
            target.write(b"[]\n" if separator == b"[" else b"]\n")
        else:
            for document in documents:
                target.write(json_text(document).encode() + b"\n")


@contextmanager
def _target(name: str) -> Iterator[IO[bytes] | gzip.GzipFile]:
    if name == STDIO:
        yield sys.stdout.buffer
        return
    unfinished = f"{name}{UNFINISHED}"
    try:
        with open(unfinished, "wb") as file:
            if name.endswith(".gz"):
                with gzip.open(file, "wb") as packed:
                    yield packed
            else:
                yield file
        os.replace(unfinished, name)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(unfinished)
