"""The places of results among each other: what comes after a result, whatever has become of it meanwhile.

For results that no single row of the database stands for: sorted by what is evaluated, DISTINCT, of groups, or of a
query in FROM. A place is made of values alone, and of the place of a document, so that another page can go on after it:

- what ORDER BY says, first;
- then, with DISTINCT, the result itself; of a group, what is grouped by; else the place of the row: that of its
  document, or of the result of the query in FROM, and which row of that it is.

If the last part of ORDER BY descends, so does what follows it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any, NamedTuple

from ttlstore.query.check import aggregates
from ttlstore.query.evaluate import Unsorted, unsorted, window
from ttlstore.query.functions.size import checked_value
from ttlstore.query.syntax import Derived, Each, Expression, Fields, Path, Query, Single, Star, Within, changed
from ttlstore.query.values import Value, is_key, order_key, value_key

Place = tuple[Any, ...]

_SLACK = 1000  # results that wait, beyond those that are wanted, until the last ones are dropped


class Placed(NamedTuple):
    """A result, or a document, and its place."""

    place: Place
    value: Value


class Part(NamedTuple):
    """One part of the places of a query's results."""

    counted: bool
    """Whether it is a number that counts, and not a value."""
    descending: bool = False


_COUNTED, _VALUE = Part(counted=True), Part(counted=False)


def parts(query: Query) -> tuple[Part, ...]:
    """What the places of the results are made of."""
    if query.distinct:
        last: tuple[Part, ...] = (_VALUE,)
    elif aggregates(query):
        last = (_VALUE,) * len(query.group_by)
    else:
        last = (*_parts_of_rows(query), _COUNTED)
    order = tuple(Part(counted=False, descending=order.descending) for order in query.order_by)
    if order and order[-1].descending:
        last = tuple(Part(part.counted, not part.descending) for part in last)
    return order + last


def _parts_of_rows(query: Query) -> tuple[Part, ...]:
    first = query.sources[0] if query.sources else None
    if isinstance(first, Derived):
        return parts(first.query)
    return () if first is None else (_COUNTED,)


def are_places(query_parts: tuple[Part, ...]) -> Callable[[Place], bool]:
    """Tells what can be compared with the places of results, whoever made it, from what cannot."""
    return lambda place: (
        type(place) is tuple
        and len(place) == len(query_parts)
        and all(type(key) is int if part.counted else is_key(key) for key, part in zip(place, query_parts, strict=True))
    )


# --- from documents to results in their places ----------------------------------------------------------------------


def placed(query: Query, documents: Iterable[Placed], parameters: Mapping[str, Value], now_ms: int) -> Iterator[Placed]:
    """The results, in any order. One may come more than once, with DISTINCT, always in the same place."""
    results = _placed(query, documents, parameters, now_ms)
    return results if not query.distinct or is_by_result(query) else _at_their_first(query, results)


def _placed(
    query: Query, documents: Iterable[Placed], parameters: Mapping[str, Value], now_ms: int
) -> Iterator[Placed]:
    first = query.sources[0] if query.sources else None
    if isinstance(first, Derived) and not aggregates(query):
        inner = changed(first.query, text=query.text)
        found = _windowed(inner, placed(inner, documents, parameters, now_ms), parameters)
        documents = (Placed(place, checked_value("the subquery", value)) for place, value in found)
        source = Each(Path(first.alias), first.alias) if first.each else Within(Path(first.alias), first.alias)
        query = changed(query, sources=(source, *query.sources[1:]))
    rows = _Rows(documents)
    last = _last_part(query, rows)
    for result in unsorted(query, rows.values(), parameters, now_ms):
        yield Placed((*map(order_key, result.order), *last(result)), result.value)


def _last_part(query: Query, rows: "_Rows") -> Callable[[Unsorted], Place]:
    """What follows ORDER BY in a place."""
    if query.distinct:
        return lambda result: (value_key(result.value),)
    if aggregates(query):
        return lambda result: tuple(map(value_key, result.group))
    return lambda result: rows.next_place()


class _Rows:
    """Counts the results of each row."""

    def __init__(self, found: Iterable[Placed]) -> None:
        self._found = found
        self._place: Place = ()
        self._given = 0

    def values(self) -> Iterator[Value]:
        for place, value in self._found:
            self._place, self._given = place, 0
            yield value

    def next_place(self) -> Place:
        self._given += 1
        return (*self._place, self._given)


def _windowed(query: Query, results: Iterator[Placed], parameters: Mapping[str, Value]) -> Iterable[Placed]:
    """What TOP, or OFFSET and LIMIT, let through."""
    skip, limit = window(query, parameters, query.text)
    if limit is None:
        return results
    return first_after(results, parts(query), None, skip + limit)[skip:]


def is_by_result(query: Query) -> bool:
    """Whether equal results have equal places: ORDER BY goes by what is selected alone."""
    match query.projection:
        case Star():
            return True
        case Single(expression):
            selected: tuple[Expression, ...] = (expression,)
        case Fields(items):
            selected = tuple(expression for _, expression in items)
    return all(order.expression in selected for order in query.order_by)


def _at_their_first(query: Query, results: Iterator[Placed]) -> Iterator[Placed]:
    """Every result once, in the first of its places. All of them are held: any may have an earlier one yet."""
    key = _key(parts(query))
    found: dict[Place, Placed] = {}
    for result in results:
        before = found.setdefault(result.place[-1], result)
        if key(result.place) < key(before.place):
            found[result.place[-1]] = result
    yield from found.values()


# --- those of a page ------------------------------------------------------------------------------------------------


def first_after(
    results: Iterable[Placed], query_parts: tuple[Part, ...], start: Place | None, wanted: int, *, sorted_by: int = 0
) -> list[Placed]:
    """The first results after a place, in order; about twice as many are held. `start` is None for the very first.

    `sorted_by` tells how many parts of their places the results come in the order of.
    """
    key = _key(query_parts)
    after = None if start is None else key(start)
    last: Place | None = None  # the place of the last one that can still be among the wanted
    newest: Place = ()
    found: dict[Place, tuple[Place, Placed]] = {}
    for result in results:
        here = key(result.place)
        if (after is not None and not after < here) or (last is not None and last < here) or result.place in found:
            continue
        if sorted_by and len(found) >= wanted and newest[:sorted_by] < here[:sorted_by]:
            break
        newest = here
        found[result.place] = (here, result)
        if len(found) >= 2 * wanted + _SLACK:
            kept = sorted(found.values(), key=itemgetter(0))[:wanted]
            found = {result.place: (here, result) for here, result in kept}
            last = kept[-1][0] if kept else ()
    return [result for _, result in sorted(found.values(), key=itemgetter(0))[:wanted]]


def _key(query_parts: tuple[Part, ...]) -> Callable[[Place], Place]:
    """What compares places as the query does."""
    directions = [part.descending for part in query_parts]
    if not any(directions):
        return lambda place: place
    return lambda place: tuple(
        [_Reversed(found) if down else found for found, down in zip(place, directions, strict=True)]
    )


class _Reversed:
    """The opposite order, by `<` alone: `<=` between tuples would ask for more."""

    __slots__ = ("_found",)

    def __init__(self, found: Any) -> None:
        self._found = found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Reversed) and bool(self._found == other._found)

    def __lt__(self, other: "_Reversed") -> bool:
        return bool(other._found < self._found)

    __hash__ = None  # type: ignore[assignment]  # it only compares
