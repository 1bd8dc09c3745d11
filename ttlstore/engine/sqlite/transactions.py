"""Transactions on SQLite: one writer at a time, and what a signal's handler raises leaves nothing behind."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ttlstore.engine.sqlite.connections import Connection, Connections
from ttlstore.engine.sqlite.patience import DRIVER_ERRORS, Patience
from ttlstore.errors import StoreFailed


class SqliteTransactions:
    """What of the engine begins and ends them."""

    _connections: Connections
    _patience: Patience
    _busy_timeout: float

    @contextmanager
    def reading(self) -> Iterator[None]:
        connection = self._connections.mine()
        if not connection.lock.acquire(True, self._busy_timeout):
            raise self._patience.exhausted()
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
        connection = self._connections.mine()
        write_lock = self._connections.write_lock
        me = threading.get_ident()
        nested = connection.depth > 0 and connection.writer == me
        entered = False
        # A signal's handler may raise anywhere in here, and whatever was taken by then must be given back. So what
        # takes something stands inside the `try` whose end gives it back, and there nothing is called before that.
        try:
            if not nested:
                self._connections.writers.add(me)
                if not write_lock.acquire(True, self._busy_timeout):
                    raise self._patience.exhausted()
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
                    write_lock.release()
                except RuntimeError:
                    pass  # it was not acquired
                self._connections.writers.discard(me)

    def _boundaries(self, connection: Connection) -> tuple[str, str, str]:
        """What begins, ends and undoes a transaction, or one inside another."""
        if connection.depth:
            self._require_transaction(connection)
            name = f"nested_{connection.depth}"
            return f"SAVEPOINT {name}", f"RELEASE {name}", f"ROLLBACK TO {name}; RELEASE {name}"
        self._roll_back(connection, "ROLLBACK")  # what a signal left behind, if it did
        return "BEGIN IMMEDIATE", "COMMIT", "ROLLBACK"

    def in_transaction(self) -> bool:
        connection = self._connections.mine()
        self._connections.require_open()
        return connection.depth > 0 and connection.writer == threading.get_ident()

    def after_transaction(self, action: Callable[[], None]) -> None:
        self._connections.mine().afterwards.add(action)

    def _run(self, connection: Connection, sql: str) -> None:
        with connection.lock:
            self._patience.run(lambda: connection.raw.execute(sql))

    def _roll_back(self, connection: Connection, undo: str) -> None:
        if not self._connections.usable():
            return
        with connection.lock:
            try:
                if connection.raw.in_transaction:  # some errors end the transaction by themselves
                    for statement in undo.split("; "):
                        connection.raw.execute(statement)
            except sqlite3.ProgrammingError:
                pass  # a closed connection has none
            except DRIVER_ERRORS as error:
                if "no such savepoint" not in str(error):  # a signal came when it was released
                    raise self._patience.translated(error) from error

    def _require_transaction(self, connection: Connection) -> None:
        """A full disk, for one, ends the whole transaction: what followed would be committed on its own."""
        self._connections.require_open()
        if not connection.raw.in_transaction:
            raise StoreFailed("the transaction was rolled back after an error; leave its block and start again")
