"""What of a query the database does, and what is evaluated afterwards. That changes its speed, never its result."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ttlstore.engine.json import Json, Path
from ttlstore.query.check import aggregates
from ttlstore.query.conditions import (
    DEFINED,
    All,
    Among,
    Compare,
    IsA,
    Kind,
    Test,
    Translator,
    all_of,
    weight,
)
from ttlstore.query.sql import SEQ, SortKey, has_column, sort_keys
from ttlstore.query.syntax import (
    Aggregate,
    Derived,
    Expression,
    Fields,
    Literal,
    Logical,
    Query,
    Single,
    Star,
    Within,
    changed,
)
from ttlstore.query.values import UNDEFINED

Indexes = Mapping[str, tuple[Path, ...]]
MAX_SORTED = 16  # paths in an ORDER BY that is pushed down: each takes a kilobyte of SQL
Sorting = tuple[tuple[Path, bool], ...]  # paths, and whether they descend


@dataclass(frozen=True)
class Plan:
    """How a query is answered."""

    query: Query
    test: Test
    """What the database tests."""
    pushed: tuple[Expression, ...]
    """The parts of WHERE that the test covers."""
    keys: tuple[SortKey, ...]
    """What the database sorts by; the place in the collection is the last of them."""
    rest: Query
    """What is evaluated over the rows."""
    index: str | None
    indexed: tuple[Path, ...]
    """The paths of the index that serves it."""
    by_id: bool
    """Whether the key of the documents serves it."""
    ordered: bool
    """Whether the database does the query's ORDER BY."""
    windowed: bool
    """Whether the database does TOP, OFFSET and LIMIT."""
    counted: bool
    """Whether the database counts, and only the count comes back."""

    @cached_property
    def gathered(self) -> bool:
        """Whether the index finds the rows in another order than they are to come in."""
        return self.index is not None and not self.ordered and not _equal(_parts(self.test)).issuperset(self.indexed)

    @cached_property
    def in_steps(self) -> bool:
        """Whether every row has results of its own, in the order of the rows: so a page can go on after a row."""
        rest = self.rest
        from_rows = bool(rest.sources) and not isinstance(rest.sources[0], Derived)
        return from_rows and not (rest.order_by or rest.distinct or aggregates(rest))

    @cached_property
    def several(self) -> bool:
        """Whether a row can have several results."""
        return len(self.query.sources) > 1 or not isinstance(self.query.sources[0], Within)

    @cached_property
    def starts_from_documents(self) -> bool:
        """Whether the first source is the documents themselves."""
        return bool(self.query.sources) and _is_collection(self.query)

    @cached_property
    def as_they_are(self) -> bool:
        """Whether the rows are the results."""
        rest = self.rest
        return (
            isinstance(rest.projection, Star)
            and len(rest.sources) == 1
            and self.starts_from_documents
            and rest == Query(rest.projection, rest.sources)
        )


def plan(query: Query, kinds: Mapping[str, Kind], json: Json, indexes: Indexes, partition: tuple[Test, ...]) -> Plan:
    """The plan for parameters of these kinds, with these indexes. `partition` is what every document must pass."""
    tests, pushed, residual = list(partition), list[Expression](), list[Expression]()
    conjuncts = _conjuncts(query.where)
    translator = _translator(query, kinds, json)
    order: Sorting = ()
    if translator is None:
        residual = conjuncts
    else:
        if root := translator.root:
            tests.append(IsA(root, DEFINED))
        total = weight(All(tuple(tests)))
        for conjunct in conjuncts:
            outcomes = translator.outcomes(conjunct)
            if outcomes is not None and (heavier := total.plus(weight(outcomes.true))).fits():
                total = heavier
                tests.append(outcomes.true)
                pushed.append(conjunct)
            else:
                residual.append(conjunct)
        order = _sorted_paths(query, translator)
    test = all_of(tests)
    simple = translator is not None and len(query.sources) == 1 and not residual
    counted = simple and _counts_rows(query)
    ordered = bool(order) and len(query.sources) == 1
    windowed = (
        simple
        and (query.top is not None or query.limit is not None)
        and not query.distinct
        and not isinstance(query.projection, Single)
        and not aggregates(query)
        and (ordered or not query.order_by)
    )
    changes: dict[str, object] = {"where": _conjunction(residual)}
    if ordered:
        changes["order_by"] = ()
    if windowed:
        changes.update(top=None, offset=None, limit=None)
    chosen = _choose(_parts(test), order if ordered else (), indexes)
    return Plan(
        query,
        test,
        tuple(pushed),
        _keys(order if ordered else (), _parts(test), json),
        changed(query, **changes),
        chosen,
        indexes[chosen] if chosen else (),
        chosen is None and _by_id(_parts(test), order if ordered else ()),
        ordered,
        windowed,
        counted,
    )


# --- the query's parts ----------------------------------------------------------------------------------------------


def _is_collection(query: Query) -> bool:
    return isinstance(query.sources[0], Within) and not query.sources[0].path.steps


def _translator(query: Query, kinds: Mapping[str, Kind], json: Json) -> Translator | None:
    """For the conditions on the first source, if that is a document or a place in it."""
    first = query.sources[0] if query.sources else None
    if not isinstance(first, Within) or first.alias in [source.alias for source in query.sources[1:]]:
        return None
    if not json.reaches(first.path.steps):
        return None
    return Translator(first.alias, first.path.steps, kinds, json)


def _conjuncts(condition: Expression | None) -> list[Expression]:
    if isinstance(condition, Logical) and condition.operator == "AND":
        return [part for operand in condition.operands for part in _conjuncts(operand)]
    return [] if condition is None else [condition]


def _conjunction(parts: list[Expression]) -> Expression | None:
    if len(parts) > 1:
        return Logical("AND", tuple(parts), parts[0].at)
    return parts[0] if parts else None


def _parts(test: Test) -> tuple[Test, ...]:
    return test.tests if isinstance(test, All) else (test,)


def _sorted_paths(query: Query, translator: Translator) -> Sorting:
    """The paths of ORDER BY and whether they descend; none if it sorts by anything else."""
    if aggregates(query) or len(query.order_by) > MAX_SORTED:
        return ()
    found: list[tuple[Path, bool]] = []
    for order in query.order_by:
        path = translator.path(order.expression)
        if path is None:
            return ()
        found.append((path, order.descending))
    return tuple(found)


def _keys(order: Sorting, parts: tuple[Test, ...], json: Json) -> tuple[SortKey, ...]:
    """What sorts, without what the tests leave only one value: SQLite would sort by that once more."""
    compared = {part.path for part in parts if isinstance(part, Compare)}
    equal = _equal(parts)
    keys: list[SortKey] = []
    for path, descending in order:
        of_path = sort_keys(path, descending, json)
        if path in equal:
            continue
        keys += of_path[1:] if path in compared and not has_column(path) else of_path  # the first is the type
    # Equal ones in the direction of the last: else an index could not be read backwards.
    return (*keys, SortKey(SEQ, bool(order) and order[-1][1]))


def _equal(parts: tuple[Test, ...]) -> set[Path]:
    return {part.path for part in parts if isinstance(part, Compare) and part.operator == "="}


def _counts_rows(query: Query) -> bool:
    """Whether the only result is how many rows there are."""
    if query.group_by or query.order_by or query.distinct or query.top is not None or query.limit is not None:
        return False
    match query.projection:
        case Single(expression):
            return _is_row_count(expression)
        case Fields(items):
            return all(_is_row_count(expression) for _, expression in items)
    return False


def _is_row_count(node: Expression) -> bool:
    """COUNT of a constant: it counts what is defined."""
    return (
        isinstance(node, Aggregate)
        and node.name == "COUNT"
        and isinstance(node.argument, Literal)
        and node.argument.value is not UNDEFINED
    )


def count_result(query: Query, count: int) -> object:
    """The result of a query that counts rows."""
    if isinstance(query.projection, Fields):
        return {name: count for name, _ in query.projection.items}
    return count


# --- the choice of an index -----------------------------------------------------------------------------------------


def _choose(parts: tuple[Test, ...], order: Sorting, indexes: Indexes) -> str | None:
    """The index that narrows the search the most: by equality first, then by order or by a range."""
    equal = _equal(parts)
    several = {part.path for part in parts if isinstance(part, Among)}
    within = {part.path for part in parts if isinstance(part, IsA | Compare)}
    rest_of_order = tuple((path, descending) for path, descending in order if path not in equal)
    best: tuple[tuple[int, int, int, int], str | None] = ((0, 0, 0, 0), None)
    for name, paths in indexes.items():
        bound = 0
        while bound < len(paths) and paths[bound] in equal | several:
            bound += 1
        sorts = bool(order) and not several.intersection(paths[:bound]) and _sorts(paths[bound:], rest_of_order)
        narrows = bound < len(paths) and paths[bound] in within
        if bound or sorts or narrows:
            best = max(best, ((bound, sorts, narrows, -len(paths)), name))
    return best[1]


def _sorts(paths: tuple[Path, ...], order: Sorting) -> bool:
    if len(order) > len(paths):
        return False
    for (path, descending), own in zip(order, paths, strict=False):
        if path != own or descending != order[0][1]:
            return False
    return True


def _by_id(parts: tuple[Test, ...], order: Sorting) -> bool:
    key: Path = ("id",)
    return any(isinstance(part, Compare | Among) and part.path == key for part in parts) or (
        bool(order) and order[0][0] == key
    )
