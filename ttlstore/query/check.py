"""What the grammar cannot say: names are known, aggregates stand where they can, nothing is nested too deep."""

from collections.abc import Iterable

from ttlstore.query.mistakes import Mistake, clipped
from ttlstore.query.syntax import (
    Aggregate,
    ArraySubquery,
    Derived,
    Exists,
    Expression,
    Fields,
    Literal,
    Parameter,
    Path,
    Projection,
    Query,
    ScalarSubquery,
    Single,
    Source,
    Star,
    children,
)

MAX_DEPTH = 100  # a condition that people write has some ten levels; each takes up to three of Python's 1,000 frames

_Names = frozenset[str]
_SUBQUERIES = (Exists, ArraySubquery, ScalarSubquery)  # made once: to join types by | takes longer than to check them


def check(query: Query) -> tuple[Parameter, ...]:
    """Raise Mistake if the query cannot mean anything; else its parameters, each where it first stands."""
    checker = _Checker()
    checker.query(query, frozenset(), 0, root=True)
    return tuple(checker.parameters.values())


def aggregates(query: Query) -> bool:
    """Whether the query makes one result of many rows."""
    return bool(query.group_by) or any(map(_has_aggregate, _results(query)))


class _Checker:
    def __init__(self) -> None:
        self.parameters: dict[str, Parameter] = {}

    def query(self, query: Query, outer: _Names, depth: int, *, root: bool = False) -> None:
        """`root` tells that the name FROM starts from means the collection."""
        names = outer
        for source in query.sources:
            names = self._source(source, names, depth, root=root)
            root = False
        if query.where is not None:
            self._expression(query.where, names, depth, aggregate="WHERE chooses single rows")
        for expression in query.group_by:
            self._expression(expression, names, depth, aggregate="GROUP BY makes the groups")
        results, grouped = _results(query), bool(query.group_by)
        for expression in results:
            grouped |= self._expression(expression, names, depth)
        for count in (query.top, query.offset, query.limit):
            if isinstance(count, Parameter):
                self.parameters.setdefault(count.name, count)
        if isinstance(query.projection, Star):
            _check_star(query)
        elif grouped:
            own = names - outer if query.sources else frozenset[str]()
            for expression in results:
                _check_grouped(expression, query, own)

    def _source(self, source: Source, names: _Names, depth: int, *, root: bool) -> _Names:
        if isinstance(source, Derived):
            self.query(source.query, names, _deeper(source.at, depth), root=root)
        elif not root and source.path.alias not in names:
            raise _unknown(source.path, names)
        if source.alias in names and (isinstance(source, Derived) or source.path != Path(source.alias)):
            raise Mistake(source.at, f"there is a {clipped(source.alias)} already: give this one another name")
        return names | {source.alias} if source.alias else names

    def _expression(self, node: Expression, names: _Names, depth: int, aggregate: str | None = None) -> bool:
        """Whether there is an aggregate of this query in it."""
        found = False
        if isinstance(node, Path):
            if node.alias not in names:
                raise _unknown(node, names)
        elif isinstance(node, Parameter):
            self.parameters.setdefault(node.name, node)
        elif isinstance(node, _SUBQUERIES):
            self.query(node.query, names, _deeper(node.at, depth))
        elif not isinstance(node, Literal):
            if isinstance(node, Aggregate):
                if aggregate is not None:
                    raise Mistake(node.at, f"{node.name} cannot stand here: {aggregate}")
                aggregate = "an aggregate takes a value of each row"
                found = True
            deeper = _deeper(node.at, depth)
            for child in children(node):
                found |= self._expression(child, names, deeper, aggregate)
        return found


def _deeper(at: int, depth: int) -> int:
    if depth >= MAX_DEPTH:
        raise Mistake(at, f"this is nested more than {MAX_DEPTH} levels deep: take it apart, or pass a parameter")
    return depth + 1


def _unknown(path: Path, names: _Names) -> Mistake:
    alias, known = clipped(path.alias), sorted(map(clipped, names))
    if not known:
        return Mistake(path.at, f"there is no {alias} here: the outermost query has no FROM")
    if len(known) == 1:
        return Mistake(path.at, f"there is no {alias} here: did you mean {known[0]}.{alias}?")
    return Mistake(path.at, f"there is no {alias} here, only {', '.join(known[:-1])} and {known[-1]}")


def _results(query: Query) -> list[Expression]:
    """What makes the results and their order."""
    projection: Projection = query.projection
    expressions = [order.expression for order in query.order_by]
    if isinstance(projection, Fields):
        return [expression for _, expression in projection.items] + expressions
    return [projection.expression, *expressions] if isinstance(projection, Single) else expressions


def _check_star(query: Query) -> None:
    at = query.projection.at
    if not query.sources:
        raise Mistake(at, "SELECT * needs a FROM")
    if len(query.sources) > 1:
        raise Mistake(at, "SELECT * is for one source, and this query has a JOIN: name what to select")
    if aggregates(query):
        raise Mistake(at, "SELECT * is not for groups: select what is grouped by, and aggregates")


def _has_aggregate(node: Expression) -> bool:
    inside = children(node)
    return isinstance(node, Aggregate) or (bool(inside) and any(map(_has_aggregate, inside)))


def _check_grouped(node: Expression, query: Query, own: Iterable[str]) -> None:
    """A value that differs within a group cannot be shown for it."""
    if isinstance(node, Aggregate) or node in query.group_by:
        return
    if isinstance(node, Path) and node.alias in own:
        rule = (
            "is not in GROUP BY" if query.group_by else "has a value for each row, and the aggregates have one for all"
        )
        raise Mistake(
            node.at, f"{clipped(written(node))} {rule}: put it into GROUP BY, or into an aggregate such as MAX"
        )
    if isinstance(node, _SUBQUERIES) and _uses(node.query, own):
        raise Mistake(node.at, "a subquery beside aggregates cannot see single rows: put it into GROUP BY")
    for child in children(node):
        _check_grouped(child, query, own)


def _uses(query: Query, names: Iterable[str]) -> bool:
    """Whether the query looks at one of the names that are outside of it."""
    inner = set(names)
    for source in query.sources:
        if isinstance(source, Derived):
            if _uses(source.query, inner):
                return True
        elif source.path.alias in inner:
            return True
        inner.discard(source.alias)
    parts = [*_results(query), *query.group_by]
    if query.where is not None:
        parts.append(query.where)
    return any(_mentions(part, inner) for part in parts)


def _mentions(node: Expression, names: Iterable[str]) -> bool:
    if isinstance(node, Path):
        return node.alias in names
    if isinstance(node, _SUBQUERIES):
        return _uses(node.query, names)
    return any(_mentions(child, names) for child in children(node))


def written(path: Path) -> str:
    """The path as a user would write it."""
    text = path.alias
    for step in path.steps:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if step.isidentifier() else f'["{step}"]'
    return text
