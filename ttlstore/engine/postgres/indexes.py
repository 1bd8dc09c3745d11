"""Making and removing indexes on PostgreSQL while others write.

That cannot be done in a transaction, and takes two looks at the table. Between them it waits for the transactions that
were open: with StoreBusy if one of them stays open for longer than `busy_timeout`. What is cut short leaves an index
that is not valid: the server uses it for nothing, and it is removed before it is made again.
"""

import re
import time
from types import TracebackType
from typing import Any, Self

import psycopg

from ttlstore.engine.postgres.connections import LOCKS
from ttlstore.engine.postgres.errors import translated
from ttlstore.errors import StoreBusy
from ttlstore.schema import KEY_COLUMNS, REQUIRED_INDEXES, collections, documents
from ttlstore.statements import Prepared

TURN_SECONDS = 0.05  # between looks whether another is done

BEING_MADE = "EXISTS (SELECT 1 FROM pg_stat_progress_create_index WHERE index_relid = indexrelid)"
# Functions without the index that they were made for are what is left of it: one that cannot be used.
ALL_INDEXES = Prepared(
    "SELECT regexp_replace(proname, '_[0-9]+$', ''), false FROM pg_proc "
    "WHERE pronamespace = (SELECT relnamespace FROM pg_class WHERE oid = %s::regclass) AND starts_with(proname, %s) "
    "UNION ALL "
    f"SELECT relname::text, CASE WHEN NOT {BEING_MADE} THEN indisvalid AND indisready END "
    "FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid "
    "WHERE indrelid = %s::regclass AND starts_with(relname, %s)",
    lambda values: values * 2,
)

_WANTED = [(KEY_COLUMNS, True), *(([column.name for column in index.columns], False) for index in REQUIRED_INDEXES)]
# By their columns: they are called otherwise where the table is in partitions.
MISSING_INDEXES = Prepared(
    "SELECT wanted FROM unnest(%s::text[], %s::boolean[]) AS needed(wanted, has_to_be_unique) WHERE NOT EXISTS ("
    "SELECT FROM pg_index WHERE indrelid = %s::regclass AND (indisunique OR NOT has_to_be_unique) AND wanted = ("
    "SELECT string_agg(attname::text, ', ' ORDER BY place) "
    "FROM unnest(indkey::int2[]) WITH ORDINALITY AS key(number, place) "
    "JOIN pg_attribute ON attrelid = indrelid AND attnum = number))",
    lambda _: ([", ".join(columns) for columns, _ in _WANTED], [unique for _, unique in _WANTED], documents.name),
)

_OF_AN_INDEX = re.compile("^((?:CREATE|DROP) INDEX )")


class IndexMaker:
    """A connection of its own, on which indexes are made and removed by one process at a time."""

    def __init__(self, raw: psycopg.Connection, name: str, busy_timeout: float) -> None:
        self._raw = raw
        self._name = name
        self._busy_timeout = busy_timeout

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._raw.close()  # and its lock with it

    def wait_for_turn(self, patience: float) -> None:
        """Raises StoreBusy."""
        until = time.monotonic() + patience
        # Not pg_advisory_lock(), which waits within a statement: and the one who makes an index waits for statements.
        while not self._ask("SELECT pg_try_advisory_lock(%s::int, %s::regclass::oid::int)", LOCKS, collections.name):
            if time.monotonic() >= until:
                raise StoreBusy(f"another process makes or removes an index of {self._name}; nothing was changed")
            time.sleep(TURN_SECONDS)

    def beside_writers(self) -> bool:
        """Whether the server can do it: not for a table in partitions."""
        return bool(self._ask("SELECT relkind <> 'p' FROM pg_class WHERE oid = %s::regclass", documents.name))

    def define(self, statement: str) -> None:
        beside = _OF_AN_INDEX.sub(r"\1CONCURRENTLY ", statement.replace("%%", "%"))
        self._ask(beside)

    def _ask(self, sql: str, *values: Any) -> object:
        try:
            cursor = self._raw.execute(sql, values or None)
            row = cursor.fetchone() if cursor.description else None
        except psycopg.errors.LockNotAvailable as error:
            raise StoreBusy(
                f"an index of {self._name} waits for the transactions that were open when it was begun, and one of "
                f"them stayed so for {self._busy_timeout:g} s (busy_timeout)"
            ) from error
        except psycopg.Error as error:
            raise translated(error, self._name, self._busy_timeout, lost=self._raw.broken) from error
        return row[0] if row else None
