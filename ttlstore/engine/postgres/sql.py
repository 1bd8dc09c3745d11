"""How PostgreSQL says it: the statements of `statements` in its words, and those that only it needs.

Unless a clock was given, the server's is asked, within each statement. The parameters that carry the time are then not
in the text at all, and what callers pass for them is dropped.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import (
    CTE,
    ClauseElement,
    Column,
    ColumnElement,
    Insert,
    Select,
    Update,
    and_,
    bindparam,
    delete,
    func,
    literal_column,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, insert
from sqlalchemy.dialects.postgresql.psycopg import PGCompiler_psycopg, PGDialect_psycopg

from ttlstore.engine.postgres.values import Texts, integers
from ttlstore.schema import NOW_HOLDING, collections, documents, live
from ttlstore.statements import (
    CONTENT,
    KEY,
    Changes,
    Insertions,
    Prepare,
    Prepared,
    Statements,
    Values,
    insertions,
    preparing_for,
    this_collection,
    this_document,
    this_key,
)

# Milliseconds, as in `ttl.moment`: the present is the one before, a write counts from the one after.
# The time of a statement is the same for all of its rows, worked out once, and can bound a range of an index.
_NOW = "(SELECT floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint)"
# A statement that has waited for a row looks at the row again, and at the clock: what it shows then counts.
_NOW_HOLDING = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
TS = "ceil(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
LOW_BITS = 0xFFFFFFFF
# A row that is new is dated before it is known that no other has the same key, and that may have to be waited for. Much
# less than the shortest ttl, and more than a server needs for a row without waiting for anybody.
LATE_MILLISECONDS = 100
_LATE = f"{TS} - documents._ts > {LATE_MILLISECONDS:d}"
# That ends the statement, and nothing of it is written. It is no number of a server's, so it must be a word.
WAITED = "dated before it waited for another"
_REFUSING = f"(CASE WHEN {_LATE} THEN '{WAITED}' ELSE 'false' END)::boolean"
_ALL = 2**63 - 1  # rows

_MANY = "written"  # the rows of a statement that writes many
ALL_ROWS = tuple(f"all_{name}" for name in (*KEY, *CONTENT))  # its parameters: a list of values for each column


class _Compiler(PGCompiler_psycopg):
    """Selects a checksum of the body and the time, though that of the body alone is stored.

    The two become one when they are read: when they are written, the time is not known yet.
    """

    def visit_column(self, column: Any, *args: Any, **options: Any) -> str:
        text = super().visit_column(column, *args, **options)
        if column is not documents.c.checksum or not options.get("within_columns_clause"):
            return text
        name = "" if options.get("within_label_clause") else " AS checksum"
        return f"({text} # (documents._ts & {LOW_BITS})){name}"

    def visit_in_op_binary(self, binary: Any, operator: Any, **options: Any) -> str:
        """An array is made once; a query after IN might be run again for every row, and lock more rows each time."""
        left, right = self.process(binary.left, **options), self.process(binary.right, **options)
        return f"{left} = ANY (ARRAY{right})" if right.startswith("(SELECT") else f"{left} IN {right}"


class _ServerClockCompiler(_Compiler):
    def visit_bindparam(self, bindparam: Any, *args: Any, **options: Any) -> str:
        said = {"now": _NOW, "now_holding": _NOW_HOLDING, "new_ts": TS}.get(bindparam.key)
        if said is not None:
            return said
        text: str = super().visit_bindparam(bindparam, *args, **options)  # type: ignore[no-untyped-call]  # SQLAlchemy's
        return text

    def visit_column(self, column: Any, *args: Any, **options: Any) -> str:
        if column.key == "ts" and getattr(column.table, "name", None) in ("excluded", _MANY):
            return TS  # once the row is held, not when it was proposed
        return super().visit_column(column, *args, **options)


class _GivenClock(PGDialect_psycopg):
    statement_compiler = _Compiler
    supports_statement_cache = True


class _ServerClock(PGDialect_psycopg):
    statement_compiler = _ServerClockCompiler
    supports_statement_cache = True


class PostgresStatements(Statements):
    """The statements, ready to run, and those that only PostgreSQL needs."""

    def __init__(self, prepare: Prepare) -> None:
        super().__init__(prepare, insert)
        self.read_to_change = prepare(_read_to_change(), *KEY, "now_holding", "collection")
        upsert, create, copy = _insertions_of_many()
        self._of_many = {
            self.upsert.sql: prepare(upsert, *ALL_ROWS, "collection"),
            self.create.sql: prepare(create, *ALL_ROWS, "collection", "now_holding"),
            self.copy.sql: prepare(copy, *ALL_ROWS, "collection", "now_holding"),
        }

    def _changes(self, content: Mapping[Column[Any], ColumnElement[Any]]) -> Changes:
        _, held = _held("ttl", "ts", "etag")
        # By the key once more, not by `seq`: where the table is in parts, the key tells which.
        here = and_(this_key, live(NOW_HOLDING, held.c.default_ttl, held.c))
        return Changes(update(documents).values(content).where(here), delete(documents).where(here), held.c.etag)

    def of_many(self, statement: Prepared, rows: list[Values]) -> tuple[str, Values] | None:
        """One statement that does the same for all rows at once; None where there is none."""
        many = self._of_many.get(statement.sql)
        if many is None or len({row[: len(KEY)] for row in rows}) < len(rows):  # no row can be changed twice by one
            return None
        columns = list(zip(*rows, strict=True))
        lists, rest = columns[: len(ALL_ROWS)], columns[len(ALL_ROWS) :]
        arranged = many.arrange((*lists, *(same[0] for same in rest)))
        return many.sql, tuple(map(_as_array, arranged))


@cache
def statements(*, server_clock: bool) -> tuple[Prepare, PostgresStatements]:
    """What prepares statements, and those that are."""
    preparing = preparing_for((_ServerClock if server_clock else _GivenClock)(paramstyle="format"))

    def prepare(statement: ClauseElement, *names: str) -> Prepared:
        if isinstance(statement, Insert | Update) and statement.table is documents:
            statement = statement.returning(documents.c.ts)
        if isinstance(statement, Insert) and statement.table is documents and server_clock:
            statement = statement.returning(literal_column(_REFUSING))
        prepared = preparing(statement, *names)
        # Where the server keeps the time, it was never in the checksum.
        return prepared if server_clock else _without_time(prepared, names)

    return prepare, PostgresStatements(prepare)


@cache
def telling(sql: str) -> str:
    """A statement that refuses rows that were dated before they waited, so that it takes them, and tells which.

    For a transaction that would have to be rolled back if it refused.
    """
    return sql.replace(_REFUSING, f"({_LATE})")


def limited(sql: str, limit: int | str) -> str:
    return f"SELECT * FROM ({sql}) AS every LIMIT {limit}"


def first_soon(sql: str) -> str:
    """The statement, planned for whoever may not want the last row.

    The server takes a limit that it has still to work out for a tenth of the rows. If it knew that all are wanted it
    would rather sort than go by an index: all came a seventh sooner, and the first after five seconds and not at once.
    """
    return limited(sql, f"(SELECT {_ALL:d})")


def _as_array(value: Any) -> Any:
    if not isinstance(value, tuple):
        return value
    return Texts(value) if isinstance(value[0], str) else integers(value)


def _without_time(prepared: Prepared, names: tuple[str, ...]) -> Prepared:
    """Take the time out of the checksums that a statement writes, if it does."""
    if "new_checksum" in names:
        ts, checksum = names.index("new_ts"), names.index("new_checksum")

        def of_body(values: Values) -> Any:
            return values[checksum] ^ (values[ts] & LOW_BITS)
    elif "all_checksum" in names:
        ts, checksum = names.index("all_ts"), names.index("all_checksum")

        def of_body(values: Values) -> Any:
            return tuple([one ^ (time & LOW_BITS) for one, time in zip(values[checksum], values[ts], strict=True)])
    else:
        return prepared

    def arrange(values: Values) -> Values:
        return prepared.arrange((*values[:checksum], of_body(values), *values[checksum + 1 :]))

    return Prepared(prepared.sql, arrange)


# A statement that had to wait for a row decides anew only if another has changed it meanwhile, not if it was just held.
# So a row is held first, in a part of the statement that comes before all else, and then decided about.


def _read_to_change() -> Select[Any]:
    """As `Statements.read`, and nobody else changes the document before the end of the transaction."""
    found = ("body", "ts", "etag", "checksum")
    its, held = _held(*found, "ttl")
    is_live = live(NOW_HOLDING, held.c.default_ttl, held.c)
    return select(*(held.c[name] for name in found)).select_from(its.outerjoin(held, is_live))


class _Held(NamedTuple):
    collection: CTE
    """With its default, which another cannot change any more."""
    document: CTE
    """Live or not, with that default, and not to be changed by another either."""


def _held(*columns: str) -> _Held:
    its_default = select(collections.c.id, collections.c.default_ttl).where(this_collection)
    its = its_default.with_for_update(read=True).cte("its")
    row = (documents.c[name] for name in columns)
    one = select(its.c.default_ttl, *row).join(documents, documents.c.collection_id == its.c.id).where(this_document)
    return _Held(its, one.with_for_update(key_share=True, of=documents).cte("held"))


def _insertions_of_many() -> Insertions:
    """As for one document, from parameters that hold the values of all rows."""
    columns = [documents.c[name] for name in (*KEY, *CONTENT)]
    lists = [bindparam(name, type_=ARRAY(column.type)) for name, column in zip(ALL_ROWS, columns, strict=True)]
    names = (column.key for column in columns)
    rows = func.unnest(*lists).table_valued(*names, with_ordinality="place", name=_MANY).render_derived(name=_MANY)
    content = {documents.c[name]: rows.c[name] for name in CONTENT}
    return insertions(insert, [rows.c[name] for name in KEY], content, rows.c.place)
