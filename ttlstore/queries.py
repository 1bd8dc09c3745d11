"""Queries on one collection: planned, run and explained."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import chain, islice
from typing import Any, NamedTuple, TypeVar

from ttlstore.document import Document, decode, encode_partition
from ttlstore.engine import Engine, Row
from ttlstore.engine.json import IndexGone, Json, Path, Rank
from ttlstore.errors import CollectionNotFound, QueryError
from ttlstore.indexes import named
from ttlstore.indexing import IndexingPolicy
from ttlstore.query.conditions import ALWAYS, NEVER, Compare, InPartition, Kind, Operand, Test, kind_of
from ttlstore.query.evaluate import count_of, evaluate
from ttlstore.query.explain import Explanation, explanation
from ttlstore.query.pages import Keys, Page, Position, Segment, Tokens, after, check_size
from ttlstore.query.parameters import Parameters, bind
from ttlstore.query.parser import CACHED_LENGTH, parse
from ttlstore.query.plan import Plan, count_result, plan
from ttlstore.query.sql import NO_LIMIT, Frames, Sql, condition, frames, order_text
from ttlstore.query.syntax import Query
from ttlstore.query.values import Value
from ttlstore.statements import Prepared, Values
from ttlstore.ttl import present
from ttlstore.unset import UNSET

T = TypeVar("T")

CACHED_PLANS = 512  # as many as there are parsed texts
CACHED_POLICIES = 256
MAX_CHUNK_ROWS = 1000  # read at a time while a page is filled

# The partition is passed to the statement beside the query's parameters, by names that none of them can have.
_PARTITION, _PARTITION_VALUE = "=partition", "=value"


Indexes = tuple[tuple[str, tuple[Path, ...]], ...]  # by name, and of the kind that a cache can go by


class Asked(NamedTuple):
    """A query as it came in."""

    query: Query
    values: Mapping[str, Value]
    """Of its parameters, and of the partition."""
    kinds: tuple[tuple[str, Kind], ...]
    partition: tuple[Test, ...]


class Statement(NamedTuple):
    """A plan and its SQL."""

    plan: Plan
    condition: Sql
    hint: str
    rows: Prepared
    number: Prepared

    def values(self, asked: Asked) -> Values:
        """Of the parameters of the condition."""
        return tuple([operand.value(asked.values) for operand in self.condition.operands])


class Queries:
    """Answers queries on one collection."""

    def __init__(self, engine: Engine, collection: int, name: str, partition_path: Path) -> None:
        self._engine = engine
        self._collection = collection
        self._name = name
        self._partition_path = partition_path
        self._frames = frames(engine.prepare)

    def run(self, text: str, parameters: Parameters | None, partition: Any, *, scan: bool) -> Iterator[Any]:
        asked = self._asked(text, parameters, partition)
        return self._results(asked, self._allowed_statement(asked, scan), *_window(asked))

    def page(
        self, text: str, parameters: Parameters | None, partition: Any, *, scan: bool, size: int, token: str | None
    ) -> Page:
        asked = self._asked(text, parameters, partition)
        statement = self._allowed_statement(asked, scan)
        check_size(size)
        tokens = Tokens(self._collection, self._name, text, asked.values)
        start = Position(None, 0, *_window(asked))
        if token is not None:
            start = tokens.position(token, len(statement.plan.keys))
        step = self._step if statement.plan.in_steps else self._counted_step
        items, end = step(asked, statement, start, size)
        return Page(items, None if end is None else tokens.token(end))

    def explain(self, text: str, parameters: Parameters | None, partition: Any) -> Explanation:
        asked = self._asked(text, parameters, partition)
        statement = self._statement(asked, self._settings())
        if not asked.query.sources:
            return explanation(statement.plan, "", [])
        of_conditions = statement.values(asked)
        if statement.plan.counted:
            prepared, values = statement.number, self._frames.number.values(of_conditions, self._now())
        else:
            prepared, values = statement.rows, self._frames.rows.values(of_conditions, self._now(), NO_LIMIT, 0)
        return explanation(statement.plan, prepared.sql, self._engine.steps(prepared, values))

    # --- planning ---------------------------------------------------------------------------------------------------

    def _asked(self, text: str, parameters: Parameters | None, partition: Any) -> Asked:
        query = parse(text)
        values = bind(query, parameters)
        kinds = tuple([(parameter.name, kind_of(values[parameter.name])) for parameter in query.parameters])
        tests: tuple[Test, ...] = ()
        if partition is not UNSET:
            values = {**values, _PARTITION: encode_partition(partition), _PARTITION_VALUE: partition}
            tests = _partition_tests(self._partition_path, kind_of(partition), self._engine.json)
        return Asked(query, values, kinds, tests)

    def _allowed_statement(self, asked: Asked, scan: bool) -> Statement:
        settings = self._settings()
        if settings[4] == "none" and not scan:
            raise QueryError(
                f"{self._name!r} has indexing mode 'none': pass scan=True to have every document read, or configure "
                "the mode 'consistent' or 'lazy'"
            )
        return self._statement(asked, settings, sure=settings[4] == "consistent")

    def _settings(self) -> Row:
        settings = self._engine.one(self._engine.statements.collection, (self._collection,))
        if settings is None:
            raise CollectionNotFound(f"the collection {self._name!r} was dropped")
        return settings

    def _statement(self, asked: Asked, settings: Row, *, sure: bool = False) -> Statement:
        """The statement for the indexes that are there; if it is sure that they are, for those of the policy."""
        indexes = _indexes_of_policy(self._collection, *settings[4:6])
        if indexes and not sure:
            there = self._engine.indexes(self._collection)
            indexes = tuple((name, paths) for name, paths in indexes if name in there)
        known = (asked.kinds, asked.partition, self._collection, indexes, self._engine.json, self._frames)
        text = asked.query.text
        return _statement_once(text, *known) if len(text) <= CACHED_LENGTH else _statement(asked.query, *known)

    def _without_missing(self, asked: Asked, answer: Callable[[Statement], T], statement: Statement) -> T:
        """What the statement answers; if one of its indexes is not there, what one for the others does."""
        while True:
            try:
                return answer(statement)
            except IndexGone:
                statement = self._statement(asked, self._settings())

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
            window = (NO_LIMIT if limit is None else limit, skip) if planned.windowed else (NO_LIMIT, 0)
            rows = self._without_missing(asked, lambda statement: self._rows(asked, statement, now, window), statement)
            if planned.as_they_are:
                for _, body, ts, etag, checksum in rows:
                    yield decode(body, ts, etag, checksum)
            else:
                documents = (decode(body, ts, etag, checksum) for _, body, ts, etag, checksum in rows)
                yield from self._evaluated(asked, planned.rest, documents, now)

    def _evaluated(self, asked: Asked, query: Query, documents: Iterator[Document], now: int) -> Iterator[Any]:
        engine = self._engine
        # The clock of a server, which statements read by themselves, is asked for what is evaluated here.
        time = now if engine.clock is engine.statement_clock else present(engine.clock)
        return evaluate(query, documents, asked.values, time)

    def _rows(self, asked: Asked, statement: Statement, now: int, window: tuple[int, int]) -> Iterator[Row]:
        rows = self._engine.stream(statement.rows, self._frames.rows.values(statement.values(asked), now, *window))
        first = next(rows, None)  # now it shows whether the indexes are there
        return iter(()) if first is None else chain((first,), rows)

    def _count(self, asked: Asked, statement: Statement, now: int) -> int:
        if statement.plan.test == ALWAYS:  # all documents: by the indexes that know when they expire
            row = self._engine.one(self._engine.statements.count, (now, self._collection))
        else:
            row = self._engine.one(statement.number, self._frames.number.values(statement.values(asked), now))
        return 0 if row is None else int(row[0])

    # --- pages ------------------------------------------------------------------------------------------------------

    def _step(
        self, asked: Asked, statement: Statement, start: Position, size: int
    ) -> tuple[list[Any], Position | None]:
        """Results of rows after the start, and where they end; None: there are no more."""
        now, planned, skip = self._now(), statement.plan, start.skip
        wanted = size if start.left is None else min(size, start.left)
        reader = _Reader(self._rows_after(asked, statement, now, start.keys, skip + wanted + 1))
        rest = replace(planned.rest, top=None, offset=None, limit=None)
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

    def _counted_step(
        self, asked: Asked, statement: Statement, start: Position, size: int
    ) -> tuple[list[Any], Position | None]:
        """The same for results that come of all rows together: how many were given before is all that can be told."""
        results = self._results(asked, statement, *_window(asked))
        items = list(islice(results, start.given, start.given + size + 1))
        end = Position(None, start.given + size, 0, None) if len(items) > size else None
        return items[:size], end

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
        everything = [Segment("1 = 1", ())]
        placeholder = self._engine.json.placeholder
        segments = everything if keys is None else after(statement.plan.keys, keys, placeholder, again=again)
        known = statement.values(asked)
        rows: list[Row] = []
        for segment in segments:
            if len(rows) < chunk:
                prepared = _rows(self._frames, self._collection, statement, segment.text, with_keys=True)
                values = self._frames.rows.values(known + segment.values, now, chunk - len(rows), 0)
                rows += self._engine.all(prepared, values)
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
    return tuple(named(collection, IndexingPolicy.stored(mode, paths_json)).items())


def _statement(
    query: Query,
    kinds: tuple[tuple[str, Kind], ...],
    partition: tuple[Test, ...],
    collection: int,
    indexes: Indexes,
    json: Json,
    frames: Frames,
) -> Statement:
    planned = plan(query, dict(kinds), json, dict(indexes), partition)
    tested = condition(planned.test, json, planned.indexed)
    hint = json.use_key() if planned.by_id else json.use(planned.index)
    number = frames.number.filled(collection=f"{collection:d}", condition=tested.text, hint=hint)
    if planned.gathered and planned.index is not None:
        hint, text = json.gather(planned.index, collection, tested.text)
        tested = tested._replace(text=text)
    unfinished = Statement(planned, tested, hint, _as_it_is(number), _as_it_is(number))
    return unfinished._replace(rows=_rows(frames, collection, unfinished))


@lru_cache(maxsize=CACHED_PLANS)
def _statement_once(text: str, *known: Any) -> Statement:
    return _statement(parse(text), *known)


def _rows(
    frames: Frames, collection: int, statement: Statement, segment: str = "", with_keys: bool = False
) -> Prepared:
    keys = statement.plan.keys
    return _as_it_is(
        frames.rows.filled(
            collection=f"{collection:d}",
            condition=f"{statement.condition.text} AND {segment}" if segment else statement.condition.text,
            hint=statement.hint,
            order=order_text(keys),
            keys="".join(f"{key.text}, " for key in keys[:-1]) if with_keys else "",
        )
    )


def _as_it_is(sql: str) -> Prepared:
    return Prepared(sql, lambda values: values)


def _partition_tests(path: Path, kind: Kind, json: Json) -> tuple[Test, ...]:
    """Being in a partition; said of the property too, which may be indexed."""
    value = Operand(None, _PARTITION_VALUE)
    if path == ("id",):
        return (Compare(path, Rank.STRING, "=", value) if kind.rank is Rank.STRING else NEVER,)
    in_partition = InPartition(Operand(None, _PARTITION))
    if kind.rank in (Rank.NUMBER, Rank.STRING) and kind.comparable and json.reaches(path):
        return in_partition, Compare(path, kind.rank, "=", value)
    return (in_partition,)


def _window(asked: Asked) -> tuple[int, int | None]:
    """How many results the query passes over, and how many it lets through. Raises QueryError."""
    query = asked.query
    if query.top is not None:
        return 0, count_of(query.top, asked.values, query.text)
    if query.offset is None or query.limit is None:
        return 0, None
    return count_of(query.offset, asked.values, query.text), count_of(query.limit, asked.values, query.text)
