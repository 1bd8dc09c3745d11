"""What becomes of a query, for people."""

import re
from dataclasses import dataclass

from ttlstore.document import pointer
from ttlstore.query import unparse
from ttlstore.query.conditions import NEVER
from ttlstore.query.plan import Plan
from ttlstore.query.syntax import Star

# How SQLite looks up the collection's default ttl, which it does in every query.
_OWN_STEP = re.compile(r"SCALAR SUBQUERY|SEARCH collections ")


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a query is answered. `print` it."""

    pushed_down: tuple[str, ...]
    """The parts of the query that the database does."""
    index: tuple[str, ...] | None
    """The paths of the index that serves it, as in the indexing policy; None: it walks the collection."""
    evaluated: tuple[str, ...]
    """The parts of the query that are evaluated afterwards, over the documents that the database found."""
    sql: str
    steps: tuple[str, ...]
    """How the database goes about it, in its own words."""

    def __str__(self) -> str:
        lines = [
            f"pushed down: {'; '.join(self.pushed_down) or 'nothing'}",
            f"index:       {' '.join(self.index) if self.index else 'none, every document of the collection is read'}",
            f"evaluated:   {'; '.join(self.evaluated) or 'nothing'}",
        ]
        return "\n".join([*lines, *(f"  {step}" for step in self.steps if not _OWN_STEP.match(step))])


def explanation(plan: Plan, sql: str, steps: list[str]) -> Explanation:
    """The plan in words, with what the database says to its statement."""
    index = tuple(map(pointer, plan.indexed)) or (("/id",) if plan.by_id else None)
    return Explanation(tuple(_pushed(plan)), index, tuple(_evaluated(plan)), sql, tuple(steps))


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
