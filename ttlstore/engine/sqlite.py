"""The engine for SQLite: a connection for each thread, the compiled statements run on its own cursor.

A thread's connection is used by that thread alone, but for `close()`, which may come from another one; each has a lock
for that. A store in memory is one connection that its threads share, so there the lock is also the write lock: while
one thread is in a transaction, the others wait.
"""

import ctypes
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.dialects.sqlite.base import SQLiteCompiler
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

from ttlstore import forks
from ttlstore.engine import Durability, Progress, Row, Space
from ttlstore.engine.json import Json
from ttlstore.engine.sqlite_file import APPLICATION_ID, inspect_file
from ttlstore.engine.sqlite_json import SqliteJson
from ttlstore.engine.turn import turn
from ttlstore.errors import (
    CannotOpen,
    InvalidDocument,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreFailed,
    StoreFull,
    StoreReadOnly,
    TtlStoreError,
)
from ttlstore.schema import index_prefix
from ttlstore.statements import Prepared, Statements, Values, preparing_for

T = TypeVar("T")

OLDEST_SQLITE = (3, 38, 0)  # the first whose JSON functions are always there
CACHE_KIB = 16_384  # of pages for each connection; SQLite's own 2 MiB are little for an index of a million documents
WAL_LIMIT_BYTES = 16 * 1024 * 1024  # what a bulk load leaves of its write-ahead log
CHECKPOINT_PAGES = 4000  # of the log, before it is folded into the file; by itself SQLite waits for the disk more often
STATEMENT_CACHE = 256  # compiled statements a connection keeps: all of ours and many queries
SHORTEST_PAUSE_SECONDS = 0.0005  # before asking again for a lock: shorter than the gap between the vacuum's batches
IMPATIENT_SECONDS = 0.05  # for so long it is asked for that often
LONGEST_PAUSE_SECONDS = 0.01  # what a long wait may cost after the lock is free
BACKUP_PAGES = 1024  # copied between two reports: 4 MiB, some milliseconds
FORK_PATIENCE_SECONDS = 5.0  # for the calls and transactions of other threads, before a fork goes ahead without
MIGRATION_PATIENCE_SECONDS = 60.0  # whatever an application's patience with a write: another may be migrating


class _Compiler(SQLiteCompiler):
    def get_from_hint_text(self, table: Any, text: Any) -> Any:
        return text  # INDEXED BY, which SQLAlchemy's dialect leaves out


class _Dialect(SQLiteDialect_pysqlite):
    statement_compiler = _Compiler
    supports_statement_cache = True


prepare = preparing_for(_Dialect(paramstyle="qmark"))


@cache
def _statements() -> Statements:
    return Statements(prepare, insert)


class _Connection:
    """A connection of the driver, the lock that guards it, and how deep in transactions it is."""

    __slots__ = ("__weakref__", "afterwards", "depth", "lock", "raw", "version", "writer")

    def __init__(self, raw: sqlite3.Connection, lock: threading.RLock) -> None:
        self.raw = raw
        self.lock = lock
        self.depth = 0
        self.afterwards: set[Callable[[], None]] = set()  # what is done after the transaction
        self.version: int | None = None  # of the data, when it was last asked for
        self.writer = 0  # the thread that is in the transaction: others may share the connection

    def __del__(self) -> None:
        self.raw.close()  # its thread has ended


class SqliteEngine:
    """A store in a file, or in memory if there is no path."""

    def __init__(self, path: str | None, durability: Durability, busy_timeout: float, *, create: bool) -> None:
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            needed = ".".join(map(str, OLDEST_SQLITE))
            raise CannotOpen(f"ttlstore needs SQLite {needed} or later, and this Python has {sqlite3.sqlite_version}")
        self.name = path or ":memory:"
        self.description = f"SQLite {sqlite3.sqlite_version}"
        self.statements = _statements()
        self.prepare = prepare
        self.json: Json = SqliteJson()
        self._path = None if path is None else os.path.abspath(path)
        self._durability = durability
        self._busy_timeout = busy_timeout
        self._closed = False
        self._unusable = False
        self._start()
        if self._path is not None:
            inspect_file(self._path, create=create)
        forks.engines.add(self)
        self._set_up("rwc" if create else "rw")

    def _start(self) -> None:
        # Threads of this process queue here for the write lock: SQLite alone would have them sleep and ask again.
        self._write_lock = threading.RLock()
        self._local = threading.local()
        self._connections: weakref.WeakSet[_Connection] = weakref.WeakSet()
        self._guard = threading.Lock()  # of the two above
        self._writers: set[int] = set()  # the threads that write or wait to

    # --- the point operations ---------------------------------------------------------------------------------------

    def one(self, statement: Prepared, values: Values = ()) -> Row | None:
        connection = self._connection()
        arranged = statement.arrange(values)
        if not connection.lock.acquire(True, self._busy_timeout):
            raise self._busy()
        try:
            return connection.raw.execute(statement.sql, arranged).fetchone()  # type: ignore[no-any-return]
        except sqlite3.Error as error:
            if not _is_busy(error):
                raise self._translated(error) from error
            rows = self._patiently(lambda: connection.raw.execute(statement.sql, arranged).fetchall())
            return rows[0] if rows else None
        finally:
            connection.lock.release()

    def all(self, statement: Prepared, values: Values = ()) -> list[Row]:
        connection = self._connection()
        arranged = statement.arrange(values)
        if not connection.lock.acquire(True, self._busy_timeout):
            raise self._busy()
        try:
            return self._patiently(lambda: connection.raw.execute(statement.sql, arranged).fetchall())
        finally:
            connection.lock.release()

    def stream(self, statement: Prepared, values: Values = ()) -> Iterator[Row]:
        if self._path is None or self.in_transaction():  # whose contents another connection does not see
            yield from self.all(statement, values)
            return
        with closing(self._open()) as raw:
            cursor = self._patiently(lambda: raw.execute(statement.sql, statement.arrange(values)))
            try:
                yield from cursor
            except sqlite3.Error as error:
                raise self._translated(error) from error

    def attempt(self, statement: Prepared, values: Values) -> int | None:
        connection = self._connection()
        nested = connection.depth > 0 and connection.writer == threading.get_ident()
        try:  # from here on a signal's handler may raise anywhere: see writing()
            if not nested and not self._write_lock.acquire(False):
                return None
            with connection.lock:
                if connection.depth:
                    self._require_transaction(connection)
                elif connection.raw.in_transaction:
                    self._roll_back(connection, "ROLLBACK")  # or the write would be part of what a signal left behind
                return connection.raw.execute(statement.sql, statement.arrange(values)).rowcount
        except sqlite3.Error as error:
            if _is_busy(error):
                return None
            raise self._translated(error) from error
        finally:
            if not nested:
                try:  # noqa: SIM105  # suppress() is a call
                    self._write_lock.release()
                except RuntimeError:
                    pass  # it was not acquired

    def change(self, statement: Prepared, values: Values) -> int:
        return self.change_many(statement, [values])

    def change_many(self, statement: Prepared, rows: list[Values]) -> int:
        connection = self._connection()
        try:
            with connection.lock:
                self._require_transaction(connection)
                return connection.raw.executemany(statement.sql, map(statement.arrange, rows)).rowcount
        except sqlite3.Error as error:
            raise self._translated(error) from error

    # --- indexes ----------------------------------------------------------------------------------------------------

    def indexes(self, collection: int) -> frozenset[str]:
        names = _literal("SELECT name FROM sqlite_master WHERE type = 'index' AND name GLOB ?")
        return frozenset(row[0] for row in self.all(names, (f"{index_prefix(collection)}*",)))

    def define(self, statement: str) -> None:
        connection = self._connection()
        with connection.lock:
            self._require_transaction(connection)
            self._run(connection, statement)

    # --- transactions -----------------------------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[None]:
        connection = self._connection()
        if not connection.lock.acquire(True, self._busy_timeout):
            raise self._busy()
        try:
            if connection.depth:
                yield
                return
            try:
                self._run(connection, "BEGIN")
                yield
            finally:
                try:
                    self._roll_back(connection, "ROLLBACK")
                except BaseException:  # a signal came first
                    self._roll_back(connection, "ROLLBACK")
                    raise
        finally:
            connection.lock.release()

    @contextmanager
    def writing(self) -> Iterator[None]:
        connection = self._connection()
        me = threading.get_ident()
        nested = connection.depth > 0 and connection.writer == me
        entered = False
        # A signal's handler may raise anywhere in here, and whatever was taken by then must be given back. So what
        # takes something stands inside the `try` whose end gives it back, and there nothing is called before that.
        try:
            if not nested:
                self._writers.add(me)
                if not self._write_lock.acquire(True, self._busy_timeout):
                    raise self._busy()
            begin, commit, undo = self._boundaries(connection)
            try:
                self._run(connection, begin)
                connection.writer = me
                connection.depth += 1
                entered = True
                yield
                self._require_transaction(connection)
                self._run(connection, commit)
            except BaseException:
                if entered or not nested:  # else a savepoint may stay behind, and does nothing
                    try:
                        self._roll_back(connection, undo)
                    except BaseException:  # a signal came first
                        self._roll_back(connection, undo)
                        raise
                raise
            finally:
                connection.depth -= entered
                while connection.afterwards and not connection.depth:
                    connection.afterwards.pop()()
        finally:
            if not nested:
                try:  # noqa: SIM105  # suppress() is a call
                    self._write_lock.release()
                except RuntimeError:
                    pass  # it was not acquired
                self._writers.discard(me)

    def _boundaries(self, connection: _Connection) -> tuple[str, str, str]:
        """What begins, ends and undoes a transaction, or one inside another."""
        if connection.depth:
            self._require_transaction(connection)
            name = f"nested_{connection.depth}"
            return f"SAVEPOINT {name}", f"RELEASE {name}", f"ROLLBACK TO {name}; RELEASE {name}"
        self._roll_back(connection, "ROLLBACK")  # what a signal left behind, if it did
        return "BEGIN IMMEDIATE", "COMMIT", "ROLLBACK"

    def in_transaction(self) -> bool:
        connection = self._connection()
        if self._closed:
            raise StoreClosed(f"{self.name} is closed")
        return connection.depth > 0 and connection.writer == threading.get_ident()

    def after_transaction(self, action: Callable[[], None]) -> None:
        self._connection().afterwards.add(action)

    def _run(self, connection: _Connection, sql: str) -> None:
        with connection.lock:
            self._patiently(lambda: connection.raw.execute(sql))

    def _roll_back(self, connection: _Connection, undo: str) -> None:
        if self._unusable:
            return
        with connection.lock:
            try:
                if connection.raw.in_transaction:  # some errors end the transaction by themselves
                    for statement in undo.split("; "):
                        connection.raw.execute(statement)
            except sqlite3.ProgrammingError:
                pass  # a closed connection has none
            except sqlite3.Error as error:
                if "no such savepoint" not in str(error):  # a signal came when it was released
                    raise self._translated(error) from error

    def _require_transaction(self, connection: _Connection) -> None:
        """A full disk, for one, ends the whole transaction: what followed would be committed on its own."""
        if self._closed:
            raise StoreClosed(f"{self.name} is closed")
        self._require_usable()
        if not connection.raw.in_transaction:
            raise StoreFailed("the transaction was rolled back after an error; leave its block and start again")

    def _require_usable(self) -> None:
        if self._unusable:
            raise StoreFailed(
                f"{self.name} cannot be used in this process: it was forked inside a transaction of its parent"
            )

    # --- connections ------------------------------------------------------------------------------------------------

    def _connection(self) -> _Connection:
        try:
            connection: _Connection = self._local.connection
        except AttributeError:
            connection = self._local.connection = self._add_connection()
        return connection

    def _add_connection(self, mode: str = "rw") -> _Connection:
        with self._guard:
            if self._closed:
                raise StoreClosed(f"{self.name} is closed")
            self._require_usable()
            if self._path is None and self._connections:
                connection = next(iter(self._connections))
            else:
                lock = self._write_lock if self._path is None else threading.RLock()
                connection = _Connection(self._open(mode), lock)
                self._connections.add(connection)
        return connection

    def _open(self, mode: str = "rw") -> sqlite3.Connection:
        # Not "rwc" once the store is there: a file that was moved away must not come back empty.
        address = ":memory:" if self._path is None else f"{Path(self._path).as_uri()}?mode={mode}"
        try:
            raw = sqlite3.connect(
                address,
                uri=True,
                timeout=0.0,  # waiting is up to _patiently
                isolation_level=None,
                check_same_thread=False,
                cached_statements=STATEMENT_CACHE,
            )
        except sqlite3.Error as error:
            raise self._translated(error) from error
        try:
            # Patiently: even these look into the file, and another process that closes it locks it for a moment.
            self._patiently(lambda: self._configure(raw))
        except TtlStoreError:
            raw.close()
            raise
        return raw

    def _configure(self, raw: sqlite3.Connection) -> None:
        for setting in (
            "foreign_keys = ON",
            f"synchronous = {self._durability}",
            f"cache_size = -{CACHE_KIB}",
            f"wal_autocheckpoint = {CHECKPOINT_PAGES}",
            f"journal_size_limit = {WAL_LIMIT_BYTES}",
            "cell_size_check = ON",
            "trusted_schema = ON",  # else no index may look into JSON; we add no functions that a file could misuse
        ):
            raw.execute(f"PRAGMA {setting}")

    def _set_up(self, mode: str) -> None:
        """Open the first connection, and give a new file the settings that can only be made before its first table."""
        connection = self._local.connection = self._add_connection(mode)
        if self._path is None:
            self._memory = connection  # the threads that share it come and go
        with connection.lock:
            self._patiently(lambda: self._set_up_store(connection.raw))

    @staticmethod
    def _set_up_store(raw: sqlite3.Connection) -> None:
        # As one change: a file that was left half set up would not be known as ours again.
        with raw:
            raw.execute("BEGIN")  # not IMMEDIATE: that makes the first page, and auto_vacuum must be known before
            if raw.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
                raw.execute("PRAGMA auto_vacuum = INCREMENTAL")
                raw.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        raw.execute("PRAGMA journal_mode = WAL")  # memory has no journal, and stays as it is

    def close(self) -> None:
        with self._guard:
            if self._closed:
                return
            self._closed = True
            connections = [] if self._unusable else list(self._connections)
        for connection in connections:
            with connection.lock:
                connection.raw.close()

    # --- the schema -------------------------------------------------------------------------------------------------

    def revision(self) -> str | None:
        tables = {row[0] for row in self.all(_literal("SELECT name FROM sqlite_master WHERE type = 'table'"))}
        if "alembic_version" not in tables:
            return None
        row = self.one(_literal("SELECT version_num FROM alembic_version"))
        return None if row is None else str(row[0])

    @contextmanager
    def migrating(self) -> Iterator[sqlalchemy.Connection]:
        with self._write_lock:
            yield from self._migrating()

    def _migrating(self) -> Iterator[sqlalchemy.Connection]:
        raw = self._connection().raw if self._path is None else self._open()
        raw.execute(f"PRAGMA busy_timeout = {MIGRATION_PATIENCE_SECONDS * 1000:.0f}")
        # The pool would close the connection when it is disposed of, so it never is: ours is closed below.
        engine = sqlalchemy.create_engine("sqlite://", creator=lambda: raw, poolclass=sqlalchemy.StaticPool)
        # SQLAlchemy leaves BEGIN to the driver, which sends none before DDL: a failing migration would be half there.
        sqlalchemy.event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
        try:
            with engine.begin() as connection:
                yield connection
        except sqlalchemy.exc.DBAPIError as error:
            if isinstance(error.orig, sqlite3.Error):
                raise self._translated(error.orig) from error
            raise
        finally:
            if self._path is not None:
                raw.close()

    # --- the whole store --------------------------------------------------------------------------------------------

    def check(self) -> list[str]:
        problems = [row[0] for row in self.all(_literal("PRAGMA integrity_check")) if row[0] != "ok"]
        orphans = len(self.all(_literal("PRAGMA foreign_key_check")))
        return [*problems, *([f"{orphans} documents belong to no collection"] if orphans else [])]

    def backup(self, path: str, progress: Progress) -> None:
        if self.in_transaction():
            raise StoreBusy("a backup cannot be made inside transaction(): leave its block first")
        here = self._connection()
        if not here.lock.acquire(True, self._busy_timeout):
            raise self._busy()
        try:
            self._copy(here.raw, path, progress)
        finally:
            here.lock.release()

    def _copy(self, raw: sqlite3.Connection, path: str, progress: Progress) -> None:
        try:
            target = sqlite3.connect(path, isolation_level=None)
        except sqlite3.Error as error:
            raise CannotOpen(f"{path} cannot be made: {error}") from error
        with closing(target):
            source = raw if self._path is None else self._open()
            try:
                # In a transaction: a write from elsewhere would start a copy in several steps anew.
                source.execute("BEGIN")
                source.execute("SELECT count(*) FROM sqlite_master").fetchone()
                source.backup(target, pages=BACKUP_PAGES, progress=lambda _, left, total: progress(total - left, total))
                target.execute("PRAGMA journal_mode = WAL")
                problems = [row[0] for row in target.execute("PRAGMA quick_check") if row[0] != "ok"]
            except sqlite3.Error as error:
                raise self._translated(error) from error
            finally:
                if source is raw:
                    source.rollback()
                else:
                    source.close()
        if problems:
            raise StoreCorrupt(f"{self.name} is damaged and was not copied: {problems[0]}")

    # --- housekeeping -----------------------------------------------------------------------------------------------

    @contextmanager
    def housekeeping(self) -> Iterator[None]:
        if self.in_transaction():
            raise StoreBusy("this cannot be done inside transaction(): leave its block first")
        if self._path is None:
            yield
            return
        usual = self._local.connection
        self._local.connection = self._add_connection()
        try:
            raw = self._local.connection.raw
            raw.execute("PRAGMA synchronous = NORMAL")
            raw.execute("PRAGMA wal_autocheckpoint = 0")  # it would come on top of a statement that must be short
            yield
        finally:
            with self._local.connection.lock:
                self._local.connection.raw.close()
            self._local.connection = usual

    @contextmanager
    def turn(self) -> Iterator[bool]:
        if self._path is None:
            yield True
            return
        with turn(f"{self._path}-vacuum") as ours:
            yield ours

    def others_write(self) -> bool:
        connection = self._connection()
        row = self.one(_literal("PRAGMA data_version"))
        version = row[0] if row else None
        changed = version != connection.version
        connection.version = version
        return changed or bool(self._writers)

    def give_back(self, pages: int) -> int | None:
        if not self._write_lock.acquire(False):
            return None
        connection = self._connection()
        try:
            with connection.lock:
                before = self.space().free_pages
                # Not execute(): it takes a single step of a statement without columns, and a step is a page.
                connection.raw.executescript(f"PRAGMA incremental_vacuum({pages})")
                return before - self.space().free_pages
        except sqlite3.Error as error:
            if _is_busy(error):
                return None
            raise self._translated(error) from error
        finally:
            self._write_lock.release()

    def checkpoint(self) -> None:
        self.one(_literal("PRAGMA wal_checkpoint(PASSIVE)"))

    def space(self) -> Space:
        return Space(*(self._pragma(name) for name in ("page_size", "page_count", "freelist_count")))

    def _pragma(self, name: str) -> int:
        row = self.one(_literal(f"PRAGMA {name}"))
        return int(row[0]) if row else 0

    # --- errors -----------------------------------------------------------------------------------------------------

    def _patiently(self, action: Callable[[], T]) -> T:
        """Run until the lock is free, for `busy_timeout` at most.

        SQLite could wait by itself. But it sleeps for up to 0.1 s at a time, not everywhere, and a statement that it
        made wait would still count from the moment when the call began.
        """
        start = time.monotonic()
        pause = SHORTEST_PAUSE_SECONDS
        while True:
            try:
                return action()
            except sqlite3.Error as error:
                waited = time.monotonic() - start
                if not _is_busy(error) or waited + pause > self._busy_timeout:
                    raise self._translated(error) from error
            time.sleep(pause)
            if waited > IMPATIENT_SECONDS:
                pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

    def _busy(self) -> StoreBusy:
        return StoreBusy(f"{self.name} stayed locked for {self._busy_timeout:g} s (busy_timeout); nothing was written")

    def _translated(self, error: sqlite3.Error) -> TtlStoreError:
        """The driver's error as one of ours."""
        code = getattr(error, "sqlite_errorcode", None)
        if code is None:
            return self._translated_by_type(error)
        match code & 0xFF:  # the upper bits only tell more about the same thing
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return self._busy()
            case sqlite3.SQLITE_FULL:
                return StoreFull(f"there is no room left to write to {self.name}; nothing was written")
            case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
                return StoreCorrupt(f"{self.name} is damaged: {error}")
            case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
                return StoreReadOnly(f"{self.name} cannot be written: {error}")
            case sqlite3.SQLITE_CANTOPEN:
                return CannotOpen(f"{self.name} cannot be opened: {error}")
            case sqlite3.SQLITE_TOOBIG:
                return InvalidDocument("the document is larger than SQLite can store")
        if "malformed JSON" in str(error):
            return StoreCorrupt(f"a document in {self.name} is damaged: {error}")
        return StoreFailed(f"{self.name}: {error}")

    def _translated_by_type(self, error: sqlite3.Error) -> TtlStoreError:
        if self._closed:
            return StoreClosed(f"{self.name} is closed")
        if isinstance(error, sqlite3.DataError):
            return InvalidDocument("the document is larger than SQLite can store")
        if "decode to UTF-8" in str(error):
            return StoreCorrupt(f"{self.name} is damaged: {error}")
        return StoreFailed(f"{self.name}: {error}")

    # --- forked children --------------------------------------------------------------------------------------------
    # SQLite keeps its locks on a file by process, in memory that a forked child gets a copy of. A child that opens the
    # file anew still believes to hold locks that only its parent has; once the parent closes the file, its last user
    # takes the log away from under the child, and what the child writes is lost. So no connection may be open at the
    # moment of a fork: the parent's are closed before it and opened again after it.

    def before_fork(self) -> None:
        """Wait for the calls under way, and close every connection that is not in a transaction."""
        self._held = [lock for lock in (self._write_lock, self._guard) if lock.acquire(True, FORK_PATIENCE_SECONDS)]
        self._left_open = len(self._held) < 2  # somebody works on a connection
        self._reopened: list[_Connection] = []
        for connection in self._connections if self._path is not None and not self._closed else ():
            if not connection.lock.acquire(True, FORK_PATIENCE_SECONDS):
                self._left_open = True
                continue
            self._held.append(connection.lock)
            if connection.depth or connection.raw.in_transaction:
                self._left_open = True
            else:
                connection.raw.close()
                self._reopened.append(connection)

    def after_fork_in_parent(self) -> None:
        for connection in self._reopened:
            with suppress(TtlStoreError):  # calls on it will tell
                connection.raw = self._open()
        self._release_held()

    def after_fork_in_child(self) -> None:
        if self._path is None:  # the child's memory is a copy, and so is the store in it
            if self._write_lock not in self._held:  # the copy was made in a transaction of a thread that is not here
                self._write_lock = self._memory.lock = threading.RLock()
                self._memory.depth = 0
                self._memory.raw.rollback()
            self._guard = threading.Lock()
            self._release_held()
            return
        for connection in self._connections:
            if connection not in self._reopened:  # not even to be closed: that would write
                for never_freed in (connection, connection.raw):
                    ctypes.pythonapi.Py_IncRef(ctypes.py_object(never_freed))
        if self._left_open:
            self._unusable = True
            self._local = threading.local()
            self._guard = threading.Lock()
            self._release_held()
        else:
            self._start()

    def _release_held(self) -> None:
        for lock in self._held:
            with suppress(RuntimeError):  # the guard is another in a child
                lock.release()
        self._held = []
        self._reopened = []


def _is_busy(error: sqlite3.Error) -> bool:
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _literal(sql: str) -> Prepared:
    return Prepared(sql, lambda values: values)
