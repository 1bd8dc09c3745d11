"""The tables, and the expiry rule in SQL.

`live()` and `expired()` are the rule of the contract over both tables. Every read, write and delete uses them. The
horizons below them say the same as ranges, in the form that the indexes answer. No other module spells the rule.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Computed,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    and_,
    bindparam,
    case,
    func,
    literal_column,
    not_,
    or_,
)
from sqlalchemy.sql.base import ReadOnlyColumnCollection
from sqlalchemy.sql.elements import KeyedColumnElement

HEAD = "0001"  # the newest revision in migrations/; a test keeps it true, so that opening need not import Alembic

metadata = MetaData()

# On SQLite only a column declared INTEGER is an alias of the rowid; PostgreSQL needs BIGINT to count as far.
_Serial = BigInteger().with_variant(Integer(), "sqlite")
# Compared and ordered by code points, as SQLite does it, whatever the language of a PostgreSQL database.
_Name = Text().with_variant(Text(collation="C"), "postgresql")
# Rows come and go all the time: PostgreSQL's own vacuum should come long before a fifth of them is dead.
_CLEANED_EARLY = {
    "autovacuum_vacuum_scale_factor": "0.02",
    "autovacuum_vacuum_threshold": "1000",
    "autovacuum_analyze_scale_factor": "0.05",
    "toast.autovacuum_vacuum_scale_factor": "0.02",
    "toast.autovacuum_vacuum_threshold": "1000",
}

collections = Table(
    "collections",
    metadata,
    Column("id", _Serial, primary_key=True),
    Column("name", _Name, unique=True),  # NULL: dropped, and the rows of its documents wait to be deleted
    Column("partition_key", Text, nullable=False),
    Column("default_ttl", BigInteger),  # NULL: off; -1: on, no default; n: seconds
    Column("indexing_mode", Text, nullable=False),
    Column("indexed_paths", Text, nullable=False),  # JSON: a list of paths and of lists of paths
    Column("created_at", BigInteger, nullable=False),  # milliseconds
    sqlite_autoincrement=True,  # an id is never used again: a handle on a dropped collection must not meet another
)

KEY_COLUMNS = ("collection_id", "id", "partition")  # of a document

documents = Table(
    "documents",
    metadata,
    Column("seq", _Serial, primary_key=True),
    Column("collection_id", _Serial, ForeignKey("collections.id"), nullable=False),
    Column("partition", _Name, nullable=False),  # the partition key's value as JSON; empty where the key is /id
    Column("id", _Name, nullable=False),
    Column("ttl", BigInteger),  # NULL: inherits the default; -1: never; n: seconds
    Column("_ts", BigInteger, key="ts", nullable=False),  # milliseconds
    Column("expires_at", BigInteger, Computed("CASE WHEN ttl > 0 THEN _ts + ttl * 1000 END", persisted=True)),
    Column("etag", Text, nullable=False),
    Column("size", Integer, nullable=False),  # of the body, in bytes
    Column("checksum", BigInteger, nullable=False),  # of the body and _ts: damage is noticed, not handed out
    Column("body", Text, nullable=False),  # last: what follows a long text is slow to reach
    UniqueConstraint(*KEY_COLUMNS, name="documents_key"),
    postgresql_with=_CLEANED_EARLY,
)

# The two partial indexes share out all documents between them: one holds those with a ttl of their own, by the moment
# they expire, the other those that inherit the default, by the moment they were written. `size` rides along so that
# bytes are added up without a look at the table, and so does `ttl`, because SQLite looks there for the WHERE.
BY_EXPIRY = Index(
    "documents_by_expiry",
    documents.c.collection_id,
    documents.c.expires_at,
    documents.c.size,
    documents.c.ttl,
    sqlite_where=documents.c.ttl.is_not(None),
    postgresql_where=documents.c.ttl.is_not(None),
)
BY_WRITE = Index(
    "documents_by_write",
    documents.c.collection_id,
    documents.c.ts,
    documents.c.size,
    documents.c.ttl,
    sqlite_where=documents.c.ttl.is_(None),
    postgresql_where=documents.c.ttl.is_(None),
)
IN_ORDER = Index("documents_in_order", documents.c.collection_id, documents.c.seq)

# The indexes that every store has, besides its keys: what cannot do without them fails, or is slow without a word.
REQUIRED_INDEXES = (BY_EXPIRY, BY_WRITE, IN_ORDER)

# The indexes that users ask for come and go with the collections' settings: no migration knows them.
INDEXES_OF_COLLECTIONS = "documents_of_"


def index_prefix(collection: int) -> str:
    """How the names of the indexes of a collection begin."""
    return f"{INDEXES_OF_COLLECTIONS}{collection:d}_"


# Constants of the rule stand in the SQL text: bound, they would be parameters that every call has to carry.
_SECOND: ColumnElement[int] = literal_column("1000", BigInteger)  # in milliseconds
_NEVER: ColumnElement[int] = literal_column("-1", BigInteger)
_ZERO: ColumnElement[int] = literal_column("0", BigInteger)
# Not the very smallest: PostgreSQL reads the digits before the sign, and those would not fit.
BEFORE_ALL: ColumnElement[int] = literal_column("-9223372036854775807", BigInteger)

# The store's clock, in milliseconds: of a statement, and of one that may first have to wait for a row that it changes.
NOW: ColumnElement[int] = bindparam("now", type_=BigInteger)
NOW_HOLDING: ColumnElement[int] = bindparam("now_holding", type_=BigInteger)

# --- the rule, document by document ---------------------------------------------------------------------------------
# Each takes the collection's default as an expression: a column of the joined table, unless a statement that cannot
# join brings another.

Columns = ReadOnlyColumnCollection[str, Column[Any]] | ReadOnlyColumnCollection[str, KeyedColumnElement[Any]]


def _effective_ttl(default_ttl: ColumnElement[int], document: Columns = documents.c) -> ColumnElement[int]:
    return func.coalesce(document.ttl, default_ttl)


def expiry(default_ttl: ColumnElement[int] = collections.c.default_ttl) -> ColumnElement[int | None]:
    """The millisecond at which a document expires; NULL where it never does."""
    effective = _effective_ttl(default_ttl)
    never = or_(default_ttl.is_(None), effective == _NEVER)
    return case((not_(never), documents.c.ts + effective * _SECOND))


def live(
    now: ColumnElement[int] = NOW,
    default_ttl: ColumnElement[int] = collections.c.default_ttl,
    document: Columns = documents.c,
) -> ColumnElement[bool]:
    """The documents that are there."""
    effective = _effective_ttl(default_ttl, document)
    return or_(default_ttl.is_(None), effective == _NEVER, document.ts + effective * _SECOND > now)


def expired(
    now: ColumnElement[int] = NOW, default_ttl: ColumnElement[int] = collections.c.default_ttl
) -> ColumnElement[bool]:
    """The documents that are gone, deleted yet or not: exactly the others."""
    return not_(live(now, default_ttl))


# --- the rule, as ranges of the indexes -----------------------------------------------------------------------------
# What lies at or before a collection's horizon is expired. NULL: nothing is, and no comparison with NULL is true.


def own_horizon(
    now: ColumnElement[int] = NOW, default_ttl: ColumnElement[int] = collections.c.default_ttl
) -> ColumnElement[int | None]:
    """For documents with a ttl of their own: on `expires_at`."""
    return case((default_ttl.is_not(None), now))


def inherited_horizon(
    now: ColumnElement[int] = NOW, default_ttl: ColumnElement[int] = collections.c.default_ttl
) -> ColumnElement[int | None]:
    """For documents that inherit the default: on `_ts`."""
    return case((default_ttl > _ZERO, now - default_ttl * _SECOND))


def due_ranges(
    now: ColumnElement[int] = NOW, default_ttl: ColumnElement[int] = collections.c.default_ttl
) -> tuple[ColumnElement[bool], ...]:
    """Disjoint ranges that together hold the expired documents of a collection."""
    return (
        and_(documents.c.ttl.is_not(None), documents.c.expires_at <= own_horizon(now, default_ttl)),
        and_(documents.c.ttl.is_(None), documents.c.ts <= inherited_horizon(now, default_ttl)),
    )


def live_ranges(now: ColumnElement[int] = NOW) -> tuple[ColumnElement[bool], ...]:
    """Disjoint ranges that together hold the live documents of a collection."""
    return (
        and_(documents.c.ttl.is_not(None), documents.c.expires_at.is_(None)),
        and_(
            documents.c.ttl.is_not(None),
            documents.c.expires_at > func.coalesce(own_horizon(now), BEFORE_ALL),
        ),
        and_(documents.c.ttl.is_(None), documents.c.ts > func.coalesce(inherited_horizon(now), BEFORE_ALL)),
    )
