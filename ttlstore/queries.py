"""Queries on one collection: planned, run and explained."""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import chain, takewhile
from typing import Any, NamedTuple, TypeVar

from ttlstore.document import Document, decode, encode_partition
from ttlstore.engine import Engine, Row, Settings, SettingsChanged
from ttlstore.engine.json import IndexGone, Json, Path, Rank
from ttlstore.errors import QueryError, dropped
from ttlstore.indexes import named
from ttlstore.indexing import IndexingPolicy
from ttlstore.query.conditions import ALWAYS, NEVER, Compare, InPartition, Kind, Operand, Test, kind_of
from ttlstore.query.evaluate import evaluate, no_recursion, window
from ttlstore.query.explain import Explanation, explanation
from ttlstore.query.pages import EVERYTHING, Keys, Page, Position, Tokens, after, are_sorted_by, check_size
from ttlstore.query.parameters import Parameters, bind
from ttlstore.query.parser import parse
from ttlstore.query.places import Placed, are_places, first_after, is_by_result, parts, placed
from ttlstore.query.plan import count_result
from ttlstore.query.sql import NO_LIMIT, frames, has_column
from ttlstore.query.statement import Indexes, Statement, rows_of, statement
from ttlstore.query.syntax import Query, changed
from ttlstore.query.values import Value
from ttlstore.ttl import present
from ttlstore.unset import UNSET

T = TypeVar("T")

CACHED_POLICIES = 256
MAX_CHUNK_ROWS = 1000  # read at a time while a page is filled
EVERY_ROW = (NO_LIMIT, 0)  # limit and offset

# The partition is passed to the statement beside the query's parameters, by names that none of them can have.
_PARTITION, _PARTITION_VALUE = "=partition", "=value"


class Asked(NamedTuple):
    """A query as it came in."""

    query: Query
    values: Mapping[str, Value]
    """Of its parameters, and of the partition."""
    kinds: tuple[tuple[str, Kind], ...]
    partition: tuple[Test, ...]
    scan: bool
    """Whether every document may be read."""


class Queries:
    """Answers queries on one collection."""

    def __init__(self, engine: Engine, collection: int, name: str, partition_path: Path) -> None:
        self._engine = engine
        self._collection = collection
        self._name = name
        self._partition_path = partition_path
        self._frames = frames(engine.prepare)

    def run(self, text: str, parameters: Parameters | None, partition: Any, *, scan: bool) -> Iterator[Any]:
        asked = self._asked(text, parameters, partition, scan=scan)
        return self._results(asked, self._allowed_statement(asked), *_window(asked))

    def page(
        self, text: str, parameters: Parameters | None, partition: Any, *, scan: bool, size: int, token: str | None
    ) -> Page:
        asked = self._asked(text, parameters, partition, scan=scan)
        statement = self._allowed_statement(asked)
        check_size(size)
        tokens = Tokens(self._collection, self._name, text, asked.values)
        start = Position(None, 0, *_window(asked))
        step = self._step if statement.plan.in_steps else self._placed_step
        if token is not None:
            keys = are_sorted_by(statement.plan.keys) if statement.plan.in_steps else are_places(parts(asked.query))
            start = tokens.position(token, keys)
        items, end = step(asked, statement, start, size)
        return Page(items, None if end is None else tokens.token(end))

    def explain(self, text: str, parameters: Parameters | None, partition: Any) -> Explanation:
        asked = self._asked(text, parameters, partition, scan=True)
        statement = self._statement(asked, self._settings(anew=True))
        if not asked.query.sources:
            return explanation(statement.plan, "", [])
        of_conditions = statement.values(asked.values)
        if statement.plan.counted:
            prepared, values = statement.number, self._frames.number.values(of_conditions, self._now())
        else:
            window = _pushed_window(*_window(asked)) if statement.plan.windowed else EVERY_ROW
            prepared, values = statement.rows, self._frames.rows.values(of_conditions, self._now(), *window)
        return explanation(statement.plan, prepared.sql, self._engine.steps(prepared, values))

    # --- planning ---------------------------------------------------------------------------------------------------

    def _asked(self, text: str, parameters: Parameters | None, partition: Any, *, scan: bool) -> Asked:
        query = parse(text)
        values = bind(query, parameters)
        kinds = tuple([(parameter.name, kind_of(values[parameter.name])) for parameter in query.parameters])
        tests: tuple[Test, ...] = ()
        if partition is not UNSET:
            values = {**values, _PARTITION: encode_partition(partition), _PARTITION_VALUE: partition}
            tests = _partition_tests(self._partition_path, kind_of(partition), self._engine.json)
        return Asked(query, values, kinds, tests, scan)

    def _allowed_statement(self, asked: Asked, *, anew: bool = False) -> Statement:
        settings = self._settings(anew=anew)
        if settings.mode == "none" and not asked.scan:
            settings = self._settings(anew=True)
        if settings.mode == "none" and not asked.scan:
            raise QueryError(
                f"{self._name!r} has indexing mode 'none': pass scan=True to have every document read, or configure "
                "the mode 'consistent' or 'lazy'"
            )
        return self._statement(asked, settings, sure=settings.mode == "consistent" or not self._engine.json.advised)

    def _settings(self, *, anew: bool = False) -> Settings:
        settings = self._engine.settings(self._collection, anew=anew)
        if settings is None:
            raise dropped(self._name)
        return settings

    def _statement(self, asked: Asked, settings: Settings, *, sure: bool = False) -> Statement:
        """The statement for the indexes that are there; if it is sure that they are, for those of the policy."""
        indexes = _indexes_of_policy(*settings)
        if indexes and not sure:
            there = self._engine.all_indexes()
            indexes = tuple((name, paths) for name, paths in indexes if there.get(name))
        return statement(asked.query, asked.kinds, asked.partition, settings, indexes, self._engine.json, self._frames)

    def _without_missing(self, asked: Asked, answer: Callable[[Statement], T], statement: Statement) -> T:
        """What the statement answers; if it was planned by what is no more so, what one planned anew does."""
        while True:
            try:
                return answer(statement)
            except IndexGone:
                statement = self._statement(asked, self._settings(anew=True))
            except SettingsChanged:
                statement = self._allowed_statement(asked, anew=True)

    def _now(self) -> int:
        return present(self._engine.statement_clock)

    # --- results ----------------------------------------------------------------------------------------------------

    def _results(self, asked: Asked, statement: Statement, skip: int, limit: int | None) -> Iterator[Any]:
        """As of the moment when the first is asked for."""
        now, planned = self._now(), statement.plan
        if not asked.query.sources:
            yield from self._evaluated(asked, asked.query, iter(()), now)
        elif planned.counted:
            count = self._without_missing(asked, lambda statement: self._count(asked, statement, now), statement)
            yield count_result(asked.query, count)
        else:
            window = _pushed_window(skip, limit) if planned.windowed else EVERY_ROW
            rows = self._without_missing(asked, lambda statement: self._rows(asked, statement, now, window), statement)
            if planned.as_they_are:
                for _, body, ts, etag, checksum in rows:
                    yield decode(body, ts, etag, checksum)
            else:
                documents = (decode(body, ts, etag, checksum) for _, body, ts, etag, checksum in rows)
                yield from self._evaluated(asked, planned.rest, documents, now)

    def _evaluated(self, asked: Asked, query: Query, documents: Iterator[Document], now: int) -> Iterator[Any]:
        return evaluate(query, documents, asked.values, self._time(now))

    def _time(self, now: int) -> int:
        """The present for what is evaluated here. Statements ask the clock of a server by themselves."""
        engine = self._engine
        return now if engine.clock is engine.statement_clock else present(engine.clock)

    def _rows(self, asked: Asked, statement: Statement, now: int, window: tuple[int, int]) -> Iterator[Row]:
        values = self._frames.rows.values(statement.values(asked.values), now, *window)
        unordered = statement.unordered if window == EVERY_ROW else None
        rows = self._engine.stream(statement.rows, values, statement.planned_by, unordered)
        first = next(rows, None)  # now it shows whether the plan holds
        return iter(()) if first is None else chain((first,), rows)

    def _count(self, asked: Asked, statement: Statement, now: int) -> int:
        prepared, values = statement.number, self._frames.number.values(statement.values(asked.values), now)
        if statement.plan.test == ALWAYS:  # all documents: by the indexes that know when they expire
            prepared, values = self._engine.statements.count, (now, self._collection)
        return sum(row[0] for row in self._engine.all(prepared, values, statement.planned_by))

    # --- pages ------------------------------------------------------------------------------------------------------

    def _step(
        self, asked: Asked, statement: Statement, start: Position, size: int
    ) -> tuple[list[Any], Position | None]:
        """Results of rows after the start, and where they end; None: there are no more."""
        now, planned, skip = self._now(), statement.plan, start.skip
        wanted = size if start.left is None else min(size, start.left)
        reader = _Reader(self._rows_after(asked, statement, now, start.keys, skip + wanted + 1))
        rest = changed(planned.rest, top=None, offset=None, limit=None)
        items: list[Any] = []
        end: Position | None = None
        for value in self._evaluated(asked, rest, reader.documents(), now) if wanted else ():
            reader.given += 1
            if reader.position == start.keys and reader.given <= start.given:
                continue  # the page before had it
            if skip:
                skip -= 1
                continue
            if len(items) == wanted:
                return items, end
            items.append(value)
            left = None if start.left is None else start.left - len(items)
            if left == 0:
                return items, None
            end = Position(reader.position, reader.given, 0, left)
        return items, None

    def _placed_step(
        self, asked: Asked, statement: Statement, start: Position, size: int
    ) -> tuple[list[Any], Position | None]:
        """The same for results that no row stands for: all are made, and those of the page are kept."""
        if statement.plan.counted:
            return list(self._results(asked, statement, 0, None)) if start.keys is None else [], None
        now, planned, skip = self._now(), statement.plan, start.skip
        wanted = size if start.left is None else min(size, start.left)
        if not wanted:
            return [], None
        query = changed(planned.rest, order_by=asked.query.order_by, top=None, offset=None, limit=None)
        rows: Iterator[Row] = iter(())
        if query.sources:
            rows = self._without_missing(
                asked, lambda statement: self._rows(asked, statement, now, EVERY_ROW), statement
            )
        documents = (Placed(row[:1], decode(*row[1:])) for row in rows)
        with no_recursion():
            found = first_after(
                placed(query, documents, asked.values, self._time(now)),
                parts(query),
                start.keys,
                skip + wanted + 1,
                sorted_by=len(query.order_by) if planned.ordered and is_by_result(query) else 0,
            )
        given = found[skip : skip + wanted]
        left = None if start.left is None else start.left - len(given)
        if left == 0 or len(found) <= skip + wanted:
            return [value for _, value in given], None
        return [value for _, value in given], Position(given[-1].place, 0, 0, left)

    def _rows_after(self, asked: Asked, statement: Statement, now: int, keys: Keys | None, chunk: int) -> Iterator[Row]:
        """Rows, each with what it is sorted by: a chunk at a time, from where the last one ended."""
        again = statement.plan.several
        while True:
            chunk = min(chunk, MAX_CHUNK_ROWS)
            rows = self._without_missing(
                asked,
                lambda statement: self._chunk(asked, statement, now, keys, chunk, again=again),  # noqa: B023  # at once
                statement,
            )
            yield from rows
            if len(rows) < chunk:
                return
            keys, again = sorted_by(rows[-1]), False
            chunk *= 2

    def _chunk(
        self, asked: Asked, statement: Statement, now: int, keys: Keys | None, chunk: int, *, again: bool
    ) -> list[Row]:
        json = self._engine.json
        segments = [EVERYTHING] if keys is None else after(statement.plan.keys, keys, json, again=again)
        known = statement.values(asked.values)
        rows: list[Row] = []
        for segment in segments:
            if len(rows) < chunk:
                prepared = rows_of(self._frames, self._collection, statement, segment, with_keys=True)
                values = self._frames.rows.values(known + segment.values, now, chunk - len(rows), 0)
                rows += self._engine.all(prepared, values, statement.planned_by)
        return rows


class _Reader:
    """Documents, and which row the last one came from."""

    def __init__(self, rows: Iterator[Row]) -> None:
        self._rows = rows
        self.position: Keys | None = None
        self.given = 0  # results of that row

    def documents(self) -> Iterator[Document]:
        for row in self._rows:
            self.position = sorted_by(row)
            self.given = 0
            yield decode(*row[-4:])


def sorted_by(row: Row) -> Keys:
    """What a row that has its keys is sorted by; its place in the collection comes last."""
    return row[:-4]


# --- what is worked out once ----------------------------------------------------------------------------------------


@lru_cache(maxsize=CACHED_POLICIES)
def _indexes_of_policy(collection: int, mode: Any, paths_json: str) -> Indexes:
    """The indexes by name, each as far as conditions can use it: up to a property that has a column of its own."""
    policy = IndexingPolicy.stored(mode, paths_json)
    usable = {name: tuple(takewhile(_is_in_body, paths)) for name, paths in named(collection, policy).items()}
    return tuple((name, paths) for name, paths in usable.items() if paths)


def _is_in_body(path: Path) -> bool:
    return not has_column(path)


def _partition_tests(path: Path, kind: Kind, json: Json) -> tuple[Test, ...]:
    """Being in a partition; said of the property too, which may be indexed."""
    value = Operand(None, _PARTITION_VALUE)
    if path == ("id",):
        return (Compare(path, Rank.STRING, "=", value) if kind.rank is Rank.STRING else NEVER,)
    in_partition = InPartition(Operand(None, _PARTITION))
    if kind.rank in (Rank.NUMBER, Rank.STRING) and kind.comparable and json.reaches(path):
        return in_partition, Compare(path, kind.rank, "=", value, long=kind.long)
    return (in_partition,)


def _window(asked: Asked) -> tuple[int, int | None]:
    return window(asked.query, asked.values, asked.query.text)


def _pushed_window(skip: int, limit: int | None) -> tuple[int, int]:
    return NO_LIMIT if limit is None else limit, skip
