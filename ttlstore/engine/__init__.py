"""Where the data is: connections, transactions and the differences between databases.

An engine has two doors, `reading()` and `writing()`, and for the point operations the shorter `one()` and `attempt()`.
Errors of the driver leave as errors of this package.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Literal, NamedTuple, Protocol

import sqlalchemy

from ttlstore.engine.json import Json
from ttlstore.errors import CannotOpen, StoreFailed, shown
from ttlstore.statements import Prepare, Prepared, Statements, Values
from ttlstore.ttl import Clock

# What `check` says of an index that every store has, and this one lacks: as after a dump that was cut off.
MAKE_AGAIN = "make it again, by the script for a new store: ttlstore migrate upgrade NEW --sql"

Row = tuple[Any, ...]
Durability = Literal["full", "normal"]
Progress = Callable[[int, int], None]

# With a slip that makes it a path, to be repeated; or as libpq takes it that is no URL.
_LIKE_A_SERVER = re.compile(r"""[\s"']*postgres(ql)?(\+\w+)?(:|//)|(.*\s)?(\w*password|dbname)\s*=""", re.IGNORECASE)


class Space(NamedTuple):
    """The size of a database, and how much of it is unused."""

    page_bytes: int
    pages: int
    free_pages: int


class Settings(NamedTuple):
    """What of a collection's settings a query is planned by."""

    collection: int
    mode: str
    paths: str

    @classmethod
    def of(cls, row: Row | None) -> "Settings | None":
        """Those in a row of `Statements.collection`."""
        return None if row is None else cls(row[0], row[4], row[5])


class SettingsChanged(StoreFailed):
    """The settings that a statement was planned by are not those of the collection, or the collection was dropped."""


class Engine(Protocol):
    """What the layers above need of a database."""

    name: str
    """What was opened, for messages: without a password."""
    description: str
    """The database and its version."""
    dialect: str
    """Its name in SQLAlchemy."""
    standby: bool
    """Whether it is the copy of another, which cannot be written."""
    script_begins: tuple[str, ...]
    """What a migration that is run by hand must run first."""
    statements: Statements
    prepare: Prepare
    clock: Clock
    """What time it is: by the database server's clock, if it has one and no other was given."""
    statement_clock: Clock
    """For the parameters of statements. Where the server's clock rules, they read it themselves and ignore these."""
    json: Json

    def is_same(self, other: "Engine") -> bool:
        """Whether the other has the very same store, whatever it was called when it was opened."""

    def one(self, statement: Prepared, values: Values = ()) -> Row | None:
        """The first row."""

    def all(self, statement: Prepared, values: Values = (), planned_by: Settings | None = None) -> list[Row]:
        """All rows. Raises SettingsChanged if `settings` was wrong about `planned_by`."""

    def stream(
        self,
        statement: Prepared,
        values: Values = (),
        planned_by: Settings | None = None,
        unordered: Prepared | None = None,
    ) -> Iterator[Row]:
        """All rows as they are now, however long the caller takes, on a connection that nobody waits for.

        `unordered` has the same rows in any order, within a statement that has the collection's row, where theirs is
        that of their first column. Raises SettingsChanged as `all` does.
        """

    def settings(self, collection: int, *, anew: bool = False) -> Settings | None:
        """What to plan a query by; None if the collection was dropped.

        The settings as they are; or, where a server must be asked for them, as they were last seen, unless they are to
        be read `anew`: a statement that is planned by them finds out in the same trip whether they still hold.
        """

    def write(self, statement: Prepared, values: Callable[[int, int], Values]) -> tuple[int, int]:
        """Write with the values at (now, ts), and tell how many rows were changed and the `ts`.

        By the clock at the moment when the row can be changed: it may have expired while the call waited. In the
        transaction of this thread, or else in one of its own.
        """

    def steps(self, statement: Prepared, values: Values = ()) -> list[str]:
        """How the database would go about a statement, in its own words."""

    def attempt(self, statement: Prepared, values: Values) -> int | None:
        """Write without waiting, in a transaction of its own, and tell how many rows were changed.

        None if a lock is taken.
        """

    def remove(self, statement: Prepared, values: Values) -> list[Row] | None:
        """Delete without waiting, in a transaction of its own, and tell what the statement returns of the rows.

        None if a lock is taken.
        """

    def change(self, statement: Prepared, values: Values) -> int:
        """Write inside `writing()`, and tell how many rows were changed."""

    def change_many(self, statement: Prepared, rows: list[Values], meanwhile: Callable[[], None] | None = None) -> int:
        """The same statement once for each of the rows, inside `writing()`.

        `meanwhile` is as in `write_all`, and may not use this store.
        """

    def write_all(
        self, statement: Prepared, count: int, rows: Callable[[], Iterator[Values]], meanwhile: Callable[[], None]
    ) -> bool:
        """The same once for each of so many rows. False if one of them changed nothing; then none was written.

        In the transaction of this thread, or else in one of its own. The rows are asked for when they can be written,
        and perhaps once more. `meanwhile` is called when only a server has work to do, if there is such a moment: it
        may take its time, and use the store.
        """

    def all_indexes(self) -> dict[str, bool | None]:
        """The indexes that were made for collections, by name, and whether each can be used.

        One whose making was cut short cannot; None: it is being made just now.
        """

    def define(self, statement: str) -> None:
        """Run a statement of `json` that makes or removes an index, inside `writing()`."""

    def defining(self) -> AbstractContextManager[Callable[[str], None] | None]:
        """What does the same as `define` outside of `writing()`, while others write; None where that cannot be done.

        Nobody else is in here meanwhile. Raises StoreBusy.
        """

    def reading(self) -> AbstractContextManager[None]:
        """What this thread reads inside is one state of the database."""

    def writing(self) -> AbstractContextManager[None]:
        """What this thread writes inside is one change. Takes the write lock at once; nested, it is a savepoint."""

    def in_transaction(self) -> bool:
        """Whether this thread is inside `writing()`."""

    def after_transaction(self, action: Callable[[], None]) -> None:
        """Have something done once the transaction that this thread is in has ended, one way or the other."""

    def housekeeping(self) -> AbstractContextManager[None]:
        """Inside, this thread writes what may be lost with the power, so that the lock is not held for the disk."""

    def turn(self) -> AbstractContextManager[bool]:
        """Whether this process is the one that keeps house now; no other is before the end of the block."""

    def in_line(self, seconds: float) -> AbstractContextManager[bool]:
        """Wait for the write lock like any other who writes, for so long at most; tells whether this thread has it now.

        What it does inside is one change. Where writers do not keep each other out there is nothing to wait for.
        """

    def others_write(self) -> bool:
        """Whether another connection has written since this thread last asked, or waits to."""

    def pack(self, first: int, last: int) -> int | None:
        """Write the rows between two places anew, side by side, without waiting; tells how many, None if locked."""

    def give_back(self, pages: int) -> int | None:
        """Return some unused pages to the file system, without waiting; tells how many, None if the lock is taken."""

    def checkpoint(self) -> None:
        """Fold the log into the file, as far as that is possible without anybody waiting."""

    def space(self) -> Space:
        """What the store takes up."""

    def revision(self) -> str | None:
        """The schema's revision; None for a new store."""

    def migrating(self) -> AbstractContextManager[sqlalchemy.Connection]:
        """A connection for Alembic, in a transaction that holds the write lock."""

    def check(self) -> list[str]:
        """What the database finds wrong with itself."""

    def backup(self, path: str, progress: Progress) -> None:
        """Copy the whole store to a new file, as it is at one moment; tells how many of how many pages are copied."""

    def close(self) -> None:
        """Wait for the calls under way and give everything back."""


class _SomeRefused(Exception):
    """Rolls a batch back."""


def all_or_none(engine: Engine, statement: Prepared, count: int, rows: Callable[[], Iterator[Values]]) -> bool:
    """`Engine.write_all` by `Engine.change_many`."""
    try:
        with engine.writing():
            if engine.change_many(statement, list(rows())) < count:
                raise _SomeRefused
    except _SomeRefused:
        return False
    return True


def connect(
    target: str | os.PathLike[str],
    *,
    clock: Clock,
    durability: Durability,
    busy_timeout: float,
    create: bool = True,
    read_only: bool = False,
) -> Engine:
    """The engine for a path, ":memory:" or a SQLAlchemy URL; without `create`, only if there is a store.

    Raises CannotOpen or NotAStore.
    """
    if durability not in ("full", "normal"):
        raise ValueError(f"durability must be 'full' or 'normal', got {shown(durability)}")
    if isinstance(busy_timeout, bool) or not isinstance(busy_timeout, int | float) or not 0 <= busy_timeout <= 86_400:
        raise ValueError(f"busy_timeout must be a number of seconds from 0 to 86400, got {shown(busy_timeout)}")
    path = os.fspath(target)
    if not isinstance(path, str) or not path or "\0" in path or not _can_be_a_name(path):
        got = "a URL that is not one" if "://" in repr(target) else shown(target)  # there may be a password in it
        raise CannotOpen(f"a store is opened by a path, ':memory:' or a URL, got {got}")
    if on_a_server(path):
        return _postgres(path, clock, durability, busy_timeout, create=create, read_only=read_only)
    if "://" in path or _LIKE_A_SERVER.match(path):
        path = _path_in_url(path)
    from ttlstore.engine.sqlite.engine import SqliteEngine

    if path == ":memory:" and read_only:
        raise CannotOpen("a store in memory is new and empty: read_only=True needs one that is there")
    return SqliteEngine(
        None if path == ":memory:" else path, clock, durability, busy_timeout, create=create, read_only=read_only
    )


def on_a_server(target: str) -> bool:
    """Whether it names a store on a PostgreSQL server."""
    return re.match(r"(postgres|postgresql|postgresql\+psycopg)://", target) is not None


def _can_be_a_name(path: str) -> bool:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


def _postgres(
    url: str, clock: Clock, durability: Durability, busy_timeout: float, *, create: bool, read_only: bool
) -> Engine:
    try:
        from ttlstore.engine.postgres.engine import PostgresEngine
    except ImportError as error:
        raise CannotOpen(
            f"PostgreSQL needs psycopg, and it cannot be imported ({error}): pip install 'ttlstore[postgres]'"
        ) from None
    return PostgresEngine(url, clock, durability, busy_timeout, create=create, read_only=read_only)


def _path_in_url(text: str) -> str:
    """Raises CannotOpen, which repeats no more than the scheme: anywhere else there may be a password."""
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+._-]*)://", text)
    if scheme is None or scheme[1] not in ("sqlite", "sqlite+pysqlite"):
        got = f"one that begins with {shown(scheme[0])}" if scheme else "what looks like a server and is no such URL"
        raise CannotOpen(f"only URLs like sqlite:///app.db and postgresql://host/database can be opened, got {got}")
    path = text.removeprefix(scheme[0])
    if not path:
        return ":memory:"
    if not path.startswith("/") or "?" in path:
        raise CannotOpen("the URL of a file has three slashes, or four before a full path, and no options after a ?")
    return path[1:] or ":memory:"
