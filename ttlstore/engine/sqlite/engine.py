"""The engine for SQLite: the compiled statements, run on the cursor of each thread's own connection."""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from functools import cache
from typing import Any, TypeVar

import sqlalchemy
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.dialects.sqlite.base import SQLiteCompiler
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

from ttlstore.engine import MAKE_AGAIN, Durability, Engine, Progress, Row, Settings, Space, all_or_none
from ttlstore.engine.json import Json
from ttlstore.engine.sqlite import connections
from ttlstore.engine.sqlite.connections import Connection, Connections
from ttlstore.engine.sqlite.file import APPLICATION_ID, inspect_file
from ttlstore.engine.sqlite.json import SqliteJson
from ttlstore.engine.sqlite.packing import pack
from ttlstore.engine.sqlite.patience import DRIVER_ERRORS, Patience, is_busy
from ttlstore.engine.sqlite.transactions import SqliteTransactions
from ttlstore.engine.sqlite.turn import turn
from ttlstore.errors import (
    CannotOpen,
    StoreBusy,
    StoreFull,
)
from ttlstore.schema import INDEXES_OF_COLLECTIONS, REQUIRED_INDEXES
from ttlstore.statements import Prepared, Statements, Values, preparing_for
from ttlstore.ttl import Clock, moment

T = TypeVar("T")

OLDEST_SQLITE = (3, 38, 0)  # the first whose JSON functions are always there
STREAMED_ROWS = 64  # fetched at a time: that is a tenth faster than one by one, and still little
BACKUP_PAGES = 1024  # copied between two reports: 4 MiB, some milliseconds
NEW_STORE = ("PRAGMA auto_vacuum = INCREMENTAL", f"PRAGMA application_id = {APPLICATION_ID}")  # before the first table
MIGRATION_PATIENCE_SECONDS = 60.0  # whatever an application's patience with a write: another may be migrating


class _Compiler(SQLiteCompiler):
    def get_from_hint_text(self, table: Any, text: Any) -> Any:
        return text  # INDEXED BY, which SQLAlchemy's dialect leaves out


class _Dialect(SQLiteDialect_pysqlite):
    statement_compiler = _Compiler
    supports_statement_cache = True


prepare = preparing_for(_Dialect(paramstyle="qmark"))
json = SqliteJson()


@cache
def _statements() -> Statements:
    return Statements(prepare, insert)


class SqliteEngine(SqliteTransactions):
    """A store in a file, or in memory if there is no path."""

    standby = False

    def __init__(
        self,
        path: str | None,
        clock: Clock,
        durability: Durability,
        busy_timeout: float,
        *,
        create: bool,
        read_only: bool,
    ) -> None:
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            needed = ".".join(map(str, OLDEST_SQLITE))
            raise CannotOpen(f"ttlstore needs SQLite {needed} or later, and this Python has {sqlite3.sqlite_version}")
        self.name = path or ":memory:"
        self.description = f"SQLite {sqlite3.sqlite_version}"
        self.dialect = "sqlite"
        self.script_begins: tuple[str, ...] = NEW_STORE if path is None else ()
        self.statements = _statements()
        self.prepare = prepare
        self.clock = self.statement_clock = clock
        self.json: Json = json
        self._path = None if path is None else os.path.abspath(path)
        self._busy_timeout = busy_timeout
        self._patience = Patience(self.name, self._path, busy_timeout)
        with connections.opening:
            if self._path is not None and not connections.is_open(self._path):
                inspect_file(self._path, create=create)
            self._connections = Connections(self.name, self._path, durability, self._patience, read_only=read_only)
            try:
                if read_only:
                    self._connections.mine()
                else:
                    self._set_up("rwc" if create else "rw")
            except BaseException:
                self._connections.close()
                raise

    def is_same(self, other: Engine) -> bool:
        if not isinstance(other, SqliteEngine) or self._path is None or other._path is None:
            return other is self
        return os.path.samefile(self._path, other._path)

    # --- the point operations ---------------------------------------------------------------------------------------

    def one(self, statement: Prepared, values: Values = ()) -> Row | None:
        connection = self._connections.mine()
        arranged = statement.arrange(values)
        lock = connection.lock
        if not lock.acquire(False) and not lock.acquire(True, self._busy_timeout):
            raise self._patience.exhausted()
        try:
            cursors = connection.cursors
            try:
                cursor = cursors.pop()
            except IndexError:
                cursor = connection.raw.cursor()
            row: Row | None = cursor.execute(statement.sql, arranged).fetchone()
            cursors.append(cursor)
        except DRIVER_ERRORS as error:
            if not is_busy(error):
                raise self._patience.translated(error) from error
            rows = self._fetch(connection, statement.sql, arranged)
            row = rows[0] if rows else None
        finally:
            lock.release()
        return row

    def all(self, statement: Prepared, values: Values = (), planned_by: Settings | None = None) -> list[Row]:
        connection = self._connections.mine()
        arranged = statement.arrange(values)
        if not connection.lock.acquire(True, self._busy_timeout):
            raise self._patience.exhausted()
        try:
            return self._fetch(connection, statement.sql, arranged)
        finally:
            connection.lock.release()

    def _fetch(self, connection: Connection, sql: str, arranged: Values) -> list[Row]:
        # Not inside one(): what a function shares with a lambda is slower to get at, whether the lambda is made or not.
        return self._patience.run(lambda: connection.raw.execute(sql, arranged).fetchall())

    def settings(self, collection: int, *, anew: bool = False) -> Settings | None:
        return Settings.of(self.one(self.statements.collection, (collection,)))

    def stream(
        self,
        statement: Prepared,
        values: Values = (),
        planned_by: Settings | None = None,
        unordered: Prepared | None = None,
    ) -> Iterator[Row]:
        if self._path is None or self.in_transaction():  # whose contents another connection does not see
            yield from self.all(statement, values)
            return
        with self._connections.spare() as raw:
            cursor = self._patience.run(lambda: raw.execute(statement.sql, statement.arrange(values)))
            try:
                while rows := cursor.fetchmany(STREAMED_ROWS):
                    yield from rows
            except DRIVER_ERRORS as error:
                raise self._patience.translated(error) from error
            finally:
                cursor.close()

    def steps(self, statement: Prepared, values: Values = ()) -> list[str]:
        explained = Prepared(f"EXPLAIN QUERY PLAN {statement.sql}", statement.arrange)
        return [row[3] for row in self.all(explained, values)]

    def write(self, statement: Prepared, values: Callable[[int, int], Values]) -> tuple[int, int]:
        now, ts = moment(self.clock)
        changed = self.attempt(statement, values(now, ts))
        if changed is None:
            with self.writing():
                now, ts = moment(self.clock)
                changed = self.change(statement, values(now, ts))
        return changed, ts

    def attempt(self, statement: Prepared, values: Values) -> int | None:
        connection = self._connections.mine()
        write_lock = self._connections.write_lock
        nested = connection.depth > 0 and connection.writer == threading.get_ident()
        try:  # from here on a signal's handler may raise anywhere: see writing()
            if not nested and not write_lock.acquire(False):
                return None
            with connection.lock:
                if connection.depth:
                    self._require_transaction(connection)
                elif connection.raw.in_transaction:
                    self._roll_back(connection, "ROLLBACK")  # or the write would be part of what a signal left behind
                return connection.raw.execute(statement.sql, statement.arrange(values)).rowcount
        except DRIVER_ERRORS as error:
            if is_busy(error):
                return None
            raise self._patience.translated(error) from error
        finally:
            if not nested:
                try:  # noqa: SIM105  # suppress() is a call
                    write_lock.release()
                except RuntimeError:
                    pass  # it was not acquired

    def remove(self, statement: Prepared, values: Values) -> list[Row] | None:
        arranged = statement.arrange(values)
        return self._unless_busy(lambda raw: raw.execute(statement.sql, arranged).fetchall())

    def change(self, statement: Prepared, values: Values) -> int:
        return self.change_many(statement, [values])

    def write_all(
        self, statement: Prepared, count: int, rows: Callable[[], Iterator[Values]], meanwhile: Callable[[], None]
    ) -> bool:
        return all_or_none(self, statement, count, rows)

    def change_many(self, statement: Prepared, rows: list[Values], meanwhile: Callable[[], None] | None = None) -> int:
        connection = self._connections.mine()
        try:
            with connection.lock:
                self._require_transaction(connection)
                return connection.raw.executemany(statement.sql, map(statement.arrange, rows)).rowcount
        except DRIVER_ERRORS as error:
            raise self._patience.translated(error) from error

    # --- indexes ----------------------------------------------------------------------------------------------------

    def all_indexes(self) -> dict[str, bool | None]:
        names = _literal("SELECT name FROM sqlite_master WHERE type = 'index' AND name GLOB ?")
        return dict.fromkeys((name for (name,) in self.all(names, (f"{INDEXES_OF_COLLECTIONS}*",))), True)

    @contextmanager
    def defining(self) -> Iterator[None]:
        yield  # a file has one writer

    def define(self, statement: str) -> None:
        connection = self._connections.mine()
        with connection.lock:
            self._require_transaction(connection)
            self._run(connection, statement)

    # --- the file ----------------------------------------------------------------------------------------------------

    def _set_up(self, mode: str) -> None:
        """Open the first connection, and give a new file the settings that can only be made before its first table."""
        connection = self._connections.mine(mode)
        with connection.lock:
            self._patience.run(lambda: self._set_up_store(connection.raw))

    @staticmethod
    def _set_up_store(raw: sqlite3.Connection) -> None:
        # As one change: a file that was left half set up would not be known as ours again.
        with raw:
            raw.execute("BEGIN")  # not IMMEDIATE: that makes the first page, and auto_vacuum must be known before
            if raw.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
                for setting in NEW_STORE:
                    raw.execute(setting)
        raw.execute("PRAGMA journal_mode = WAL")  # memory has no journal, and stays as it is

    def close(self) -> None:
        self._connections.close()

    # --- the schema -------------------------------------------------------------------------------------------------

    def revision(self) -> str | None:
        tables = {row[0] for row in self.all(_literal("SELECT name FROM sqlite_master WHERE type = 'table'"))}
        if "alembic_version" not in tables:
            return None
        row = self.one(_literal("SELECT version_num FROM alembic_version"))
        return None if row is None else str(row[0])

    @contextmanager
    def migrating(self) -> Iterator[sqlalchemy.Connection]:
        with self._connections.write_lock:
            yield from self._migrating()

    def _migrating(self) -> Iterator[sqlalchemy.Connection]:
        raw = self._connections.mine().raw if self._path is None else self._connections.open()
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
                raise self._patience.translated(error.orig) from error
            raise
        finally:
            if self._path is not None:
                raw.close()

    # --- the whole store --------------------------------------------------------------------------------------------

    def check(self) -> list[str]:
        problems = [row[0] for row in self.all(_literal("PRAGMA integrity_check")) if row[0] != "ok"]
        orphans = len(self.all(_literal("PRAGMA foreign_key_check")))
        there = {row[0] for row in self.all(_literal("SELECT name FROM sqlite_master WHERE type = 'index'"))}
        missing = [index.name for index in REQUIRED_INDEXES if index.name not in there]
        return [
            *problems,
            *([f"{orphans} documents belong to no collection"] if orphans else []),
            *(f"there is no index {name}: {MAKE_AGAIN}" for name in missing),
        ]

    def backup(self, path: str, progress: Progress) -> None:
        here = self._connections.mine()
        if not here.lock.acquire(True, self._busy_timeout):
            raise self._patience.exhausted()
        try:
            self._copy(here.raw, path, progress)
        finally:
            here.lock.release()

    def _copy(self, raw: sqlite3.Connection, path: str, progress: Progress) -> None:
        try:
            target = sqlite3.connect(path, isolation_level=None)
        except DRIVER_ERRORS as error:
            raise CannotOpen(f"{path} cannot be made: {error}") from error
        with closing(target):
            source = raw if self._path is None else self._connections.open()
            try:
                # In a transaction: a write from elsewhere would start a copy in several steps anew.
                source.execute("BEGIN")
                source.execute("SELECT count(*) FROM sqlite_master").fetchone()
                source.backup(target, pages=BACKUP_PAGES, progress=lambda _, left, total: progress(total - left, total))
                target.execute("PRAGMA journal_mode = WAL")
            except DRIVER_ERRORS as error:
                told = self._patience.translated(error)
                if isinstance(told, StoreFull):
                    told = StoreFull(f"there is no room left for {path}; nothing was written")
                raise told from error
            finally:
                if source is raw:
                    source.rollback()
                else:
                    source.close()

    # --- housekeeping -----------------------------------------------------------------------------------------------

    @contextmanager
    def housekeeping(self) -> Iterator[None]:
        if self.in_transaction():
            raise StoreBusy("this cannot be done inside transaction(): leave its block first")
        if self._path is None:
            yield
            return
        with self._connections.another() as raw:
            raw.execute("PRAGMA synchronous = NORMAL")
            raw.execute("PRAGMA temp_store = MEMORY")
            raw.execute("PRAGMA wal_autocheckpoint = 0")  # it would come on top of a statement that must be short
            yield

    @contextmanager
    def turn(self) -> Iterator[bool]:
        if self._path is None:
            yield True
            return
        with turn(f"{self._path}-vacuum") as ours:
            yield ours

    def in_line(self, seconds: float) -> AbstractContextManager[bool]:
        return self._connections.in_line(seconds)

    def others_write(self) -> bool:
        connection = self._connections.mine()
        row = self.one(_literal("PRAGMA data_version"))
        version = row[0] if row else None
        changed = version != connection.version
        connection.version = version
        return changed or bool(self._connections.writers)

    def pack(self, first: int, last: int) -> int | None:
        return 0 if self._path is None else self._unless_busy(lambda raw: pack(raw, first, last))

    def give_back(self, pages: int) -> int | None:
        def shrink(raw: sqlite3.Connection) -> int:
            before = self.space().free_pages
            # Not execute(): it takes a single step of a statement without columns, and a step is a page.
            raw.executescript(f"PRAGMA incremental_vacuum({pages})")
            return before - self.space().free_pages

        return self._unless_busy(shrink)

    def _unless_busy(self, action: Callable[[sqlite3.Connection], T]) -> T | None:
        if not self._connections.write_lock.acquire(False):
            return None
        connection = self._connections.mine()
        try:
            with connection.lock:
                return action(connection.raw)
        except DRIVER_ERRORS as error:
            if is_busy(error):
                return None
            raise self._patience.translated(error) from error
        finally:
            self._connections.write_lock.release()

    def checkpoint(self) -> None:
        self.one(_literal("PRAGMA wal_checkpoint(PASSIVE)"))

    def space(self) -> Space:
        return Space(*(self._pragma(name) for name in ("page_size", "page_count", "freelist_count")))

    def _pragma(self, name: str) -> int:
        row = self.one(_literal(f"PRAGMA {name}"))
        return int(row[0]) if row else 0


def _literal(sql: str) -> Prepared:
    return Prepared(sql, lambda values: values)
