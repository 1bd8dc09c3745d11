"""Statements and transactions on PostgreSQL: by which connection they go, and what is done when they fail."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from ttlstore.engine import Row
from ttlstore.engine.postgres.connections import Connection, Connections
from ttlstore.engine.postgres.errors import helps_again, lost_inside, rolled_back, translated
from ttlstore.errors import StoreBusy, TtlStoreError
from ttlstore.statements import Prepared, Values

T = TypeVar("T")


class PostgresTransactions:
    """What of the engine runs statements, and begins and ends transactions."""

    name: str
    _connections: Connections
    _busy_timeout: float

    # --- running statements -----------------------------------------------------------------------------------------

    def _run(self, connection: Connection, sql: str, values: Values | None) -> psycopg.Cursor[Row]:
        try:
            cursor = connection.cursor.execute(sql, values)
        except psycopg.Error as error:
            raise self._translated(error, connection) from error
        finally:
            connection.used = True
        return cursor

    def _run_each(self, connection: Connection, statement: Prepared, rows: list[Values]) -> int:
        try:
            connection.cursor.executemany(statement.sql, map(statement.arrange, rows))
        except psycopg.Error as error:
            raise self._translated(error, connection) from error
        return connection.cursor.rowcount

    def _again(self, action: Callable[[], T], before: Callable[[], None] = lambda: None) -> T:
        """Run a whole transaction, again after a deadlock or the like, for `busy_timeout` at most."""
        start = time.monotonic()
        while True:
            try:
                return action()
            except StoreBusy as error:
                if not helps_again(error.__cause__) or time.monotonic() - start > self._busy_timeout:
                    raise
            before()

    @contextmanager
    def _some(self) -> Iterator[Connection]:
        """The connection of this thread's transaction, or any."""
        connection = self._connections.mine()
        if connection is not None:
            yield connection
            return
        connection = self._connections.take()
        try:
            yield connection
        finally:
            self._connections.give(connection)

    def _translated(self, error: psycopg.Error, connection: Connection) -> TtlStoreError:
        return translated(error, self.name, self._busy_timeout, lost=connection.raw.broken)

    # --- transactions -----------------------------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[None]:
        connection = self._connections.mine()
        if connection is not None and connection.raw.pgconn.transaction_status != TransactionStatus.IDLE:
            yield
            return
        with self._connections.pinned() as connection:
            self._run(connection, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", None)
            try:
                yield
            finally:
                # Not ROLLBACK, after which the driver forgets its prepared statements. Nothing was written.
                self._roll_back(connection, "COMMIT")

    @contextmanager
    def writing(self) -> Iterator[None]:
        connection = self._connections.mine()
        if connection is None:
            with self._connections.pinned() as connection:
                yield from self._transaction(connection)
        else:
            yield from self._transaction(connection)

    def _transaction(self, connection: Connection) -> Iterator[None]:
        begin, commit, undo = "BEGIN", "COMMIT", ["ROLLBACK"]
        if connection.depth:
            name = f"nested_{connection.depth}"
            begin, commit, undo = f"SAVEPOINT {name}", f"RELEASE {name}", [f"ROLLBACK TO {name}", f"RELEASE {name}"]
        self._run(connection, begin, None)
        if not connection.depth:
            connection.used = False
        connection.depth += 1
        try:
            yield
            self._in_transaction()
            self._run(connection, commit, None)
        except BaseException:
            self._roll_back(connection, *undo)
            raise
        finally:
            connection.depth -= 1
            while connection.afterwards and not connection.depth:
                connection.afterwards.pop()()

    def _in_transaction(self) -> Connection:
        """The connection of this thread's transaction, if that can go on."""
        connection = self._connections.mine()
        if connection is not None and connection.raw.broken:  # noticed by a rollback to a savepoint
            raise lost_inside(self.name)
        if connection is None or connection.raw.pgconn.transaction_status != TransactionStatus.INTRANS:
            raise rolled_back()
        return connection

    def _roll_back(self, connection: Connection, *undo: str) -> None:
        if connection.process != os.getpid():  # forked inside: it is for the parent to say how this ends
            return
        with suppress(psycopg.Error):  # a lost connection has lost its transaction too
            for statement in undo:
                connection.cursor.execute(statement)

    def in_transaction(self) -> bool:
        connection = self._connections.mine()
        return connection is not None and connection.depth > 0

    def after_transaction(self, action: Callable[[], None]) -> None:
        connection = self._connections.mine()
        if connection is not None:
            connection.afterwards.add(action)
