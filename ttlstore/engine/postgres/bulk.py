"""Many rows to PostgreSQL, without waiting for it: this thread does something else while the server writes them.

By `psycopg.pq`, the driver's own door to libpq, because its cursors wait for the answer. Not by a cursor in a second
thread: after each answer that one would wait for Python's lock, which the first gives up after milliseconds only, and
the server would wait for both.

What is sent is a transaction of its own, unless one is open. The server ends it by itself: nothing stays locked,
however long the caller is busy elsewhere.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from itertools import chain, islice

import psycopg
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult

from ttlstore.engine.postgres.connections import Connection
from ttlstore.engine.postgres.sql import ALL_ROWS, LOW_BITS, TS, WAITED
from ttlstore.engine.postgres.values import Texts, dump_texts
from ttlstore.errors import StoreFailed
from ttlstore.statements import Values

SENT_ROWS = 100  # at a time, by COPY: the server works on them while the next are made

LATE_MILLISECONDS = 500  # half of the shortest ttl; the rows are dated before they come, and a network takes its time

# The server takes all of it for one transaction. The table comes first, so that it is not waited for later. Then a
# collection that must not go meanwhile, and the time once it cannot: COPY asks for neither. In the end it is asked
# whether the rows had to wait for others with their keys. If so they are refused, and made anew.
_COPY = f"""
LOCK TABLE documents IN ROW EXCLUSIVE MODE;
WITH held AS (SELECT FROM collections WHERE id = {{:d}} AND name IS NOT NULL FOR KEY SHARE)
SELECT set_config('ttlstore.dated', ({TS})::text, true) FROM held;
COPY documents (collection_id, id, partition, ttl, _ts, etag, size, checksum, body) FROM STDIN;
SELECT WHERE (CASE WHEN {TS} - nullif(current_setting('ttlstore.dated', true), '')::bigint > {LATE_MILLISECONDS:d}
THEN '{WAITED}' ELSE 'false' END)::boolean
"""

_NULL = r"\N"
_SPECIAL = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})


class Sending:
    """What is sent by a connection that nobody else uses before `wait` has told how it ended."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._pgconn = connection.raw.pgconn
        self._failed: PGresult | None = None

    def copy(self, rows: Iterator[Values], *, server_clock: bool) -> None:
        """Send rows of `Statements.create`: dated by the server's clock, or by their own dates.

        None is written if the collection is gone, or if one of them has a row already: `wait` raises UniqueViolation.
        """
        first = next(rows)
        collection = first[len(ALL_ROWS)]
        self._pgconn.send_query(_COPY.format(collection).encode())
        locked, present, ready = self._result(), self._result(), self._result()
        if present is None or ready is None or ready.status != ExecStatus.COPY_IN:
            self._failed = ready or present or locked
            return
        if present.ntuples:
            ts = int(present.get_value(0, 0) or b"") if server_clock else None
            remaining = chain([first], rows)
            while some := list(islice(remaining, SENT_ROWS)):
                lines = _lines(collection, some, ts)
                while not self._pgconn.put_copy_data(lines):
                    self._flush()
                self._pgconn.flush()
        self._pgconn.put_copy_end()
        self._flush()

    def execute(self, sql: str, values: Values) -> None:
        """Send a statement with values that are texts, integers or `Texts`."""
        params = [dump_texts(value) if isinstance(value, Texts) else str(value).encode() for value in values]
        formats = [Format.BINARY if isinstance(value, Texts) else Format.TEXT for value in values]
        self._pgconn.send_query_params(_numbered(sql), params, param_formats=formats)
        self._flush()

    def wait(self) -> int:
        """How many rows were written. Raises the driver's errors; in a forked child, StoreFailed."""
        if self._connection.process != os.getpid():
            raise StoreFailed("the process was forked meanwhile; its parent knows how this ended")
        written = 0
        while (result := self._result()) is not None:
            match result.status:
                case ExecStatus.COPY_IN:  # cut short, by an exception
                    self._pgconn.put_copy_end(b"given up")
                case ExecStatus.FATAL_ERROR:
                    self._failed = result
                case _:
                    written += result.command_tuples or 0
        if self._failed is not None:
            raise error_from_result(self._failed)
        return written

    def _flush(self) -> None:
        while self._pgconn.flush():
            self._connection.await_server(to_write=True)
            self._pgconn.consume_input()  # a server that cannot get rid of its notices reads nothing either

    def _result(self) -> PGresult | None:
        self._flush()  # an exception may have come before all was sent: then the server waits for the rest
        while self._pgconn.is_busy():
            self._connection.await_server()
            self._pgconn.consume_input()
        return self._pgconn.get_result()


def send(connection: Connection, begin: Callable[[Sending], None], meanwhile: Callable[[], None]) -> int:
    """Send something, do something else, and tell how many rows were written. Raises the driver's errors.

    Also if something is raised in between, the connection is of use again.
    """
    connection.used = True
    sending = Sending(connection)
    try:
        begin(sending)
        meanwhile()
    except BaseException:
        with suppress(psycopg.Error):
            sending.wait()
        raise
    try:
        return sending.wait()
    except (psycopg.Error, StoreFailed):
        raise
    except BaseException:  # a signal's: what is asked for next must not find that it was done after all
        connection.cancel()
        raise


@cache
def _numbered(sql: str) -> bytes:
    """The text with the places of its values as the server numbers them."""
    first, *others = sql.replace("%%", "%").split("%s")
    return "".join([first, *(f"${number}{text}" for number, text in enumerate(others, 1))]).encode()


def _lines(collection: int, rows: list[Values], ts: int | None) -> bytes:
    """The rows as COPY takes them, written at this time, or each at its own."""
    lines = []
    for id, partition, ttl, own_ts, etag, size, checksum, body, *_ in rows:
        key = f"{id}\t{partition}"
        if "\\" in key or not id.isprintable():  # a partition is JSON, as the body is
            key = f"{id.translate(_SPECIAL)}\t{partition.translate(_SPECIAL)}"
        if ts is None:
            written, of_body = own_ts, checksum ^ (own_ts & LOW_BITS)
        else:
            written, of_body = ts, checksum
        of_json = body.replace("\\", r"\\")  # JSON has none of the other special characters
        lines.append(
            f"{collection}\t{key}\t{_NULL if ttl is None else ttl}\t{written}\t{etag}\t{size}\t{of_body}\t{of_json}\n"
        )
    return "".join(lines).encode()
