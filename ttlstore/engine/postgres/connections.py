"""Connections to PostgreSQL: a few that all threads take in turn, and one of its own for a thread in a transaction.

Not one for each thread: a server with a hundred threads would hold a hundred connections, and most of them idle. Not
psycopg_pool, though it is as fast: its threads do not survive a fork, and it hands out a connection that was lost while
nobody used it, or asks the server each time whether it is there.
"""

import os
import select
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from time import monotonic

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Conninfo, TransactionStatus

from ttlstore import forks
from ttlstore.engine import Durability
from ttlstore.engine.postgres import values
from ttlstore.engine.postgres.address import Address
from ttlstore.engine.postgres.errors import cannot_connect
from ttlstore.engine.postgres.slots import Slot, Slots
from ttlstore.errors import CannotOpen, StoreBusy, StoreClosed, StoreFailed

MAX_CONNECTIONS = 16  # of one open store: a server allows a hundred, unless it is told otherwise
# What libpq is told, unless the URL or its environment says otherwise. By the defaults of operating systems a server
# that is gone without a word, as behind a firewall that forgot the connection, is waited for for hours.
DEFAULTS = {
    "connect_timeout": "10",  # seconds, as the next two
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
}
CANCEL_SECONDS = 5.0  # that a server may take to give up a statement
SILENT_SECONDS = 60  # after which what was sent is given up; not less than a server may stop reading for a lock
OLDEST_POSTGRES = 14
LOCKS = 0x74746C73  # "ttls", the first half of the numbers of our advisory locks; the second tells what for
_UNLIMITED = (
    "SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN "  # the last is not known before PostgreSQL 17
    "('statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')"
)
PREPARED_AFTER = 1  # runs of a statement on a connection: what is run once is not worth it


class Connection:
    """A connection of the driver, and where it is in transactions."""

    __slots__ = (
        "__weakref__",
        "_said",
        "afterwards",
        "cursor",
        "depth",
        "own_writes",
        "process",
        "raw",
        "slot",
        "transactions",
        "used",
    )

    def __init__(self, raw: psycopg.Connection) -> None:
        self.raw = raw
        self.cursor = raw.cursor(binary=True)
        self.depth = 0
        self.used = False  # since the transaction began
        self.afterwards: set[Callable[[], None]] = set()  # what is done after the transaction
        self.process = os.getpid()
        self.transactions = 0  # the server's count of them, when it was last asked for
        self.own_writes = 0  # since then
        self.slot: Slot | None = None  # while a thread has it
        self._said = _poll(raw.pgconn.socket, to_write=False)

    def __del__(self) -> None:
        with suppress(AttributeError):  # it was not even there yet
            self.raw.close()  # if it was lost, by an exception that a signal's handler raised

    def in_order(self) -> bool:
        """Whether another can use it: nothing is under way."""
        return not self.raw.closed and self.raw.pgconn.transaction_status == TransactionStatus.IDLE

    def alive(self) -> bool:
        """Whether the server is still there. Asks nobody: a server that closed a connection has said so by now."""
        if self._said is not None and not self._said.poll(0):  # as nearly always: without another call
            return True
        if not self.await_server(0):
            return True
        try:
            self.raw.pgconn.consume_input()  # perhaps only a notice
        except psycopg.Error:
            return False
        return not self.await_server(0)

    def await_server(self, seconds: float | None = None, *, to_write: bool = False) -> bool:
        """Wait until the server has said something, or, `to_write`, until it takes more; tells whether it does."""
        socket = self.raw.pgconn.socket
        poll = _poll(socket, to_write=True) if to_write else self._said
        if poll is None:
            return any(select.select([socket], [socket] if to_write else [], [], seconds))
        return bool(poll.poll(None if seconds is None else seconds * 1000))

    def cancel(self) -> None:
        """Have the server give up what is under way, and close: what an exception ended is not done afterwards."""
        if self.raw.closed or self.raw.pgconn.transaction_status != TransactionStatus.ACTIVE:
            return
        with suppress(psycopg.Error):
            self.raw.cancel_safe(timeout=CANCEL_SECONDS)
            until = monotonic() + CANCEL_SECONDS
            while monotonic() < until and self.raw.pgconn.transaction_status == TransactionStatus.ACTIVE:
                if self.raw.pgconn.is_busy():
                    self.await_server(CANCEL_SECONDS)
                    self.raw.pgconn.consume_input()
                else:
                    self.raw.pgconn.get_result()
        self.raw.close()

    def abandon(self) -> None:
        """In a forked child: leave the connection to the parent, without a word to the server."""
        with suppress(OSError, psycopg.Error):
            # The child's end of it goes: else the server would not notice the end of the parent. What is said in
            # parting is said to nobody. And it must be gone, or a stream that is half read would be cancelled.
            nobody = os.open(os.devnull, os.O_RDWR)
            os.dup2(nobody, self.raw.pgconn.socket)
            os.close(nobody)
            self.raw.pgconn.finish()


def _poll(socket: int, *, to_write: bool) -> "select.poll | None":
    """What waits for the socket; None on Windows. Not select(), which knows no more than a thousand open files."""
    if not hasattr(select, "poll"):
        return None
    poll = select.poll()
    poll.register(socket, select.POLLIN | select.POLLOUT if to_write else select.POLLIN)
    return poll


class Connections:
    """All connections of one open store."""

    def __init__(self, address: Address, durability: Durability, busy_timeout: float, *, read_only: bool) -> None:
        self._address = address
        self._busy_timeout = busy_timeout
        self._settings = {
            "search_path": address.schema,
            "lock_timeout": f"{milliseconds(busy_timeout)}ms",
            "synchronous_commit": "on" if durability == "full" else "off",
            "default_transaction_isolation": "read committed",
            "default_transaction_read_only": "on" if read_only else "off",
            # What our statements mean must not depend on what was set for the database or the role.
            "standard_conforming_strings": "on",
            "array_nulls": "on",
        }
        silent = {"tcp_user_timeout": str(milliseconds(SILENT_SECONDS + busy_timeout))}
        said = {
            *conninfo_to_dict(address.conninfo),
            *(each.keyword.decode() for each in Conninfo.get_defaults() if each.val),
        }
        defaults = {name: value for name, value in (DEFAULTS | silent).items() if name not in said}
        self._conninfo = make_conninfo(
            address.conninfo, fallback_application_name="ttlstore", client_encoding="utf8", **defaults
        )
        self._checked_pool = False
        self._closed = False
        self._closed_slots: list[Slot] = []
        self._forked_inside: str | None = None
        self._start()
        forks.engines.add(self)

    def _start(self) -> None:
        self._local = threading.local()
        self._free: list[Connection] = []  # the last one given back is taken first: it is the warmest
        self._slots = Slots(MAX_CONNECTIONS)
        self._spare = Slots(MAX_CONNECTIONS // 2)
        self._all: weakref.WeakSet[Connection] = weakref.WeakSet()
        self._pinned: set[Connection] = set()
        self._unhurried: set[Connection] = set()

    # --- for a call -------------------------------------------------------------------------------------------------

    def mine(self) -> Connection | None:
        """The one that this thread is in a transaction on."""
        self.require_usable()
        connection: Connection | None = getattr(self._local, "connection", None)
        return connection

    def take(self) -> Connection:
        """One for this thread alone, until it gives it back. Raises StoreBusy, StoreClosed or CannotOpen."""
        self.require_usable()
        slot = self._slots.take(self._busy_timeout)
        if slot is None:
            raise StoreBusy(
                f"all {MAX_CONNECTIONS} connections to {self._address.name} were in use for {self._busy_timeout:g} s "
                "(busy_timeout), by transactions, or by iterators that were begun and neither finished nor closed; "
                "nothing was written"
            )
        try:
            while self._free:
                try:
                    connection = self._free.pop()
                except IndexError:  # another was faster
                    continue
                if connection.alive():
                    break
                self._discard(connection)
            else:
                connection = Connection(self.connect())
                self._all.add(connection)
        except BaseException:
            self._slots.give(slot)  # at once: the exception may be kept, and what it came past with it
            raise
        connection.slot = slot
        return connection

    def give(self, connection: Connection) -> None:
        """Give it back, or up, if it is of no use any more."""
        if connection.process != os.getpid():  # forked meanwhile: it is the parent's
            return
        slot, connection.slot = connection.slot, None
        if connection.in_order() and not self._closed:
            self._free.append(connection)
        else:
            self._discard(connection)
        if slot is not None:
            self._slots.give(slot)

    def _discard(self, connection: Connection) -> None:
        self._all.discard(connection)
        with suppress(psycopg.Error):
            connection.cancel()
            connection.raw.close()

    @contextmanager
    def pinned(self) -> Iterator[Connection]:
        """All that this thread does inside goes by one connection."""
        connection = self.take()
        outer = getattr(self._local, "connection", None)
        try:
            self._local.connection = connection
            self._pinned.add(connection)
            yield connection
        finally:
            if connection.process == os.getpid():
                self._pinned.discard(connection)
                self._local.connection = outer
            self.give(connection)

    @contextmanager
    def using_another(self) -> Iterator[bool]:
        """Whether a thread that keeps a connection may use others before it gives that back.

        Half of them are for threads that keep none: if all kept one and waited for another, nobody would get any.
        """
        spare = self._spare
        slot = spare.take()
        try:
            yield slot is not None
        finally:
            if slot is not None:
                spare.give(slot)

    @contextmanager
    def unhurried(self, connection: Connection) -> Iterator[None]:
        """Inside, `close` does not wait for it: whoever reads a stream may have left it half read."""
        self._unhurried.add(connection)
        try:
            yield
        finally:
            self._unhurried.discard(connection)

    def require_usable(self) -> None:
        if self._closed:
            raise StoreClosed(f"{self._address.name} is closed")
        if self._forked_inside:
            raise StoreFailed(self._forked_inside)

    # --- making and closing them ------------------------------------------------------------------------------------

    def connect(self, *, unlimited: bool = False) -> psycopg.Connection:
        """A new one, with the settings of the store. Raises CannotOpen.

        `unlimited`, as pg_dump is: for work that takes as long as it takes, whatever a request of an application may.
        """
        address = self._address
        raw = self._bare()
        try:
            self._check_server(raw)
            self._check_pool(raw)
            values.register(raw)
            calls = ", ".join("set_config(%s, %s, false)" for _ in self._settings)
            raw.execute(f"SELECT {calls}", [part for setting in self._settings.items() for part in setting])
            if unlimited:
                raw.execute(_UNLIMITED)
        except psycopg.Error as error:
            raw.close()
            raise cannot_connect(error, address.name, address.password) from None
        except CannotOpen:
            raw.close()
            raise
        return raw

    def _bare(self) -> psycopg.Connection:
        try:
            return psycopg.connect(self._conninfo, autocommit=True, prepare_threshold=PREPARED_AFTER)
        except psycopg.Error as error:
            raise cannot_connect(error, self._address.name, self._address.password) from None

    def _check_pool(self, raw: psycopg.Connection) -> None:
        """Refuse a pool that has a connection of the server's for a transaction only.

        What is set for a connection would be lost there, or be met by another client. One can tell by the server's
        process: a pool makes up the number of it that a new client is told, and lends the same to two at a time.
        """
        if self._checked_pool:
            return
        lent = _process_of(raw)
        if lent != raw.info.backend_pid:
            with closing(self._bare()) as another:
                another.execute("BEGIN")
                if lent == _process_of(another) or lent != _process_of(raw):
                    raise CannotOpen(
                        f"{self._address.name} is a pool of connections that changes them between transactions: use "
                        "one that keeps them for a session (pool_mode=session of PgBouncer), or the server itself"
                    )
        self._checked_pool = True

    def _check_server(self, raw: psycopg.Connection) -> None:
        if raw.info.server_version < OLDEST_POSTGRES * 10_000:
            version = raw.info.parameter_status("server_version")
            raise CannotOpen(f"ttlstore needs PostgreSQL {OLDEST_POSTGRES} or later: {self._address.name} is {version}")
        encoding = raw.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise CannotOpen(
                f"the database {self._address.name} must be in UTF8 to hold any text, and is in {encoding}: make one "
                "with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
            )

    def close(self) -> None:
        """Wait for the calls under way; what is in a transaction ends with it, and a stream with its reader."""
        if self._closed:
            return
        self._closed = True
        until = monotonic() + self._busy_timeout
        for _ in range(MAX_CONNECTIONS - len(self._pinned | self._unhurried)):
            if slot := self._slots.take(max(until - monotonic(), 0)):
                self._closed_slots.append(slot)
        while self._free:
            self._discard(self._free.pop())

    # --- forked children --------------------------------------------------------------------------------------------

    def before_fork(self) -> None:
        """The parent's connections stay as they are: the child makes its own."""

    def after_fork_in_parent(self) -> None:
        """See `before_fork`."""

    def after_fork_in_child(self) -> None:
        if getattr(self._local, "connection", None) is not None:
            self._forked_inside = (
                f"{self._address.name} cannot be used in this process: it was forked inside a transaction of its parent"
            )
        for connection in list(self._all):
            connection.abandon()
        self._start()


def _process_of(raw: psycopg.Connection) -> int:
    """The server's process at the other end."""
    row = raw.execute("SELECT pg_backend_pid()", prepare=False).fetchone()
    return int(row[0]) if row else 0


def milliseconds(seconds: float) -> int:
    return max(round(seconds * 1000), 1)  # for PostgreSQL, 0 is for ever
