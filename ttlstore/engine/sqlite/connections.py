"""The connections to one SQLite store: one for each thread, and none open at the moment of a fork.

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
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path

from ttlstore import forks
from ttlstore.engine import Durability
from ttlstore.engine.sqlite.file import Identity, identity
from ttlstore.engine.sqlite.patience import DRIVER_ERRORS, Patience
from ttlstore.errors import StoreBusy, StoreClosed, StoreFailed, TtlStoreError

CACHE_KIB = 16_384  # of pages for each connection; SQLite's own 2 MiB are little for an index of a million documents
# Beyond the cache a read takes up to two pages from the system. Not mmap_size, which would spare their copies, a fifth
# of a read among a million documents: where the disk fails or somebody cuts the file off, SIGBUS would end the process.
WAL_LIMIT_BYTES = 16 * 1024 * 1024  # what a bulk load leaves of its write-ahead log
CHECKPOINT_PAGES = 4000  # of the log, before it is folded into the file; by itself SQLite waits for the disk more often
STATEMENT_CACHE = 256  # compiled statements a connection keeps: all of ours and many queries
MAX_SPARES = 4  # connections kept open for the next who reads
LOOK_SECONDS = 1.0  # within which it is noticed that the file was taken away


# Who closes a file that SQLite has open too, in whatever way it was opened, drops the locks that SQLite holds on it for
# this process: POSIX wants it so. Another process would then take itself for the last one, and take the log away. So a
# file that is open is not looked into, and only one at a time is about to be opened.
opening = threading.RLock()


def _renew_opening() -> None:
    global opening
    opening = threading.RLock()  # the thread that held it is not in the child


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_opening)


def is_open(path: str) -> bool:
    """Whether this process has this store open already."""
    file = identity(path)
    return file is not None and any(
        isinstance(each, Connections) and each.has_open(file) for each in list(forks.engines)
    )


class Connection:
    """A connection of the driver, the lock that guards it, and how deep in transactions it is."""

    __slots__ = (
        *("__weakref__", "_closing", "afterwards", "cursors", "depth", "lock", "log", "look_at", "raw", "version"),
        "writer",
    )

    def __init__(self, raw: sqlite3.Connection, lock: threading.RLock, closing: threading.RLock) -> None:
        self.renew(raw)
        self.lock = lock
        self._closing = closing
        self.depth = 0
        self.afterwards: set[Callable[[], None]] = set()  # what is done after the transaction
        self.version: int | None = None  # of the data, when it was last asked for
        self.look_at = 0.0  # when it is time to see whether the files are still there, by time.monotonic()
        self.writer = 0  # the thread that is in the transaction: others may share the connection

    def renew(self, raw: sqlite3.Connection) -> None:
        """Go on with this one."""
        self.raw = raw
        # For point operations, not to make one for each. A cursor that is in use is not in here: a signal's handler
        # that reads in the middle of a read gets another. It comes back after all went well, with no row left.
        self.cursors: list[sqlite3.Cursor] = []
        self.log: Identity | None = None  # the write-ahead log, as it was at the first look

    def __del__(self) -> None:
        """Its thread has ended. That is no reason to wait for ever, where another has ended in the middle of this."""
        taken = self._closing.acquire(True, forks.PATIENCE_SECONDS)
        self.raw.close()
        if taken:
            self._closing.release()


class Connections:
    """All of one store."""

    def __init__(
        self, name: str, path: str | None, durability: Durability, patience: Patience, *, read_only: bool
    ) -> None:
        """Without a path the store is in memory."""
        self._name = name
        self._path = path
        self._durability = durability
        self._patience = patience
        self._read_only = read_only
        self._memory: Connection | None = None  # the one of a store in memory: the threads that share it come and go
        self._file: Identity | None = None  # known from the first connection on
        self._closed = False
        self._gone = False  # closed, and the last connection too
        self._unusable = False
        self._start()
        forks.engines.add(self)

    def _start(self) -> None:
        # Threads of this process queue here for the write lock: SQLite alone would have them sleep and ask again.
        self.write_lock = threading.RLock()
        self.writers: set[int] = set()  # the threads that write or wait to
        self._local = threading.local()
        self._all: weakref.WeakSet[Connection] = weakref.WeakSet()
        self._guard = threading.Lock()  # of the two above
        self._closing = threading.RLock()  # held while the connection of a thread that has ended is closed
        self._spares: list[sqlite3.Connection] = []  # opening one takes longer than a short query
        self._lent: list[sqlite3.Connection] = []  # those of them that are in use

    def mine(self, mode: str = "rw") -> Connection:
        """This thread's, opened when it is first asked for."""
        try:
            connection: Connection = self._local.connection
        except AttributeError:
            connection = self._local.connection = self._add(mode)
        if time.monotonic() >= connection.look_at:
            self._look_at_the_files(connection)
        return connection

    def _look_at_the_files(self, connection: Connection) -> None:
        """See that they are still the ones that are open. Raises StoreFailed.

        SQLite would go on with files that have no name any more, and what is written there is lost with the process; or
        it would meet a log that belongs to another file.
        """
        if self._path is None:
            connection.look_at = inf
            return
        file, log = identity(self._path), identity(f"{self._path}-wal")
        if connection.log is None:
            connection.log = log
        if file != self._file or log != connection.log:
            raise self._taken_away()
        connection.look_at = time.monotonic() + LOOK_SECONDS

    def _taken_away(self) -> StoreFailed:
        return StoreFailed(
            f"{self._name} or its log was moved, deleted or replaced while it was open: close the store, see that the "
            "right files are there, and open it again"
        )

    @contextmanager
    def another(self) -> Iterator[sqlite3.Connection]:
        """Inside, this thread has another connection than usual, of a file."""
        usual = self.mine()
        connection = self._add()
        try:
            self._local.connection = connection
            yield connection.raw
        finally:
            self._local.connection = usual
            with connection.lock:
                connection.raw.close()
            with self._guard:
                self._all.discard(connection)  # a traceback may keep it

    @contextmanager
    def in_line(self, seconds: float) -> Iterator[bool]:
        """Inside, this thread is in a transaction that writes, if that could be begun within the time."""
        connection = self.mine()
        raw, patience = connection.raw, Patience(self._name, self._path, seconds)
        try:  # a signal's handler may raise anywhere: see SqliteEngine.writing()
            if not self.write_lock.acquire(True, seconds):
                yield False
                return
            with connection.lock:
                try:
                    patience.run(lambda: raw.execute("BEGIN IMMEDIATE"))
                except StoreBusy:  # it is another process that has it
                    yield False
                    return
                try:
                    yield True
                    patience.run(lambda: raw.execute("COMMIT"))
                finally:
                    if raw.in_transaction:
                        raw.execute("ROLLBACK")
        finally:
            with suppress(RuntimeError):  # it was not acquired
                self.write_lock.release()

    def _add(self, mode: str = "rw") -> Connection:
        with self._guard:
            self.require_open()
            if self._memory is not None:
                return self._memory
            lock = self.write_lock if self._path is None else threading.RLock()
            connection = Connection(self.open(mode), lock, self._closing)
            self._all.add(connection)
            if self._path is None:
                self._memory = connection
        return connection

    @contextmanager
    def spare(self) -> Iterator[sqlite3.Connection]:
        """A connection to a file for somebody who only reads, of those that were used before if there is one."""
        # Without a lock: a reader that is forgotten is ended by the garbage collector, at any time and in any thread.
        self.require_open()
        spares = self._spares
        try:
            raw = spares.pop()
        except IndexError:
            raw = self.open()
        lent = self._lent
        lent.append(raw)
        try:
            yield raw
        finally:
            if self._unusable:
                pass  # a parent reads from it
            elif len(spares) < MAX_SPARES and spares is self._spares:
                spares.append(raw)
            else:
                raw.close()
            lent.remove(raw)
            if self._closed and not self._unusable:
                self._close_spares()

    def _close_spares(self) -> None:
        while self._spares:
            with suppress(IndexError):  # another was faster
                self._spares.pop().close()

    def open(self, mode: str = "rw") -> sqlite3.Connection:
        """A connection that belongs to no thread: whoever asked closes it."""
        # Not "rwc" once the store is there: a file that was moved away must not come back empty.
        # And not another that is in its place: merely opening that would fold the old one's log into it.
        if self._file is not None and identity(self._path or "") != self._file:
            raise self._taken_away()
        address = ":memory:" if self._path is None else f"{Path(self._path).as_uri()}?mode={mode}"
        try:
            raw = sqlite3.connect(
                address,
                uri=True,
                timeout=0.0,  # waiting is up to our patience
                isolation_level=None,
                check_same_thread=False,
                cached_statements=STATEMENT_CACHE,
            )
        except DRIVER_ERRORS as error:
            raise self._patience.translated(error) from error
        try:
            # Patiently: even these look into the file, and another process that closes it locks it for a moment.
            self._patience.run(lambda: self._configure(raw))
        except BaseException:
            raw.close()
            raise
        if self._path is not None:
            self._file = identity(self._path)
        return raw

    def _configure(self, raw: sqlite3.Connection) -> None:
        for setting in (
            "foreign_keys = ON",
            f"synchronous = {self._durability}",
            f"cache_size = -{CACHE_KIB}",
            f"wal_autocheckpoint = {CHECKPOINT_PAGES}",
            f"journal_size_limit = {WAL_LIMIT_BYTES}",
            "cell_size_check = ON",
            # Not a connection that cannot write: such a one has no part in the locks that keep what it reads whole.
            f"query_only = {'ON' if self._read_only else 'OFF'}",
            "trusted_schema = ON",  # else no index may look into JSON; we add no functions that a file could misuse
        ):
            raw.execute(f"PRAGMA {setting}")

    def require_open(self) -> None:
        """Raises StoreClosed, or StoreFailed in a child that was forked at a bad moment."""
        if self._closed:
            raise StoreClosed(f"{self._name} is closed")
        if self._unusable:
            raise StoreFailed(
                f"{self._name} cannot be used in this process: it was forked inside a transaction of its parent, or "
                "while its parent read from a query or a snapshot"
            )

    def has_open(self, file: Identity) -> bool:
        """Also a store that was closed, as long as somebody who reads a stream of it has not finished."""
        return file == self._file and (not self._gone or bool(self._lent or self._spares))

    def usable(self) -> bool:
        """Whether this process may touch its connections: not if it was forked inside a transaction."""
        return not self._unusable

    def close(self) -> None:
        """Wait for the calls under way, and close all."""
        with self._guard:
            if self._closed:
                return
            self._closed = True
            connections = [] if self._unusable else list(self._all)
        for connection in connections:
            with connection.lock:
                connection.raw.close()
        self._close_spares()
        self._gone = True

    # --- forked children --------------------------------------------------------------------------------------------
    # SQLite keeps its locks on a file by process, in memory that a forked child gets a copy of. A child that opens the
    # file anew still believes to hold locks that only its parent has; once the parent closes the file, its last user
    # takes the log away from under the child, and what the child writes is lost. So no connection may be open at the
    # moment of a fork: the parent's are closed before it and opened again after it.

    def before_fork(self) -> None:
        """Wait for the calls under way, and close every connection that is not in a transaction."""
        self._held = [lock for lock in (self.write_lock, self._guard) if lock.acquire(True, forks.PATIENCE_SECONDS)]
        self._left_open = len(self._held) < 2 or bool(self._lent)  # somebody works on a connection
        self._reopened: list[Connection] = []
        self._close_spares()
        for connection in self._all if self._path is not None and not self._closed else ():
            if not connection.lock.acquire(True, forks.PATIENCE_SECONDS):
                self._left_open = True
                continue
            self._held.append(connection.lock)
            try:
                in_transaction = connection.depth > 0 or connection.raw.in_transaction
            except sqlite3.ProgrammingError:  # closed, with the thread that had it
                continue
            if in_transaction:
                self._left_open = True
            else:
                connection.raw.close()
                self._reopened.append(connection)
        # Last, because who closes one may hold the lock of another. A connection that is half closed is open.
        if self._closing.acquire(True, forks.PATIENCE_SECONDS):
            self._held.append(self._closing)
        else:
            self._left_open = True

    def after_fork_in_parent(self) -> None:
        for connection in self._reopened:
            with suppress(TtlStoreError):  # calls on it will tell
                connection.renew(self.open())
        self._release_held()

    def after_fork_in_child(self) -> None:
        if self._memory is not None:  # the child's memory is a copy, and so is the store in it
            if self.write_lock not in self._held:  # the copy was made in a transaction of a thread that is not here
                self.write_lock = self._memory.lock = threading.RLock()
                self._memory.depth = 0
                self._memory.raw.rollback()
            self._guard = threading.Lock()
            self._release_held()
            return
        for connection in self._all:
            if connection not in self._reopened:  # not even to be closed: that would write
                connection.afterwards.clear()
                for never_freed in (connection, connection.raw):
                    ctypes.pythonapi.Py_IncRef(ctypes.py_object(never_freed))
        for raw in self._lent:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(raw))
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
