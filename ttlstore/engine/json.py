"""What a query needs of a database to look into the bodies of documents, as SQL text.

Text, not SQLAlchemy: a query is planned when it comes in, and to build and compile its expressions would take longer
than to answer it. All of it is made of fixed words, numbers and paths, which the engine quotes; values are parameters.
"""

import re
from collections.abc import Sequence
from enum import IntEnum
from typing import Literal, Protocol

from ttlstore.errors import StoreFailed
from ttlstore.schema import documents

Path = tuple[str | int, ...]
"""From the document down: names of properties and positions in arrays."""

SEQ = f"{documents.name}.{documents.c.seq.name}"
"""The place in the collection."""

MAX_POSITION = 2**31 - 1  # in an array
MAX_PATH = 500  # characters: an expression has its path in it many times


def is_short(path: Path) -> bool:
    """Whether there is room for the path in a statement, and its positions are numbers that a database takes."""
    length = 0
    for part in path:
        if isinstance(part, str):
            length += len(part) + 1
        elif 0 <= part <= MAX_POSITION:
            length += 10
        else:
            return False
    return length <= MAX_PATH


def are_text(path: Path, *, without: str | None = None) -> bool:
    """Whether a database can hold the names: not if one has half a surrogate pair, or the character it cannot find."""
    for part in path:
        if isinstance(part, str):
            if without is not None and without in part:
                return False
            if not part.isascii():
                try:
                    part.encode()
                except UnicodeEncodeError:
                    return False
    return True


KEY_CHARACTERS = 100
"""Of a string that an index holds, where it does not hold all: an entry of six such, of 4 bytes each, fits in there."""


ESCAPED = re.compile(r'[\x00-\x1f"\\]')  # what JSON does not write as it is
_ESCAPE_CHARACTERS = 7  # of one in JSON, at most: one that stands for NUL, or for what NUL is replaced by


def is_long(text: str) -> bool:
    """Whether an index may not hold all of the string, or of its JSON: an engine may look at either."""
    length = len(text)
    if length * _ESCAPE_CHARACTERS < KEY_CHARACTERS:
        return False
    return length + (_ESCAPE_CHARACTERS - 1) * len(ESCAPED.findall(text)) >= KEY_CHARACTERS


Operator = Literal["=", "<>", "<", "<=", ">", ">="]


class Rank(IntEnum):
    """The types of values in their order; the value of a property that is not there is undefined."""

    UNDEFINED = 0
    NULL = 1
    FALSE = 2
    TRUE = 3
    NUMBER = 4
    STRING = 5
    ARRAY = 6
    OBJECT = 7

    __hash__ = int.__hash__  # not Enum's, which is a function in Python: plans are looked up by the types of parameters


class IndexGone(StoreFailed):
    """The index that a statement names was removed meanwhile."""


class Json(Protocol):
    """Conditions and sort keys over one path.

    A condition is true, or it is false or NULL: nobody negates it. It is written in one of two ways that mean the same:
    `indexed`, in terms of the sort keys, for the index that serves the statement; else as is fastest row by row.
    """

    def __hash__(self) -> int: ...  # plans are kept by what made them

    placeholder: str
    """What stands for a parameter."""
    shortens: bool
    """Whether indexes hold no more than the first KEY_CHARACTERS of a string: a comparison with a long one is then made
    twice, with those and with the whole, and has its parameters twice."""
    advised: bool
    """Whether `use` says anything: then the index must be there."""
    seeks_rows: bool
    """Whether an index finds where `(a, b) > (1, 2)` begins."""

    def reaches(self, path: Path) -> bool:
        """Whether the database can follow this path. What it cannot follow is evaluated outside."""

    def is_a(self, path: Path, ranks: tuple[Rank, ...], *, indexed: bool) -> str:
        """The value is of one of these types."""

    def compare(self, path: Path, rank: Rank, operator: Operator, *, indexed: bool, long: bool = False) -> str:
        """The value is of this type, NUMBER or STRING, and compares so with a parameter, which may be a long string.

        Numbers exactly, whether integer or not; strings by code point, and without NUL in the parameter.
        """

    def equals_plain(self, path: Path, *, long: bool = False) -> str:
        """The value equals a parameter that JSON writes without escapes; as is fastest row by row."""

    def among(self, path: Path, rank: Rank, count: int, *, indexed: bool, long: bool = False) -> str:
        """The value is of this type, NUMBER or STRING, and equals one of so many parameters."""

    def keys(self, path: Path, *, last: bool = False) -> tuple[str, ...]:
        """What sorts by this path: first the rank, then numbers and strings; never NULL. All other values are equal.

        `last`: after it only the place in the collection counts, and part of that may be among the keys.
        """

    def keys_alone(self, path: Path) -> tuple[str, ...]:
        """Those of the keys that are enough where no index has the others in order."""

    def place(self, path: Path) -> str:
        """The place in the collection as an index has it whose last path this is.

        That is only so of documents whose value there is no long string.
        """

    def text(self, column: str) -> str:
        """A column of text, compared by code point."""

    def use(self, index: str | None) -> str:
        """What tells the database to take this index, or, without one, to walk the collection in order."""

    def use_key(self) -> str:
        """What tells the database to go by the documents' ids."""

    def gather(self, collection: int, found: Sequence[tuple[str, str]]) -> tuple[str, str]:
        """For rows in another order than that of an index, or of several: what to use for all, and a condition.

        It is true of a row if one of the conditions found is, each of which comes with what it uses.
        """

    def indexed_keys(self, name: str, paths: tuple[Path, ...]) -> tuple[list[str], list[str]]:
        """The keys of the paths as the index of this name has them, and the statements that come before it is made."""

    def without_index(self, name: str) -> list[str]:
        """The statements that come after the index of this name was removed."""


def create_index(json: Json, name: str, collection: int, paths: tuple[Path, ...]) -> list[str]:
    """The statements that make an index over the keys of the paths, for documents of one collection alone."""
    keys, before = json.indexed_keys(name, paths)
    # Not with collection_id as its first column: then every document of the store would be in it.
    return [
        *before,
        f"CREATE INDEX {name} ON {documents.name} ({', '.join(keys)}) WHERE collection_id = {collection:d}",
    ]


def drop_index(json: Json, name: str) -> list[str]:
    """The statements that remove an index."""
    return [f"DROP INDEX IF EXISTS {name}", *json.without_index(name)]
