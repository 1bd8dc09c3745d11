"""The documents of a collection that were written last."""

from functools import cache

from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    Subquery,
    Text,
    bindparam,
    literal_column,
    or_,
    select,
    union_all,
)

from ttlstore.document import Document, decode
from ttlstore.engine import Engine
from ttlstore.errors import shown
from ttlstore.schema import BY_EXPIRY, BY_WRITE, NOW, collections, documents, expiry, live
from ttlstore.statements import Prepare, Prepared
from ttlstore.ttl import MAX_TTL, Expiry, present
from ttlstore.ttl import expiry as expiry_of

MAX_LIMIT = 2**63 - 1  # documents: as far as the databases count

# Its number stands in the text: a plan that a server keeps for a large collection would be slow for a small one.
_COLLECTION = "/*collection*/"


def newest(
    engine: Engine, collection: int, limit: int, partition: str | None, expiring_within: float | None, *, by_id: bool
) -> list[tuple[Document, Expiry]]:
    """Those written last; of one partition, or that expire within so many seconds, if that is asked for.

    `by_id`: the collection is partitioned by the id, and `partition` is one. Raises ValueError.
    """
    if not isinstance(limit, int) or not 0 <= limit <= MAX_LIMIT:
        raise ValueError(f"limit must be a whole number from 0 to {MAX_LIMIT}, got {shown(limit)}")
    if expiring_within is not None and not 0 <= expiring_within <= MAX_TTL:
        raise ValueError(
            f"expiring_within must be a number of seconds from 0 to {MAX_TTL}, or None for all documents, "
            f"got {shown(expiring_within)}"
        )
    within = None if expiring_within is None else round(expiring_within * 1000)
    sql, arrange = _statement(engine.prepare, by_id=by_id)
    prepared = Prepared(sql.replace(_COLLECTION, f"{collection:d}"), arrange)
    rows = engine.all(prepared, (present(engine.statement_clock), partition, within, limit))
    return [
        (decode(*stored), expiry_of(own_ttl, default_ttl, stored[1], now))
        for _, own_ttl, default_ttl, now, *stored in rows
    ]


@cache
def _statement(prepare: Prepare, *, by_id: bool) -> Prepared:
    """The last of those that inherit the default, which an index has in order, and of the others, which are sorted.

    No index has these in order. One for them would cost every write of theirs more than it is worth.
    """
    key = documents.c.id if by_id else documents.c.partition
    inherited = _part(documents.c.ttl.is_(None), key, BY_WRITE.name)
    own = _part(documents.c.ttl.is_not(None), key, BY_EXPIRY.name)
    both = union_all(select(inherited), select(own)).subquery("both")
    last = select(both).order_by(both.c.ts.desc(), both.c.seq.desc()).limit(bindparam("limit"))
    return prepare(last, "now", "asked_partition", "within", "limit")


def _part(condition: ColumnElement[bool], key: ColumnElement[str], index: str | None) -> Subquery:
    collection: ColumnElement[int] = literal_column(_COLLECTION)
    this = collections.c.id == collection
    default_ttl = select(collections.c.default_ttl).where(this).scalar_subquery()
    name = select(collections.c.name).where(this).scalar_subquery()
    partition: BindParameter[str | None] = bindparam("asked_partition", type_=Text)
    within: BindParameter[int | None] = bindparam("within", type_=BigInteger)
    found = (documents.c.body, documents.c.ts, documents.c.etag, documents.c.checksum)
    return (
        select(documents.c.seq, documents.c.ttl, default_ttl.label("default_ttl"), NOW.label("now"), *found)
        .with_hint(documents, f"INDEXED BY {index}", "sqlite")
        .where(
            documents.c.collection_id == collection,
            name.is_not(None),  # dropped, unless it has one
            condition,
            live(default_ttl=default_ttl),
            or_(partition.is_(None), key == partition),
            or_(within.is_(None), expiry(default_ttl) <= NOW + within),
        )
        .order_by(documents.c.ts.desc(), documents.c.seq.desc())
        .limit(bindparam("limit"))
        .subquery()
    )
