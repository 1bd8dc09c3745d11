"""The engine for PostgreSQL: the compiled statements run on the driver's own cursors, each a transaction of its own.

In a transaction that a caller opens, a document that is read is held until the end, so that what is written from it is
not written over what another wrote meanwhile.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from operator import itemgetter

import psycopg
import sqlalchemy
from psycopg.pq import TransactionStatus

from ttlstore.engine import MAKE_AGAIN, Durability, Engine, Progress, Row, Settings, Space, all_or_none
from ttlstore.engine.json import Json
from ttlstore.engine.postgres.address import Address
from ttlstore.engine.postgres.bulk import Sending, send
from ttlstore.engine.postgres.clock import ServerClock
from ttlstore.engine.postgres.connections import LOCKS, Connection, Connections
from ttlstore.engine.postgres.errors import BARRED, is_busy
from ttlstore.engine.postgres.few import FoundFew, few_at_once
from ttlstore.engine.postgres.identity import IDENTITY, Identity
from ttlstore.engine.postgres.indexes import ALL_INDEXES, BEING_MADE, MISSING_INDEXES, IndexMaker
from ttlstore.engine.postgres.json import PostgresJson
from ttlstore.engine.postgres.migrating import migrating
from ttlstore.engine.postgres.rights import is_there
from ttlstore.engine.postgres.settings import SeenSettings, compared, comparing
from ttlstore.engine.postgres.sql import ALL_ROWS, first_soon, limited, statements, telling
from ttlstore.engine.postgres.transactions import PostgresTransactions
from ttlstore.errors import CannotOpen, NotSupported, StoreBusy, TtlStoreError, command
from ttlstore.schema import INDEXES_OF_COLLECTIONS, collections, documents
from ttlstore.statements import Prepared, Statements, Values
from ttlstore.ttl import Clock, moment

json = PostgresJson()

FEW_ROWS = 200  # that come at once
STREAMED_ROWS = 500 if psycopg.capabilities.has_stream_chunked() else 1  # of more, held at a time
HOUSEKEEPING_LOCK_MILLISECONDS = 20  # that the vacuum waits for a change of settings before it tries again later
COPIED_ROWS = 50  # from so many on it pays to try COPY first, though it may be in vain
_PLACE = itemgetter(0)  # of a row
BLOCK_BYTES = 8192  # what space is counted in


class PostgresEngine(PostgresTransactions):
    """A store in a schema of a PostgreSQL database."""

    dialect = "postgresql"

    def __init__(
        self,
        url: str,
        clock: Clock,
        durability: Durability,
        busy_timeout: float,
        *,
        create: bool,
        read_only: bool,
    ) -> None:
        address = Address.parse(url)
        self.name = address.name
        self._address = address
        self._busy_timeout = busy_timeout
        self._read_only = read_only
        server_clock = clock is time.time
        self.clock: Clock = ServerClock(self._server_time) if server_clock else clock
        # What is passed for the time is not looked at then; 0 leaves the checksums as they are.
        self.statement_clock: Clock = (lambda: 0.0) if server_clock else clock
        self.prepare, self._own = statements(server_clock=server_clock)
        self.statements: Statements = self._own
        self.json: Json = json
        self.script_begins: tuple[str, ...] = (
            f'CREATE SCHEMA IF NOT EXISTS "{address.schema}"',
            f'SET search_path TO "{address.schema}"',
        )
        self._seen = SeenSettings()
        self._found_few = FoundFew()
        self._connections = Connections(address, durability, busy_timeout, read_only=read_only)
        try:
            with self._some() as first:
                self.description = f"PostgreSQL {first.raw.info.parameter_status('server_version')}"
                self.standby = first.raw.info.parameter_status("in_hot_standby") == "on"
                if not (is_there(first.raw, address) or create):
                    raise CannotOpen(f"there is no store at {self.name}: make one with {command('init', self.name)}")
        except BaseException:
            self._connections.close()
            raise

    def is_same(self, other: Engine) -> bool:
        return isinstance(other, PostgresEngine) and self._identity().is_of(other._identity())

    def _identity(self) -> Identity:
        (row,) = self.all(_literal(IDENTITY), (documents.name,))
        return Identity(*row)

    def _server_time(self) -> float:
        with self._some() as connection:
            used = connection.used
            row = self._run(connection, "SELECT extract(epoch FROM clock_timestamp())::float8", None).fetchone()
            connection.used = used  # nothing that a transaction would lack if it were begun again
        return float(row[0]) if row else 0.0

    # --- the point operations ---------------------------------------------------------------------------------------

    def one(self, statement: Prepared, values: Values = ()) -> Row | None:
        connection = self._connections.mine()
        if connection is not None:
            if connection.depth and statement is self.statements.read and not self._read_only:
                statement = self._own.read_to_change
            return self._run(connection, statement.sql, statement.arrange(values)).fetchone()
        connection = self._connections.take()
        try:
            return self._run(connection, statement.sql, statement.arrange(values)).fetchone()
        finally:
            self._connections.give(connection)

    def all(self, statement: Prepared, values: Values = (), planned_by: Settings | None = None) -> list[Row]:
        with self._some() as connection:
            return self._rows(connection, statement.sql, statement.arrange(values), planned_by)

    def _rows(
        self,
        connection: Connection,
        sql: str,
        values: Values,
        planned_by: Settings | None,
        limit: int | None = None,
    ) -> list[Row]:
        if planned_by is None:
            return self._run(connection, sql if limit is None else limited(sql, limit), values).fetchall()
        compare = comparing(sql, planned_by.collection, limit)
        return self._seen.confirmed(self._run(connection, compare, compared(planned_by, values)).fetchall(), planned_by)

    def settings(self, collection: int, *, anew: bool = False) -> Settings | None:
        seen = None if anew else self._seen.get(collection)
        return seen or self._seen.remember(Settings.of(self.one(self.statements.collection, (collection,))))

    def stream(
        self,
        statement: Prepared,
        values: Values = (),
        planned_by: Settings | None = None,
        unordered: Prepared | None = None,
    ) -> Iterator[Row]:
        if self.in_transaction():  # whose contents another connection does not see
            yield from self.all(statement, values, planned_by)
            return
        connection = self._connections.take()
        try:
            # Most queries find a few documents: those come at once, by a statement that is prepared. Only if there are
            # more it is run again, as one that is not, and never with a cursor of the server's: five trips to it.
            rows = self._few_rows(connection, statement, values, planned_by, unordered)
            if len(rows) > FEW_ROWS:
                arranged = statement.arrange(values)
                with self._connections.unhurried(connection):
                    yield from connection.cursor.stream(first_soon(statement.sql), arranged, size=STREAMED_ROWS)
                return
        except psycopg.Error as error:
            raise self._translated(error, connection) from error
        finally:
            self._connections.give(connection)
        yield from rows

    def _few_rows(
        self,
        connection: Connection,
        statement: Prepared,
        values: Values,
        planned_by: Settings | None,
        unordered: Prepared | None,
    ) -> list[Row]:
        """All rows if they are few, else some of them."""
        if unordered is None or not self._found_few.always(unordered.sql):
            rows = self._rows(connection, statement.sql, statement.arrange(values), planned_by, FEW_ROWS + 1)
            if unordered is not None:
                self._found_few.learn(unordered.sql, len(rows) <= FEW_ROWS)
            return rows
        at_once = few_at_once(unordered.sql, FEW_ROWS + 1)
        rows = self._rows(connection, at_once, unordered.arrange(values), planned_by)
        if len(rows) > FEW_ROWS:
            self._found_few.learn(unordered.sql, False)
        rows.sort(key=_PLACE)
        return rows

    def steps(self, statement: Prepared, values: Values = ()) -> list[str]:
        # As it is run first. What comes of it in the end is the same, but may be found in another way.
        sql = limited(statement.sql, FEW_ROWS + 1) if statement.sql.startswith("SELECT") else statement.sql
        explained = Prepared(f"EXPLAIN {sql}", statement.arrange)
        return [row[0] for row in self.all(explained, values)]

    def write(self, statement: Prepared, values: Callable[[int, int], Values]) -> tuple[int, int]:
        now, ts = moment(self.statement_clock)
        row = values(now, ts)
        arranged = statement.arrange(row)
        connection = self._connections.mine()
        if connection is not None:
            count, dated, late = _written(self._run(connection, telling(statement.sql), arranged), ts)
            return count, self._dated_anew(connection, [row]) if late else dated
        connection = self._connections.take()
        try:
            return self._again(lambda: _written(self._run(connection, statement.sql, arranged), ts))[:2]
        finally:
            self._connections.give(connection)

    def attempt(self, statement: Prepared, values: Values) -> int | None:
        with self._some() as connection:
            connection.own_writes += 1
            try:
                return connection.cursor.execute(statement.sql, statement.arrange(values)).rowcount
            except psycopg.Error as error:
                if is_busy(error) or isinstance(error, psycopg.errors.ForeignKeyViolation):
                    return None
                raise self._translated(error, connection) from error

    def remove(self, statement: Prepared, values: Values) -> list[Row] | None:
        with self._some() as connection:
            connection.own_writes += 1
            try:
                return connection.cursor.execute(statement.sql, statement.arrange(values)).fetchall()
            except psycopg.Error as error:
                if is_busy(error) or isinstance(error, psycopg.errors.ForeignKeyViolation):
                    return None
                raise self._translated(error, connection) from error

    def change(self, statement: Prepared, values: Values) -> int:
        connection = self._in_transaction()
        if statement in (self.statements.configure, self.statements.drop_collection):
            self._seen.forget()
        count, _, late = _written(self._run(connection, telling(statement.sql), statement.arrange(values)), 0)
        if late:
            self._dated_anew(connection, [values])
        return count

    def _dated_anew(self, connection: Connection, rows: list[Values]) -> int:
        """Write rows once more that a transaction has inserted: nobody else can be in their way now. Tells when."""
        upsert = self.statements.upsert
        ts = 0
        for row in rows:
            ts = _written(self._run(connection, telling(upsert.sql), upsert.arrange(row[: len(ALL_ROWS) + 1])), 0)[1]
        return ts

    def write_all(
        self, statement: Prepared, count: int, rows: Callable[[], Iterator[Values]], meanwhile: Callable[[], None]
    ) -> bool:
        inside = self.in_transaction()
        if (begin := self._at_once(statement, count, rows)) is not None:
            with (
                suppress(*BARRED),
                self.writing() if inside else nullcontext(),
                self._some() as connection,
                self._connections.using_another() as another,
            ):
                # Inside a transaction, what else is done needs this very connection.
                return self._sent(connection, begin, meanwhile if another and not inside else _nothing) == count
        return all_or_none(self, statement, count, rows)

    def _at_once(
        self, statement: Prepared, count: int, rows: Callable[[], Iterator[Values]]
    ) -> Callable[[Sending], None] | None:
        """What sends all of the rows, if there is a way by which all are written or none."""
        if statement is self.statements.create and count >= COPIED_ROWS:
            made = rows()
            return lambda sending: sending.copy(made, server_clock=isinstance(self.clock, ServerClock))
        many = self._own.of_many(statement, list(rows())) if statement is self.statements.upsert else None
        return None if many is None else lambda sending: sending.execute(*many)

    def _sent(self, connection: Connection, begin: Callable[[Sending], None], meanwhile: Callable[[], None]) -> int:
        try:
            return send(connection, begin, meanwhile)
        except BARRED:
            raise
        except psycopg.Error as error:
            raise self._translated(error, connection) from error

    def change_many(self, statement: Prepared, rows: list[Values], meanwhile: Callable[[], None] | None = None) -> int:
        connection = self._in_transaction()
        alone = connection.depth == 1 and not connection.used
        many = self._own.of_many(statement, rows)

        def begin_again() -> None:
            self._run(connection, "ROLLBACK", None)
            self._run(connection, "BEGIN", None)

        def write() -> int:
            if many is None:
                return self._run_each(connection, statement, rows)
            if meanwhile is None:
                sql, values = many
                written = self._run(connection, telling(sql), values).fetchall()
                if any(row[-1] is True for row in written):  # as `_written` tells it
                    self._dated_anew(connection, rows)
                return len(written)
            try:
                return send(connection, lambda sending: sending.execute(*many), meanwhile)
            except psycopg.Error as error:
                raise self._translated(error, connection) from error

        return self._again(write, begin_again) if alone else write()

    def all_indexes(self) -> dict[str, bool | None]:
        return dict(self.all(ALL_INDEXES, (documents.name, INDEXES_OF_COLLECTIONS)))

    def define(self, statement: str) -> None:
        self._run(self._in_transaction(), statement.replace("%%", "%"), None)

    @contextmanager
    def defining(self) -> Iterator[Callable[[str], None] | None]:
        mine = self._connections.mine()
        if mine is not None and mine.raw.pgconn.transaction_status != TransactionStatus.IDLE:
            yield None
            return
        # Who keeps house has other things to do than to wait for its turn.
        patience = self._busy_timeout if mine is None else 0.0
        with IndexMaker(self._connections.connect(unlimited=True), self.name, self._busy_timeout) as maker:
            maker.wait_for_turn(patience)
            yield maker.define if maker.beside_writers() else None

    # --- the schema -------------------------------------------------------------------------------------------------

    def revision(self) -> str | None:
        row = self.one(_literal("SELECT to_regclass('alembic_version') IS NOT NULL"))
        if row is None or not row[0]:
            return None
        row = self.one(_literal("SELECT version_num FROM alembic_version"))
        return None if row is None else str(row[0])

    def migrating(self) -> AbstractContextManager[sqlalchemy.Connection]:
        return migrating(self._connections.connect(unlimited=True), self._address, self._busy_timeout)

    # --- the whole store --------------------------------------------------------------------------------------------

    def check(self) -> list[str]:
        invalid = _literal(
            "SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid IN (%s::regclass, %s::regclass) "
            "AND NOT (indisvalid AND indisready) "
            f"AND NOT {BEING_MADE} ORDER BY 1"
        )
        found = self.all(invalid, (documents.name, collections.name))
        missing = self.all(MISSING_INDEXES)
        return [
            *(f"the index {name} is not valid: REINDEX INDEX {name}" for (name,) in found),
            *(f"there is no index over {documents.name} ({columns}): {MAKE_AGAIN}" for (columns,) in missing),
        ]

    def backup(self, path: str, progress: Progress) -> None:
        self._connections.require_usable()
        raise NotSupported(
            "a store on PostgreSQL is not copied to a file by ttlstore: use "
            f"pg_dump --schema={self._address.schema}, or the server's own backups"
        )

    def close(self) -> None:
        self._connections.close()

    # --- housekeeping -----------------------------------------------------------------------------------------------

    @contextmanager
    def housekeeping(self) -> Iterator[None]:
        if self.in_transaction():
            raise StoreBusy("this cannot be done inside transaction(): leave its block first")
        with self._connections.pinned() as connection:
            try:
                self._run(connection, "SET synchronous_commit = off", None)
                self._run(connection, f"SET lock_timeout = '{HOUSEKEEPING_LOCK_MILLISECONDS}ms'", None)
                yield
            finally:
                connection.raw.close()  # and the settings with it

    @contextmanager
    def turn(self) -> Iterator[bool]:
        key = (LOCKS, documents.name)
        connection = self._connections.take()
        try:
            row = self._run(connection, "SELECT pg_try_advisory_lock(%s::int, %s::regclass::oid::int)", key).fetchone()
            ours = bool(row and row[0])
            try:
                yield ours
            finally:
                if ours:
                    with suppress(TtlStoreError):  # a lost connection has lost its locks too
                        self._run(connection, "SELECT pg_advisory_unlock(%s::int, %s::regclass::oid::int)", key)
        finally:
            self._connections.give(connection)

    def in_line(self, seconds: float) -> AbstractContextManager[bool]:
        return nullcontext(True)

    def others_write(self) -> bool:
        """By the server's count of transactions: each that writes is one more."""
        with self._some() as connection:
            row = self._run(connection, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint", None).fetchone()
            transactions = int(row[0]) if row else 0
            others = transactions - connection.transactions - connection.own_writes
            connection.transactions, connection.own_writes = transactions, 0
            return others > 0

    def pack(self, first: int, last: int) -> int | None:
        return 0  # PostgreSQL fills the gaps with what is written next

    def give_back(self, pages: int) -> int | None:
        return 0  # PostgreSQL's own vacuum makes the space of deleted rows free for others

    def checkpoint(self) -> None:
        """The server does that by itself."""

    def space(self) -> Space:
        sizes = "SELECT pg_total_relation_size(%s::regclass) + pg_total_relation_size(%s::regclass)"
        row = self.one(_literal(sizes), (documents.name, collections.name))
        return Space(BLOCK_BYTES, int(row[0]) // BLOCK_BYTES if row else 0, 0)


def _written(cursor: psycopg.Cursor[Row], ts: int) -> tuple[int, int, bool]:
    """How many rows were written, when, and whether they were dated before they waited: the statement tells."""
    if cursor.rownumber is None:  # no rows come of it; `description` would be made for every write
        return cursor.rowcount, ts, False
    row = cursor.fetchone()
    return (0, ts, False) if row is None else (cursor.rowcount, row[0], row[-1] is True)


def _nothing() -> None:
    """To be done meanwhile."""


def _literal(sql: str) -> Prepared:
    return Prepared(sql, _as_they_are)


def _as_they_are(values: Values) -> Values:
    return values
