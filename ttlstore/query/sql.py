"""The SQL of queries: a frame that SQLAlchemy compiles once per engine, filled with the conditions of each query."""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from sqlalchemy import ClauseElement, ColumnElement, bindparam, func, literal_column, select

from ttlstore.engine.json import SEQ, Json, Path, Rank
from ttlstore.query.conditions import All, Among, AnyOf, Compare, InPartition, IsA, Operand, Test
from ttlstore.schema import collections, documents, live
from ttlstore.statements import Prepare, Values

NO_LIMIT = 2**63 - 1
_SLOT = re.compile(r"/\*(\w+)\*/")

# The properties that have columns of their own. None of these compares with another type than its own.
_COLUMNS: dict[Path, tuple[str, Rank]] = {
    ("id",): ("documents.id", Rank.STRING),
    ("_etag",): ("documents.etag", Rank.STRING),
    ("_ts",): ("(documents._ts / 1000)", Rank.NUMBER),
    ("ttl",): ("documents.ttl", Rank.NUMBER),
}
_NULLABLE: Path = ("ttl",)


class Sql(NamedTuple):
    """A part of a statement, and what its parameters stand for, in their order."""

    text: str
    operands: tuple[Operand, ...] = ()


class SortKey(NamedTuple):
    """An expression to sort by; never NULL."""

    text: str
    descending: bool
    spared: bool = False
    """Whether the others have the same order without it: it takes time to work out, and only an index needs it."""


# --- conditions and keys --------------------------------------------------------------------------------------------


def condition(test: Test, json: Json, indexed: Iterable[Path]) -> Sql:
    """A test as SQL; on the indexed paths in the way that the index understands."""
    if isinstance(test, All):
        return _joined(" AND ", test.tests, json, indexed) if test.tests else Sql("1 = 1")
    if isinstance(test, AnyOf):
        return _joined(" OR ", test.tests, json, indexed) if test.tests else Sql("1 = 0")
    if isinstance(test, InPartition):
        return Sql(f"documents.partition = {json.placeholder}", (test.operand,))
    path = test.path
    if path in _COLUMNS:
        return _on_column(test, json)
    by_index = path in indexed
    if isinstance(test, IsA):
        return Sql(json.is_a(path, test.ranks, indexed=by_index))
    long = test.long and test.rank is Rank.STRING
    times = 2 if long and json.shortens else 1
    if isinstance(test, Among):
        text = json.among(path, test.rank, len(test.operands), indexed=by_index, long=long)
        return Sql(text, test.operands * times)
    if test.plain and test.operator == "=" and not by_index:
        text = json.equals_plain(path, long=long)
    else:
        text = json.compare(path, test.rank, test.operator, indexed=by_index, long=long)
    return Sql(text, (test.operand,) * times)


def _joined(joint: str, tests: tuple[Test, ...], json: Json, indexed: Iterable[Path]) -> Sql:
    parts = [condition(part, json, indexed) for part in tests]
    text = joint.join([part.text for part in parts])
    return Sql(f"({text})", tuple([operand for part in parts for operand in part.operands]))


def _on_column(test: IsA | Compare | Among, json: Json) -> Sql:
    column, own_rank = _column(test.path, json)
    if isinstance(test, IsA):
        if test.path != _NULLABLE:
            return Sql("1 = 1" if own_rank in test.ranks else "1 = 0")
        there, missing = own_rank in test.ranks, Rank.UNDEFINED in test.ranks
        if there == missing:
            return Sql("1 = 1" if there else "1 = 0")
        return Sql(f"{column} IS {'NOT ' if there else ''}NULL")
    if test.rank is not own_rank:
        return Sql("1 = 0")
    if isinstance(test, Compare):
        return Sql(f"{column} {test.operator} {json.placeholder}", (test.operand,))
    return Sql(f"{column} IN ({', '.join([json.placeholder] * len(test.operands))})", test.operands)


def _column(path: Path, json: Json) -> tuple[str, Rank]:
    column, rank = _COLUMNS[path]
    return json.text(column) if rank is Rank.STRING else column, rank


def has_column(path: Path) -> bool:
    return path in _COLUMNS


def sort_keys(path: Path, descending: bool, json: Json, *, last: bool, by_index: bool) -> tuple[SortKey, ...]:
    """What sorts documents by a path; `last`: nothing but their place comes after it."""
    if path == _NULLABLE:
        texts: tuple[str, ...] = ("CASE WHEN documents.ttl IS NULL THEN 0 ELSE 1 END", "coalesce(documents.ttl, 0)")
    elif path in _COLUMNS:
        texts = (_column(path, json)[0],)
    else:
        texts, alone = json.keys(path, last=last), json.keys_alone(path)
        return tuple([SortKey(text, descending, not (by_index or text in alone)) for text in texts])
    return tuple([SortKey(text, descending) for text in texts])


# --- statements -----------------------------------------------------------------------------------------------------


class Frame:
    """A statement with slots, and its parameters: those of the conditions, then the present, then limit and offset."""

    def __init__(self, sql: str, presents: int) -> None:
        self._pieces = _SLOT.split(sql)
        self._presents = presents

    def filled(self, **slots: str) -> str:
        # In one pass: what fills a slot may itself look like one.
        pieces = list(self._pieces)
        pieces[1::2] = [slots[name] for name in self._pieces[1::2]]
        return "".join(pieces)

    def values(self, of_conditions: Values, now: int, *window: int) -> Values:
        """The parameters in their order."""
        return (*of_conditions, *((now,) * self._presents), *window)


class Frames(NamedTuple):
    rows: Frame
    """The keys, seq, body, _ts, etag and checksum of the documents in order."""
    found: Frame
    """All of that but the keys, in any order, within a statement that has the collection's row."""
    number: Frame
    """How many there are."""


@cache
def frames(prepare: Prepare) -> Frames:
    """The frames for an engine. The TTL condition is in them, before any limit."""
    collection: ColumnElement[int] = literal_column("/*collection*/")
    this = collections.c.id == collection
    default_ttl = select(collections.c.default_ttl).where(this).scalar_subquery()
    name = select(collections.c.name).where(this).scalar_subquery()
    # Not of type Boolean: that would become `(…) = 1`, through which SQLite sees no index.
    condition: ColumnElement[bool] = literal_column("/*condition*/")
    conditions = (
        documents.c.collection_id == collection,
        name.is_not(None),  # dropped, unless it has one
        condition,  # before the next: fewer rows fail that one
        live(default_ttl=default_ttl),
    )
    content = (documents.c.body, documents.c.ts, documents.c.etag, documents.c.checksum)
    rows = (
        select(literal_column(f"/*keys*/{SEQ}"), *content)
        .select_from(documents)
        .with_hint(documents, "/*hint*/", "sqlite")
        .where(*conditions)
        .order_by(literal_column("/*order*/"))
        .limit(bindparam("limit"))
        .offset(bindparam("offset"))
    )
    around: ColumnElement[int] = literal_column(f"{collections.name}.{collections.c.default_ttl.name}")
    found = select(literal_column(SEQ), *content).where(conditions[0], condition, live(default_ttl=around))
    number = select(func.count()).select_from(documents).with_hint(documents, "/*hint*/", "sqlite").where(*conditions)
    return Frames(
        _frame(prepare, rows, "now", "limit", "offset"), _frame(prepare, found, "now"), _frame(prepare, number, "now")
    )


def _frame(prepare: Prepare, statement: ClauseElement, *names: str) -> Frame:
    prepared = prepare(statement, *names)
    presents = prepared.arrange(names).count("now")
    assert prepared.arrange(names) == ("now",) * presents + names[1:], "the slots stand between the parameters"
    return Frame(prepared.sql, presents)


def order_text(keys: Sequence[SortKey]) -> str:
    return ", ".join([f"{key.text} DESC" if key.descending else key.text for key in keys if not key.spared])
