"""The meaning of a query, from documents to results. Whatever runs a query faster must give the same.

A query whose WHERE, ORDER BY, TOP or OFFSET was done elsewhere is evaluated by leaving them out of it:
`dataclasses.replace(query, where=None)`.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from operator import itemgetter
from typing import NamedTuple

from ttlstore.errors import QueryError, shown
from ttlstore.query.aggregates import ACCUMULATORS, Accumulator
from ttlstore.query.check import aggregates
from ttlstore.query.expressions import (
    EMPTY,
    Binding,
    Evaluator,
    ExpressionCompiler,
    Row,
    RowBudget,
    Scope,
    Subquery,
    object_maker,
    path_getter,
)
from ttlstore.query.functions.size import checked_value
from ttlstore.query.mistakes import located
from ttlstore.query.syntax import (
    Aggregate,
    Derived,
    Each,
    Fields,
    Literal,
    Parameter,
    Query,
    Single,
    Source,
    walk,
)
from ttlstore.query.values import UNDEFINED, Value, identity, order_key, value_key

Documents = Iterable[Value]
Sorted = tuple[tuple[tuple[Value, ...], ...], Row, int]  # what a row is sorted by, the row, and its number

_SORT_SLACK = 1000  # rows that wait, beyond those that are wanted, until the rest is dropped


def evaluate(query: Query, documents: Documents, parameters: Mapping[str, Value], now_ms: int) -> Iterator[Value]:
    """The results of a query over documents, one after the other. The documents are not changed, and may be shared.

    `parameters` is what `parameters.bind` gave. Raises QueryError, also while the results are taken.
    """
    binding = Binding(query.text, parameters, now_ms, RowBudget())
    with no_recursion():
        results = _compile(query, EMPTY, binding, documents)
    return _guarded(results(()))


class Unsorted(NamedTuple):
    """A result, and what decides about its place."""

    order: tuple[Value, ...]
    """What it is sorted by."""
    group: tuple[Value, ...]
    """What it is grouped by."""
    value: Value


def unsorted(query: Query, documents: Documents, parameters: Mapping[str, Value], now_ms: int) -> Iterator[Unsorted]:
    """The results as their rows come. ORDER BY, DISTINCT, TOP, OFFSET and LIMIT are left to the caller."""
    binding = Binding(query.text, parameters, now_ms, RowBudget())
    with no_recursion():
        rows, scope = _rows(query, EMPTY, binding, documents)
        compiler = ExpressionCompiler(scope, binding, _compile)
        keys = [compiler.compile(order.expression) for order in query.order_by]
        project = _projection(query, compiler)
    width = len(query.group_by)
    for row in rows(()):
        value = project(row)
        if value is not UNDEFINED:
            yield Unsorted(tuple([key(row) for key in keys]), row[:width], value)


def window(query: Query, parameters: Mapping[str, Value], text: str) -> tuple[int, int | None]:
    """How many results the query passes over, and how many it lets through. Raises QueryError."""
    if query.top is not None:
        return 0, _count_of(query.top, parameters, text)
    if query.offset is None or query.limit is None:
        return 0, None
    return _count_of(query.offset, parameters, text), _count_of(query.limit, parameters, text)


def _count_of(node: Literal | Parameter, parameters: Mapping[str, Value], text: str) -> int:
    """The number that TOP, OFFSET or LIMIT says. Raises QueryError if a parameter is not one."""
    value = node.value if isinstance(node, Literal) else parameters[node.name]
    if type(value) is float and value.is_integer():
        value = int(value)
    if type(value) is not int or value < 0:
        raise located(text, node.at, f"this takes a whole number from 0, got {shown(value)}")
    return value


@contextmanager
def no_recursion() -> Iterator[None]:
    """What is compared comes from documents, whose depth no check of the query limits."""
    try:
        yield
    except RecursionError:
        raise QueryError("the query or its values are nested too deep to be evaluated") from None


def _guarded(results: Iterator[Value]) -> Iterator[Value]:
    with no_recursion():
        yield from results


# --- the stages of a query ------------------------------------------------------------------------------------------


def _compile(query: Query, outer: Scope, binding: Binding, documents: Documents | None = None) -> Subquery:
    """A function from the row around the query to its results.

    With `documents`, the name that FROM starts from means them; else it is an alias of the row around.
    """
    found, scope = _rows(query, outer, binding, documents)
    skip, limit = window(query, binding.parameters, binding.text)
    order = None
    if query.order_by:
        wanted = None if limit is None or query.distinct or isinstance(query.projection, Single) else skip + limit
        order = _order(query, ExpressionCompiler(scope, binding, _compile), wanted)
    project = _projection(query, ExpressionCompiler(scope, binding, _compile))

    def results(row: Row) -> Iterator[Value]:
        rows = found(row)
        if order is not None:
            rows = order(rows)
        values: Iterator[Value] = (value for row in rows if (value := project(row)) is not UNDEFINED)
        if query.distinct:
            values = _distinct(values)
        return values if limit is None else islice(values, min(skip, sys.maxsize), min(skip + limit, sys.maxsize))

    return results


def _rows(
    query: Query, outer: Scope, binding: Binding, documents: Documents | None
) -> tuple[Callable[[Row], Iterator[Row]], Scope]:
    """A function from the row around the query to its own rows: of FROM, JOIN and WHERE, or its groups."""
    scope = outer
    steps: list[Callable[[Iterator[Row]], Iterator[Row]]] = []
    for source in query.sources:
        steps.append(_source(source, scope, binding, documents))
        documents = None
        scope = scope.plus(source.alias)
    if query.where is not None:
        steps.append(_filter(ExpressionCompiler(scope, binding, _compile).compile(query.where)))
    group = None
    if aggregates(query):
        group, scope = _group(query, outer, scope, binding)

    def found(row: Row) -> Iterator[Row]:
        rows: Iterator[Row] = iter((row,))
        for step in steps:
            rows = step(rows)
        return rows if group is None else group(rows, row)

    return found, scope


def _source(
    source: Source, scope: Scope, binding: Binding, documents: Documents | None
) -> Callable[[Iterator[Row]], Iterator[Row]]:
    """Adds a value to the row: as many rows as there are values."""
    if isinstance(source, Derived):
        results = _compile(source.query, scope, binding, documents)
        if source.each:
            return lambda rows: (
                (*row, item)
                for row in rows
                for value in results(row)
                if type(value) is list
                for item in binding.budget.spent(value)
            )
        return lambda rows: ((*row, checked_value("the subquery", value)) for row in rows for value in results(row))
    budget = binding.budget
    if documents is not None:
        at_path = path_getter(0, source.path.steps)

        def starts(row: Row) -> Iterator[Value]:
            for document in documents:
                budget.renew()
                yield at_path((document,))
    else:
        of_row = path_getter(scope.aliases[source.path.alias], source.path.steps)

        def starts(row: Row) -> Iterator[Value]:
            yield of_row(row)

    if isinstance(source, Each):
        return lambda rows: (
            (*row, item) for row in rows for value in starts(row) if type(value) is list for item in budget.spent(value)
        )
    return lambda rows: ((*row, value) for row in rows for value in starts(row) if value is not UNDEFINED)


def _filter(condition: Evaluator) -> Callable[[Iterator[Row]], Iterator[Row]]:
    return lambda rows: (row for row in rows if condition(row) is True)


def _projection(query: Query, compiler: ExpressionCompiler) -> Evaluator:
    projection = query.projection
    if isinstance(projection, Single):
        return compiler.compile(projection.expression)
    if isinstance(projection, Fields):
        return object_maker([(name, compiler.compile(expression)) for name, expression in projection.items])
    return lambda row: row[-1]  # SELECT * has one source, the last value of the row


def _distinct(values: Iterator[Value]) -> Iterator[Value]:
    seen = set()
    for value in values:
        key = identity(value)
        if key not in seen:
            seen.add(key)
            yield value


# --- ORDER BY -------------------------------------------------------------------------------------------------------


def _order(query: Query, compiler: ExpressionCompiler, wanted: int | None) -> Callable[[Iterator[Row]], Iterator[Row]]:
    """Sorts the rows, and keeps only about as many as are wanted.

    Those that are equal stay in the order they come in; if the last key descends, in the opposite one. So DESC is
    exactly the reverse of ASC, and an index can be read from either end.
    """
    keys = [compiler.compile(order.expression) for order in query.order_by]
    directions = [order.descending for order in query.order_by]

    def sort(waiting: list[Sorted]) -> None:
        if directions[-1]:
            waiting.sort(key=itemgetter(2), reverse=True)
        for position in reversed(range(len(keys))):
            waiting.sort(key=lambda entry: entry[0][position], reverse=directions[position])  # used at once

    def apply(rows: Iterator[Row]) -> Iterator[Row]:
        waiting: list[Sorted] = []
        for number, row in enumerate(rows):
            waiting.append((tuple([order_key(key(row)) for key in keys]), row, number))
            if wanted is not None and len(waiting) >= 2 * wanted + _SORT_SLACK:
                sort(waiting)
                del waiting[wanted:]
        sort(waiting)
        for _, row, _ in waiting:
            yield row

    return apply


# --- GROUP BY and aggregates ----------------------------------------------------------------------------------------


def _group(
    query: Query, outer: Scope, scope: Scope, binding: Binding
) -> tuple[Callable[[Iterator[Row], Row], Iterator[Row]], Scope]:
    """Makes a row of each group: the row around the query, what is grouped by, and the aggregates.

    In the order of what is grouped by, which a page can go on in.
    """
    compiler = ExpressionCompiler(scope, binding, _compile)
    keys = [compiler.compile(expression) for expression in query.group_by]
    nodes = _aggregates(query)
    arguments = [compiler.compile(node.argument) for node in nodes]
    kinds = [ACCUMULATORS[node.name] for node in nodes]
    first = outer.width
    computed = {expression: first + position for position, expression in enumerate((*query.group_by, *nodes))}
    width = first + len(query.group_by) + len(nodes)

    def apply(rows: Iterator[Row], around: Row) -> Iterator[Row]:
        groups: dict[object, tuple[Row, list[Accumulator]]] = {}
        for row in rows:
            values = tuple([key(row) for key in keys])
            name = tuple(map(identity, values))
            group = groups.get(name)
            if group is None:
                group = groups[name] = (around + values, [kind() for kind in kinds])
            for accumulator, argument in zip(group[1], arguments, strict=True):
                accumulator.add(argument(row))
        if not groups and not query.group_by:
            groups[()] = (around, [kind() for kind in kinds])
        for start, accumulators in sorted(groups.values(), key=lambda group: tuple(map(value_key, group[0][first:]))):
            yield start + tuple([accumulator.result() for accumulator in accumulators])

    return apply, Scope(outer.aliases, width, {**outer.computed, **computed})


def _aggregates(query: Query) -> list[Aggregate]:
    """Every different aggregate in what is selected and sorted by."""
    expressions = [order.expression for order in query.order_by]
    if isinstance(query.projection, Fields):
        expressions += [expression for _, expression in query.projection.items]
    elif isinstance(query.projection, Single):
        expressions.append(query.projection.expression)
    found = (node for expression in expressions for node in walk(expression) if isinstance(node, Aggregate))
    return list(dict.fromkeys(found))
