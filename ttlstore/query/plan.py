"""What of a query the database does, and what is evaluated afterwards. That changes its speed, never its result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ttlstore.engine.json import SEQ, Json, Path
from ttlstore.query.check import aggregates
from ttlstore.query.conditions import (
    DEFINED,
    All,
    Among,
    AnyOf,
    Compare,
    IsA,
    Kind,
    Test,
    Translator,
    all_of,
    weight,
)
from ttlstore.query.sql import SortKey, has_column, sort_keys
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


class Side(NamedTuple):
    """One side of an OR, with an index that finds its documents."""

    test: Test
    """What they must pass, with what else of the query narrows the index."""
    by: str | None
    """The index; None: the key of the documents."""
    indexed: tuple[Path, ...]


class Sides(NamedTuple):
    """An OR whose sides are found by an index each."""

    sides: tuple[Side, ...]
    beside: Test
    """What is joined with the OR by AND."""


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
    either: Sides | None
    """Whether, instead of one index, several serve it."""
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
    def by_place_in_index(self) -> bool:
        """Whether the order of the rows is that of the index, which is that of their places in the collection."""
        return len(self.keys) == 1 and self.keys[0].text != SEQ and not self.keys[0].descending

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
    parts, sorting = _parts(test), order if ordered else ()
    score, chosen = _choose(parts, sorting, indexes)
    either = _either(parts, score, indexes)
    if either is not None:
        chosen = None
    indexed = indexes[chosen] if chosen else ()
    return Plan(
        query,
        test,
        tuple(pushed),
        _keys(sorting, parts, indexed, json, by_index=chosen is not None and bool(score[1])),
        changed(query, **changes),
        chosen,
        indexed,
        chosen is None and either is None and _by_id(parts, sorting),
        either,
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


def _keys(
    order: Sorting, parts: tuple[Test, ...], indexed: tuple[Path, ...], json: Json, *, by_index: bool
) -> tuple[SortKey, ...]:
    """What sorts, without what the tests leave only one value: SQLite would sort by that once more.

    They are as many and have the same values with an index and without one: it may come or go between two pages.
    """
    compared = {part.path for part in parts if isinstance(part, Compare)}
    equal = _equal(parts)
    keys: list[SortKey] = []
    sorting = [(path, descending) for path, descending in order if path not in equal]
    for number, (path, descending) in enumerate(sorting, 1):
        last = number == len(sorting) and descending == order[-1][1]  # and the place after it goes in its direction
        of_path = sort_keys(path, descending, json, last=last, by_index=by_index)
        keys += of_path[1:] if path in compared and not has_column(path) else of_path  # the first is the type
    in_index = not sorting and bool(indexed) and equal.issuperset(indexed) and not _is_long(indexed[-1], parts)
    # Equal ones in the direction of the last: else an index could not be read backwards.
    return (*keys, SortKey(json.place(indexed[-1]) if in_index else SEQ, bool(order) and order[-1][1]))


def _is_long(path: Path, parts: Sequence[Test]) -> bool:
    return any(part.path == path and part.long for part in parts if isinstance(part, Compare) and part.operator == "=")


def _equal(parts: Sequence[Test]) -> set[Path]:
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


Score = tuple[int, int, int]  # paths that are equal to something, whether it sorts, how a range narrows it further
_NO_INDEX: Score = (0, 0, 0)
_ONLY_DIFFERS: Score = (0, 0, 1)  # it says what a value is not: that goes for most documents
_ID: Path = ("id",)
_NARROWING = (IsA, Compare)  # made once: to join types by | takes longer than to check them
_NAMING = (Compare, Among)


def _choose(parts: Sequence[Test], order: Sorting, indexes: Indexes) -> tuple[Score, str | None]:
    """The index that narrows the search the most: by equality first, then by order or by a range."""
    equal, several, within = set[Path](), set[Path](), dict[Path, int]()
    for part in parts:
        if isinstance(part, Compare):
            if part.operator == "=":
                equal.add(part.path)
            within[part.path] = max(within.get(part.path, 0), 1 if part.operator == "<>" else 2)
        elif isinstance(part, IsA):
            within[part.path] = 2
        elif isinstance(part, Among):
            several.add(part.path)
    bindable = equal | several
    rest_of_order = tuple([(path, descending) for path, descending in order if path not in equal])
    best: tuple[Score, int, str | None] = (_NO_INDEX, 0, None)
    for name, paths in indexes.items():
        bound = 0
        while bound < len(paths) and paths[bound] in bindable:
            bound += 1
        sorts = bool(order) and _sorts(paths[bound:], rest_of_order) and several.isdisjoint(paths[:bound])
        narrows = within.get(paths[bound], 0) if bound < len(paths) else 0
        if bound or sorts or narrows:
            best = max(best, ((bound, sorts, narrows), -len(paths), name))
    return best[0], best[2]


def _either(parts: tuple[Test, ...], score: Score, indexes: Indexes) -> Sides | None:
    """The OR whose sides have indexes that narrow the search more than one index for all does."""
    found = None
    ors = [part for part in parts if isinstance(part, AnyOf)] if indexes else []
    for part in ors if ors and not _is_one_of_ids(parts) else ():
        beside = [other for other in parts if other is not part]
        sides = [_side(side, beside, indexes) for side in part.tests]
        least = min((of_side for of_side, _ in sides), default=_NO_INDEX)
        if least > score and weight(All((*beside, *(side.test for _, side in sides)))).fits():
            found, score = Sides(tuple([side for _, side in sides]), all_of(beside)), least
    return found


def _side(test: Test, beside: list[Test], indexes: Indexes) -> tuple[Score, Side]:
    own = _parts(test)
    if _is_one_of_ids(own):
        return (1, 0, 0), Side(test, None, ())
    narrowing = [part for part in beside if isinstance(part, _NARROWING)]
    score, index = _choose((*own, *narrowing), (), indexes)
    if score == _ONLY_DIFFERS:
        score = _NO_INDEX
    paths = indexes[index] if index else ()
    more = [part for part in narrowing if part.path in paths]
    return score, Side(all_of((*own, *more)), index, paths)


def _is_one_of_ids(parts: Sequence[Test]) -> bool:
    return any(
        part.path == _ID and (isinstance(part, Among) or part.operator == "=")
        for part in parts
        if isinstance(part, _NAMING)
    )


def _sorts(paths: tuple[Path, ...], order: Sorting) -> bool:
    if len(order) > len(paths):
        return False
    for (path, descending), own in zip(order, paths, strict=False):
        if path != own or descending != order[0][1]:
            return False
    return True


def _by_id(parts: tuple[Test, ...], order: Sorting) -> bool:
    return any(isinstance(part, _NAMING) and part.path == _ID for part in parts) or (bool(order) and order[0][0] == _ID)
