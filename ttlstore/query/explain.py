"""What becomes of a query, for people."""

import re
from dataclasses import dataclass

from ttlstore.document import pointer
from ttlstore.engine.json import Path
from ttlstore.query import unparse
from ttlstore.query.conditions import NEVER
from ttlstore.query.plan import Plan
from ttlstore.query.syntax import Star

_ID: Path = ("id",)
# How SQLite looks up the collection's default ttl, which it does in every query.
_OWN_STEP = re.compile(r"SCALAR SUBQUERY|SEARCH collections ")


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a query is answered. `print` it."""

    pushed_down: tuple[str, ...]
    """The parts of the query that the database does."""
    indexes: tuple[tuple[str, ...], ...]
    """The paths of each index that serves it, as in the indexing policy.

    Several find the documents of one side of an OR each. None at all: it walks the collection.
    """
    evaluated: tuple[str, ...]
    """The parts of the query that are evaluated afterwards, over the documents that the database found."""
    sql: str
    steps: tuple[str, ...]
    """How the database goes about it, in its own words."""

    @property
    def index(self) -> tuple[str, ...] | None:
        """The paths of the index that serves it, if it is one alone."""
        return self.indexes[0] if len(self.indexes) == 1 else None

    def __str__(self) -> str:
        indexes = " or ".join(map(" ".join, self.indexes))
        lines = [
            f"pushed down: {'; '.join(self.pushed_down) or 'nothing'}",
            f"index:       {indexes or 'none, every document of the collection is read'}",
            f"evaluated:   {'; '.join(self.evaluated) or 'nothing'}",
        ]
        return "\n".join([*lines, *(f"  {step}" for step in self.steps if not _OWN_STEP.match(step))])


def explanation(plan: Plan, sql: str, steps: list[str]) -> Explanation:
    """The plan in words, with what the database says to its statement."""
    return Explanation(tuple(_pushed(plan)), _indexes(plan), tuple(_evaluated(plan)), sql, tuple(steps))


def _indexes(plan: Plan) -> tuple[tuple[str, ...], ...]:
    if plan.either is not None:
        used = [side.indexed or (_ID,) for side in plan.either.sides]
    elif plan.by_id:
        used = [(_ID,)]
    else:
        used = [plan.indexed] if plan.indexed else []
    return tuple(dict.fromkeys(tuple(map(pointer, paths)) for paths in used))


def _pushed(plan: Plan) -> list[str]:
    query = plan.query
    parts = ["no document fulfils the condition"] if plan.test == NEVER else []
    if plan.counted:
        parts.append(unparse.projection(query))
    if plan.pushed:
        parts.append("WHERE " + " AND ".join(map(unparse.expression, plan.pushed)))
    if plan.ordered:
        parts.append(unparse.order_by(query.order_by))
    if plan.windowed and (window := unparse.window(query)):
        parts.append(window)
    return parts


def _evaluated(plan: Plan) -> list[str]:
    if plan.counted:
        return []
    rest = plan.rest
    parts = [f"{'JOIN' if position else 'FROM'} {unparse.source(node)}" for position, node in enumerate(rest.sources)]
    parts = parts[plan.starts_from_documents :]
    if rest.where is not None:
        parts.append(f"WHERE {unparse.expression(rest.where)}")
    if rest.group_by:
        parts.append("GROUP BY " + ", ".join(map(unparse.expression, rest.group_by)))
    if rest.order_by:
        parts.append(unparse.order_by(rest.order_by))
    if not isinstance(rest.projection, Star) or rest.distinct:
        parts.append(unparse.projection(rest))
    if window := unparse.window(rest):
        parts.append(window)
    return parts
