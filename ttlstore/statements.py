"""Every statement of the point operations and of collections, built from the schema and compiled once per engine.

Running a statement through SQLAlchemy costs several times what SQLite needs to answer it. So SQLAlchemy builds the
statements, and the engine runs their text on the driver's own cursor. `prepare` takes a statement and the names of its
parameters, in the order in which callers pass the values.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from sqlalchemy import (
    BigInteger,
    BindParameter,
    ClauseElement,
    Column,
    ColumnElement,
    Delete,
    Dialect,
    FromClause,
    Insert,
    Select,
    Table,
    Update,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy.sql.dml import ReturningDelete

from ttlstore.schema import (
    BEFORE_ALL,
    IN_ORDER,
    KEY_COLUMNS,
    NOW,
    NOW_HOLDING,
    collections,
    documents,
    due_ranges,
    expired,
    expiry,
    live,
    live_ranges,
)

Values = tuple[Any, ...]


class Prepared(NamedTuple):
    """The text of a statement, and what brings the values of its parameters into the text's order."""

    sql: str
    arrange: Callable[[Values], Values]


class Prepare(Protocol):
    def __hash__(self) -> int: ...
    def __call__(self, statement: ClauseElement, *names: str) -> Prepared: ...


def preparing_for(dialect: Dialect) -> Prepare:
    """What turns statements into the dialect's text, once and for all."""

    def prepare(statement: ClauseElement, *names: str) -> Prepared:
        compiled = statement.compile(dialect=dialect)
        text_order = compiled.positiontup or []  # type: ignore[attr-defined]
        constants = {name: value for name, value in compiled.params.items() if name not in names}
        available = (*names, *constants)
        if text_order == list(available) and not constants:
            return Prepared(str(compiled), tuple)  # as they are
        indices = tuple(available.index(name) for name in text_order)
        tail = tuple(constants.values())

        def arrange(values: Values) -> Values:
            everything = values + tail
            return tuple([everything[index] for index in indices])

        return Prepared(str(compiled), arrange)

    return prepare


KEY = ("id", "partition")
CONTENT = ("ttl", "ts", "etag", "size", "checksum", "body")
# SQLAlchemy keeps the plain names of the columns that a statement sets for parameters of its own making.
NEW_CONTENT = tuple(f"new_{name}" for name in CONTENT)

SETTINGS = ("id", "name", "partition_key", "default_ttl", "indexing_mode", "indexed_paths")

_not_dropped = collections.c.name.is_not(None)
this_collection = and_(collections.c.id == bindparam("collection"), _not_dropped)
its_collection = documents.c.collection_id == collections.c.id
this_document = and_(*(documents.c[name] == bindparam(name) for name in KEY))
this_key = and_(documents.c.collection_id == bindparam("collection"), this_document)


# A statement that goes by a collection's default and changes documents must keep the default from changing until it is
# done. With `with_for_update(read=True)` it does, where rows have locks: on SQLite that is no text at all, for there a
# statement that writes has the whole database to itself.


def _new_content() -> dict[Column[Any], BindParameter[Any]]:
    columns = (documents.c[name] for name in CONTENT)
    return {column: bindparam(new, type_=column.type) for column, new in zip(columns, NEW_CONTENT, strict=True)}


class Insertions(NamedTuple):
    upsert: Insert
    create: Insert
    copy: Insert
    """Of a document with the time of its last write, unless that version of it is there and live, or a newer one."""


class Changes(NamedTuple):
    """Of a live document."""

    replacement: Update
    removal: Delete
    version: ColumnElement[str]
    """Its etag."""


def insertions(
    insert_or: Callable[[Table], Any],
    key: Sequence[ColumnElement[Any]],
    content: Mapping[Column[Any], ColumnElement[Any]],
    *order: ColumnElement[Any],
) -> Insertions:
    """The statements that bring new documents: one by its parameters, or many that come from elsewhere."""
    source = select(collections.c.id, *key, *content.values()).where(this_collection).order_by(*order)
    columns = [documents.c.collection_id, *(documents.c[name] for name in KEY), *content]
    insertion = insert_or(documents).from_select(columns, source)
    # Not INSERT OR REPLACE: it would delete the row and make another, at another place in the order.
    overwriting = {
        "index_elements": KEY_COLUMNS,
        "set_": {column: insertion.excluded[column.key] for column in content},
    }
    default_ttl = select(collections.c.default_ttl).where(this_collection).with_for_update(read=True)
    # An expired row that is still there is overwritten by the same statement; no row changed: a live one exists.
    gone = expired(NOW_HOLDING, default_ttl.scalar_subquery())
    older = and_(documents.c.ts <= insertion.excluded.ts, documents.c.etag != insertion.excluded.etag)
    return Insertions(
        insertion.on_conflict_do_update(**overwriting),
        insertion.on_conflict_do_update(**overwriting, where=gone),
        insertion.on_conflict_do_update(**overwriting, where=or_(gone, older)),
    )


def _collection_and_document(*columns: Any) -> Select[Any]:
    """One row if the collection is there, filled from its live document of this key if that is there too."""
    joined = collections.outerjoin(documents, and_(its_collection, this_document, live()))
    return select(*columns).select_from(joined).where(this_collection)


def _range_count(range_: ColumnElement[bool]) -> ColumnElement[int]:
    counted = select(func.count()).select_from(documents).where(its_collection, range_)
    return counted.correlate(collections).scalar_subquery()


def _first(column: ColumnElement[int], part: ColumnElement[bool]) -> ColumnElement[int]:
    # Above the smallest number: past the NULLs that lie at the start of the index.
    first = select(func.min(column)).where(its_collection, part, column > BEFORE_ALL)
    return first.correlate(collections).scalar_subquery()


def _range(column: ColumnElement[int], part: ColumnElement[bool]) -> Select[Any]:
    return select(func.count(), func.coalesce(func.sum(documents.c.size), 0), func.min(column)).where(
        documents.c.collection_id == bindparam("collection"),
        part,
        column > bindparam("low"),
        column <= bindparam("high"),
    )


def _delete_some(
    joined: FromClause, order: ColumnElement[int], *conditions: ColumnElement[bool]
) -> ReturningDelete[tuple[int, int]]:
    """Delete the first of the rows that fulfil the conditions now: so many, or fewer where they are large.

    In an order, and from a start in it. Rows that another is about to change are passed over: they will be live again,
    or gone, or there the next time.
    """
    from_start = order >= bindparam("start", type_=BigInteger)
    rows: BindParameter[int] = bindparam("rows", type_=BigInteger)
    most: BindParameter[int] = bindparam("bytes", type_=BigInteger)
    due = select(documents.c.seq, documents.c.size).select_from(joined).where(*conditions, from_start).order_by(order)
    # By the largest of them, which the index tells: adding up their sizes took a tenth of the whole time.
    first = due.limit(rows).subquery()
    largest = select(func.coalesce(func.max(first.c.size), 1)).scalar_subquery()
    fitting = case((largest * rows <= most, rows), else_=most // largest + 1)
    chosen = due.with_only_columns(documents.c.seq).limit(fitting).with_for_update(skip_locked=True, of=documents)
    return delete(documents).where(documents.c.seq.in_(chosen)).returning(documents.c.seq, order)


class Statements:
    """The statements, ready to run."""

    def __init__(self, prepare: Prepare, insert_or: Callable[[Table], Any]) -> None:
        """`insert_or` is the dialect's own INSERT, the one that knows ON CONFLICT."""
        self._of_reading(prepare)
        self._of_writing(prepare, insert_or)
        self._of_collections(prepare, insert_or)
        self._of_housekeeping(prepare)

    def _of_reading(self, prepare: Prepare) -> None:
        found = (documents.c.body, documents.c.ts, documents.c.etag, documents.c.checksum)
        self.read = prepare(_collection_and_document(*found), *KEY, "now", "collection")
        self.expiry = prepare(
            _collection_and_document(documents.c.ts, documents.c.ttl, collections.c.default_ttl, NOW),
            *(*KEY, "now", "collection"),
        )
        any_partition = select(1).where(its_collection, documents.c.id == bindparam("id"), live())
        self.contains = prepare(
            select(exists(any_partition.correlate(collections))).where(this_collection),
            *("id", "now", "collection"),
        )
        in_order = (
            select(documents.c.seq, expiry().label("expiry"), *found)
            .select_from(collections.join(documents, its_collection))
            # Left to itself SQLite walks the table, and with it the documents of every other collection.
            .with_hint(documents, f"INDEXED BY {IN_ORDER.name}", "sqlite")
            .where(this_collection, documents.c.seq > bindparam("after"), live())
            .order_by(documents.c.seq)
        )
        self.page = prepare(in_order.limit(bindparam("limit")), *("collection", "after", "now", "limit"))
        self.all_in_order = prepare(in_order, *("collection", "after", "now"))
        # For those who take as many documents at a time as their memory allows.
        self.sizes = prepare(
            in_order.with_only_columns(documents.c.seq, documents.c.size), "collection", "after", "now"
        )
        up_to = in_order.where(documents.c.seq <= bindparam("last"))
        self.up_to = prepare(up_to, *("collection", "after", "last", "now"))
        self.keys = prepare(
            select(*(documents.c[name] for name in (*KEY, "ts", "etag")))
            .select_from(collections.join(documents, its_collection))
            # Left to itself it sorts them, and SQLite has no other name for the index of the constraint.
            .with_hint(documents, "INDEXED BY sqlite_autoindex_documents_1", "sqlite")
            .where(this_collection, live())
            .order_by(*(documents.c[name] for name in KEY)),
            *("collection", "now"),
        )
        # For checking: every row, expired or not, and its collection's partition key.
        checked = ("seq", "partition", "id", "ttl", "size", "body", "ts", "etag", "checksum")
        self.rows = prepare(
            select(collections.c.partition_key, *(documents.c[name] for name in checked))
            .select_from(documents.join(collections, its_collection))
            .where(documents.c.seq > bindparam("after"))
            .order_by(documents.c.seq)
            .limit(bindparam("limit")),
            *("after", "limit"),
        )
        own, inherited, endless = (_range_count(range_) for range_ in live_ranges())
        self.count = prepare(select(own + inherited + endless).where(this_collection), "now", "collection")

    def _of_writing(self, prepare: Prepare, insert_or: Callable[[Table], Any]) -> None:
        content = _new_content()
        key = [bindparam(name, type_=documents.c[name].type) for name in KEY]
        upsert, create, copy = insertions(insert_or, key, content)
        self.upsert = prepare(upsert, *KEY, *NEW_CONTENT, "collection")
        self.create = prepare(create, *KEY, *NEW_CONTENT, "collection", "now_holding")
        self.copy = prepare(copy, *KEY, *NEW_CONTENT, "collection", "now_holding")

        replacement, removal, version = self._changes(content)
        unchanged = version == bindparam("if_match")
        names = (*KEY, *NEW_CONTENT, "collection", "now_holding")
        self.replace = prepare(replacement, *names)
        self.replace_if = prepare(replacement.where(unchanged), *names, "if_match")
        self.delete = prepare(removal, *KEY, "collection", "now_holding")
        self.delete_if = prepare(removal.where(unchanged), *KEY, "collection", "now_holding", "if_match")

    def _changes(self, content: Mapping[Column[Any], ColumnElement[Any]]) -> Changes:
        its_row = select(1).select_from(collections).where(its_collection, _not_dropped, live(NOW_HOLDING))
        here = and_(this_key, exists(its_row.correlate(documents)))
        return Changes(update(documents).values(content).where(here), delete(documents).where(here), documents.c.etag)

    def _of_collections(self, prepare: Prepare, insert_or: Callable[[Table], Any]) -> None:
        settings = select(*(collections.c[name] for name in SETTINGS))
        self.collection_named = prepare(settings.where(collections.c.name == bindparam("name")), "name")
        self.collection = prepare(settings.where(this_collection), "collection")
        self.collection_to_change = prepare(
            settings.where(this_collection).with_for_update(key_share=True), "collection"
        )
        self.list_collections = prepare(settings.where(_not_dropped).order_by(collections.c.name))
        columns = (*SETTINGS[1:], "created_at")
        self.create_collection = prepare(
            insert_or(collections)
            .values({name: bindparam(f"new_{name}") for name in columns})
            .on_conflict_do_nothing(index_elements=["name"]),
            *(f"new_{name}" for name in columns),
        )
        changed = SETTINGS[3:]
        self.configure = prepare(
            update(collections).values({name: bindparam(f"new_{name}") for name in changed}).where(this_collection),
            *(*(f"new_{name}" for name in changed), "collection"),
        )
        # The documents are left to the vacuum, and the name is free at once.
        self.drop_collection = prepare(
            update(collections).values(name=literal_column("NULL")).where(collections.c.name == bindparam("old_name")),
            "old_name",
        )

    def _of_housekeeping(self, prepare: Prepare) -> None:
        own, inherited = documents.c.expires_at, documents.c.ts
        # What is next to expire: of the documents with a ttl of their own, and the first written of the others.
        self.next_due = prepare(
            select(
                collections.c.id,
                collections.c.name,
                collections.c.default_ttl,
                _first(own, documents.c.ttl.is_not(None)),
                _first(inherited, documents.c.ttl.is_(None)),
                collections.c.indexing_mode,
                collections.c.indexed_paths,
            )
        )
        # How many, how many bytes and the first, within (low, high] of an index.
        self.own_range = prepare(_range(own, documents.c.ttl.is_not(None)), "collection", "low", "high")
        self.inherited_range = prepare(_range(inherited, documents.c.ttl.is_(None)), "collection", "low", "high")
        self.endless = prepare(
            select(func.count(), func.coalesce(func.sum(documents.c.size), 0)).where(
                documents.c.collection_id == bindparam("collection"),
                documents.c.ttl.is_not(None),
                own.is_(None),
            ),
            "collection",
        )

        joined = documents.join(collections, its_collection)
        this = collections.c.id == bindparam("collection")
        # Not joined: PostgreSQL would sort all that is due, though the index has it in order.
        default_ttl = select(collections.c.default_ttl).where(this_collection).with_for_update(read=True)
        of_this = documents.c.collection_id == bindparam("collection")
        due = due_ranges(NOW - bindparam("grace", type_=BigInteger), default_ttl.scalar_subquery())
        names = ("collection", "now", "grace", "start", "rows", "bytes")
        self.delete_own_due, self.delete_inherited_due = (
            prepare(_delete_some(documents, order, of_this, range_), *names)
            for order, range_ in zip((own, inherited), due, strict=True)
        )
        self.delete_dropped = prepare(
            _delete_some(joined, documents.c.seq, this, collections.c.name.is_(None)),
            *("collection", "start", "rows", "bytes"),
        )
        without_documents = ~exists(select(1).where(its_collection).correlate(collections))
        self.forget_dropped = prepare(
            delete(collections).where(this, collections.c.name.is_(None), without_documents), "collection"
        )

        found = (documents.c.body, documents.c.ts, documents.c.etag, documents.c.checksum)
        self.waiting = prepare(
            select(documents.c.seq, documents.c.ttl, collections.c.default_ttl, NOW, *found)
            .select_from(joined)
            .where(this_collection, documents.c.seq > bindparam("after"), expired())
            .order_by(documents.c.seq)
            .limit(bindparam("limit")),
            *("collection", "after", "now", "limit"),
        )
        self.read_waiting = prepare(
            select(*found).select_from(joined).where(this_collection, this_document, expired()),
            *("collection", *KEY, "now"),
        )
