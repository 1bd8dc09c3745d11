"""What is in a collection, what waits to be deleted, and what a change of the default would do: all from indexes."""

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from ttlstore.engine import Engine
from ttlstore.statements import Prepared
from ttlstore.ttl import Horizons, horizons
from ttlstore.vacuum import VacuumStats

LAST_MILLISECOND = 2**63 - 1
FIRST_MILLISECOND = -(2**63)


class Tally(NamedTuple):
    """Documents and their bytes, and the millisecond at which the first of them expires."""

    documents: int = 0
    bytes: int = 0
    first: int | None = None

    def plus(self, other: "Tally") -> "Tally":
        firsts = [tally.first for tally in (self, other) if tally.first is not None]
        return Tally(self.documents + other.documents, self.bytes + other.bytes, min(firsts, default=None))


@dataclass(frozen=True, slots=True)
class CollectionStats:
    """A collection by numbers. Bytes are those of the documents as JSON."""

    live_documents: int
    live_bytes: int
    waiting_documents: int
    """Expired, and their rows not deleted yet."""
    waiting_bytes: int
    oldest_waiting: float | None
    """When the first of them expired, in seconds since the Unix epoch."""
    next_expiry: float | None
    """When the next live document expires."""


@dataclass(frozen=True, slots=True)
class StoreStats:
    """A store by numbers: those of its collections together, the space it takes up, and its vacuum."""

    engine: str
    """The database that keeps it, and its version."""
    collections: int
    live_documents: int
    live_bytes: int
    waiting_documents: int
    """Expired or of a dropped collection, and their rows not deleted yet."""
    waiting_bytes: int
    oldest_waiting: float | None
    next_expiry: float | None
    file_bytes: int
    """Of the database, without what is still in its log."""
    free_bytes: int
    """Unused space within it."""
    vacuum: VacuumStats


@dataclass(frozen=True, slots=True)
class ForecastInterval:
    """What expires after `start` and up to `end` (seconds since the Unix epoch), if nothing is written meanwhile."""

    start: float
    end: float
    documents: int
    bytes: int


@dataclass(frozen=True, slots=True)
class TtlChange:
    """What a change of the default ttl would do at this moment."""

    default_ttl: int | None
    """As it is."""
    new_default_ttl: int | None
    hides: int
    """Live documents that would be expired at once."""
    hidden_bytes: int
    revives: int
    """Expired documents, not deleted yet, that would be live again."""
    revived_bytes: int
    live: int
    """Documents that would be live afterwards."""


class Insight:
    """Answers about one collection, by ranges of the two indexes that share out its documents."""

    def __init__(self, engine: Engine, collection: int, default_ttl: int | None, now: int) -> None:
        self._engine = engine
        self._collection = collection
        self._default_ttl = default_ttl
        self._now = now
        self._horizons = horizons(default_ttl, now)

    def stats(self) -> CollectionStats:
        live, waiting = self.live(), self.waiting()
        return CollectionStats(
            live.documents,
            live.bytes,
            waiting.documents,
            waiting.bytes,
            _seconds(waiting.first),
            _seconds(live.first),
        )

    def forecast(self, interval: float, intervals: int) -> list[ForecastInterval]:
        ends = [self._now + round(interval * 1000 * number) for number in range(intervals + 1)]
        forecast = []
        for start, end in pairwise(ends):
            expiring = self._between(horizons(self._default_ttl, start), horizons(self._default_ttl, end))
            forecast.append(ForecastInterval(start / 1000, end / 1000, expiring.documents, expiring.bytes))
        return forecast

    def preview(self, new_default_ttl: int | None) -> TtlChange:
        new = horizons(new_default_ttl, self._now)
        hidden, revived = self._between(self._horizons, new), self._between(new, self._horizons)
        return TtlChange(
            self._default_ttl,
            new_default_ttl,
            hidden.documents,
            hidden.bytes,
            revived.documents,
            revived.bytes,
            self.live().documents - hidden.documents + revived.documents,
        )

    def everything(self) -> Tally:
        """All rows, live or not."""
        return self.live().plus(self.waiting())

    # --- ranges -----------------------------------------------------------------------------------------------------

    def waiting(self) -> Tally:
        return self._between(Horizons(None, None), self._horizons)

    def live(self) -> Tally:
        row = self._engine.one(self._engine.statements.endless, (self._collection,)) or (0, 0)
        return self._between(self._horizons, Horizons(LAST_MILLISECOND, LAST_MILLISECOND)).plus(Tally(*row))

    def _between(self, low: Horizons, high: Horizons) -> Tally:
        """The documents that lie beyond the first horizons and not beyond the second."""
        statements = self._engine.statements
        own = self._range(statements.own_range, low.own, high.own)
        inherited = self._range(statements.inherited_range, low.inherited, high.inherited)
        if self._default_ttl is None:
            own = own._replace(first=None)
        if self._default_ttl is None or self._default_ttl < 0:
            inherited = inherited._replace(first=None)
        elif inherited.first is not None:
            inherited = inherited._replace(first=inherited.first + self._default_ttl * 1000)
        return own.plus(inherited)

    def _range(self, statement: Prepared, low: int | None, high: int | None) -> Tally:
        if high is None:
            return Tally()
        values = (self._collection, FIRST_MILLISECOND if low is None else low, high)
        return Tally(*(self._engine.one(statement, values) or ()))


def store_stats(engine: Engine, now: int, vacuum: VacuumStats) -> StoreStats:
    """The statistics of all collections, dropped ones included in what waits."""
    collections, live, waiting = 0, Tally(), Tally()
    for collection, name, default_ttl, *_ in engine.all(engine.statements.next_due):
        insight = Insight(engine, collection, default_ttl, now)
        if name is None:
            waiting = waiting.plus(insight.everything()._replace(first=None))
        else:
            collections += 1
            live, waiting = live.plus(insight.live()), waiting.plus(insight.waiting())
    space = engine.space()
    return StoreStats(
        engine.description,
        collections,
        live.documents,
        live.bytes,
        waiting.documents,
        waiting.bytes,
        _seconds(waiting.first),
        _seconds(live.first),
        space.pages * space.page_bytes,
        space.free_pages * space.page_bytes,
        vacuum,
    )


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
