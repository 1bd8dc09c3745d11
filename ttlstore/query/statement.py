"""A query as a statement of the database: its plan and its SQL, once for a text and the kinds of its parameters."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from ttlstore.engine import Settings
from ttlstore.engine.json import Json, Path
from ttlstore.query.conditions import Kind, Test
from ttlstore.query.pages import EVERYTHING, Segment
from ttlstore.query.parser import CACHED_LENGTH, parse
from ttlstore.query.plan import Plan, Sides, plan
from ttlstore.query.sql import Frames, Sql, condition, order_text
from ttlstore.query.syntax import Query
from ttlstore.query.values import Value
from ttlstore.statements import Prepared, Values

CACHED_PLANS = 512  # as many as there are parsed texts

Indexes = tuple[tuple[str, tuple[Path, ...]], ...]  # by name, and of the kind that a cache can go by


class Statement(NamedTuple):
    """A plan and its SQL."""

    planned_by: Settings
    plan: Plan
    condition: Sql
    hint: str
    rows: Prepared
    unordered: Prepared | None
    """The same rows in any order, within a statement that has the collection's row; takes the same values.

    Only where the order is that in which an index has them.
    """
    number: Prepared

    def values(self, parameters: Mapping[str, Value]) -> Values:
        """Of the parameters of the condition."""
        return tuple([operand.value(parameters) for operand in self.condition.operands])


def statement(query: Query, *known: Any) -> Statement:
    """As `_statement`; once for each text that is not too long to be kept."""
    return _statement_once(query.text, *known) if len(query.text) <= CACHED_LENGTH else _statement(query, *known)


def _statement(
    query: Query,
    kinds: tuple[tuple[str, Kind], ...],
    partition: tuple[Test, ...],
    settings: Settings,
    indexes: Indexes,
    json: Json,
    frames: Frames,
) -> Statement:
    collection = settings.collection
    planned = plan(query, dict(kinds), json, dict(indexes), partition)
    if planned.either is not None:
        hint, tested = _gathered(planned.either, json, collection)
    else:
        tested = condition(planned.test, json, planned.indexed)
        hint = json.use_key() if planned.by_id else json.use(planned.index)
    number = frames.number.filled(collection=f"{collection:d}", condition=tested.text, hint=hint)
    if planned.gathered:
        hint, text = json.gather(collection, [(hint, tested.text)])
        tested = tested._replace(text=text)
    unfinished = Statement(settings, planned, tested, hint, _as_it_is(number), None, _as_it_is(number))
    unordered = _unordered(frames, collection, unfinished) if planned.by_place_in_index else None
    return unfinished._replace(rows=rows_of(frames, collection, unfinished), unordered=unordered)


def _gathered(either: Sides, json: Json, collection: int) -> tuple[str, Sql]:
    """What to use, and the condition, for documents that several indexes find."""
    sides = [condition(side.test, json, side.indexed) for side in either.sides]
    uses = [json.use_key() if side.by is None else json.use(side.by) for side in either.sides]
    hint, text = json.gather(collection, [(use, side.text) for use, side in zip(uses, sides, strict=True)])
    beside = condition(either.beside, json, ())
    operands = tuple([operand for part in (*sides, beside) for operand in part.operands])
    return hint, Sql(f"({text} AND {beside.text})", operands)


@lru_cache(maxsize=CACHED_PLANS)
def _statement_once(text: str, *known: Any) -> Statement:
    return _statement(parse(text), *known)


def rows_of(
    frames: Frames, collection: int, statement: Statement, segment: Segment = EVERYTHING, with_keys: bool = False
) -> Prepared:
    keys = statement.plan.keys
    found = statement.condition.text
    return _as_it_is(
        frames.rows.filled(
            collection=f"{collection:d}",
            condition=found if segment is EVERYTHING else f"{found} AND {segment.text}",
            hint=statement.hint,
            order=order_text(keys[segment.fixed :]),  # SQLite would sort by the others once more
            keys="".join(f"{key.text}, " for key in keys[:-1]) if with_keys else "",
        )
    )


def _unordered(frames: Frames, collection: int, statement: Statement) -> Prepared:
    sql = frames.found.filled(collection=f"{collection:d}", condition=statement.condition.text)
    return Prepared(sql, lambda values: values[:-2])


def _as_it_is(sql: str) -> Prepared:
    return Prepared(sql, lambda values: values)
