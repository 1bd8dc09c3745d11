"""Deleting the rows of expired documents: in small batches, and behind everything else that goes on."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import NamedTuple

from ttlstore.clockguard import ClockGuard
from ttlstore.engine import Engine
from ttlstore.errors import shown
from ttlstore.gaps import Gaps
from ttlstore.indexing import IndexingPolicy
from ttlstore.mending import Mending
from ttlstore.statements import Prepared
from ttlstore.ttl import Clock, present

BATCH_SECONDS = 0.005  # about how long a batch holds the write lock: the longest a writer waits for the vacuum
BATCH_BYTES = 1024 * 1024  # of documents in a batch: freeing the pages of large ones takes its time too
FIRST_BATCH_ROWS = 16  # from there on, by how long the last batch took
MAX_BATCH_ROWS = 10_000
FIRST_BATCH_PAGES = 16
MAX_BATCH_PAGES = 10_000
GAP_SECONDS = 0.0008  # while nobody else writes; longer than another process sleeps between its tries
BUSY_SECONDS = 0.02  # until the next try after the lock was taken
GAP_BATCHES = 2  # from gap to gap: so a process that cannot be seen waiting gets in after some 10 ms at the latest
CHECKPOINT_BATCHES = 32  # after which the log is folded into the file, so that it stays small
UNUSED_SHARE = 0.03  # of the file that is kept for what is written next, instead of going back and forth


@dataclass(frozen=True, slots=True)
class VacuumPolicy:
    """How expired rows are deleted in the background.

    `grace` is how long an expired document can still be recovered: seconds, or a timedelta, for which its row is kept.
    `busy_share` is the largest share of the time that the vacuum takes for itself while others write.
    """

    grace: float | timedelta = 0.0
    busy_share: float = 0.05

    def __post_init__(self) -> None:
        grace = self.grace.total_seconds() if isinstance(self.grace, timedelta) else self.grace
        if not _is_number(grace) or not 0 <= grace < math.inf:
            raise ValueError(f"grace must be a number of seconds from 0, or a timedelta, got {shown(self.grace)}")
        if not _is_number(self.busy_share) or not 0 < self.busy_share <= 1:
            raise ValueError(f"busy_share must be more than 0 and at most 1, got {shown(self.busy_share)}")

    def grace_milliseconds(self) -> int:
        grace = self.grace.total_seconds() if isinstance(self.grace, timedelta) else self.grace
        return round(grace * 1000)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class VacuumReport:
    """What one pass did."""

    deleted: int
    """Rows."""
    batches: int
    pages_returned: int
    """To the file system."""
    bytes_returned: int
    """The same in bytes."""
    seconds: float
    finished: bool
    """Whether nothing is left to do."""
    holding: str | None
    """Why nothing is deleted for now."""


@dataclass(slots=True)
class VacuumStats:
    """What the vacuum of this process has done since the store was opened."""

    deleted: int = 0
    batches: int = 0
    pages_returned: int = 0
    seconds: float = 0.0
    """Time spent with the write lock."""
    holding: str | None = None
    """Why nothing is deleted for now."""
    last_error: str | None = None


class Due(NamedTuple):
    """Some of a collection's rows that can be deleted from a moment (milliseconds) on, or an index to be built."""

    at: int
    collection: int
    kind: str


class Vacuum:
    """The job itself. Has no thread of its own: `pause` is how it lets time pass."""

    def __init__(self, engine: Engine, clock: Clock, guard: ClockGuard | None, policy: VacuumPolicy) -> None:
        self.stats = VacuumStats()
        self._engine = engine
        self._clock = clock
        self._guard = guard
        self._policy = policy
        self._rows: dict[tuple[int, str], int] = {}  # in the next batch, by what is deleted
        self._pages = FIRST_BATCH_PAGES  # in the next step
        self._can_shrink = True
        self._gaps = Gaps()
        self._since_checkpoint = 0  # batches
        self._since_gap = 0  # batches
        self._mending = Mending(engine, self.failed)
        statements = engine.statements
        self._deletions: dict[str, Prepared] = {
            "own": statements.delete_own_due,
            "inherited": statements.delete_inherited_due,
            "dropped": statements.delete_dropped,
        }

    def with_grace(self, grace: float | timedelta) -> "Vacuum":
        """Another that keeps expired rows for so long, and adds to the same statistics."""
        other = Vacuum(self._engine, self._clock, self._guard, replace(self._policy, grace=grace))
        other.stats = self.stats
        other._mending = self._mending  # which knows what cannot be done for now
        return other

    def failed(self, error: Exception) -> None:
        """Keep an error for the statistics."""
        self.stats.last_error = f"{type(error).__name__}: {error}"

    # --- what there is to do ----------------------------------------------------------------------------------------

    def schedule(self) -> tuple[list[Due], dict[int, int | None]]:
        """When each collection's next rows can be deleted, soonest first; and the default ttl of each collection."""
        grace = self._policy.grace_milliseconds()
        schedule: list[Due] = []
        defaults: dict[int, int | None] = {}
        there = self._engine.all_indexes()
        for collection, name, default_ttl, first_own, first_inherited, *indexing in self._engine.all(
            self._engine.statements.next_due
        ):
            policy = None if name is None else IndexingPolicy.stored(*indexing)
            if (seconds := self._mending.due_in(collection, policy, there)) is not None:
                at = math.ceil(present(self._clock) + seconds * 1000) if seconds else 0
                schedule.append(Due(at, collection, "dropped" if name is None else "index"))
            if name is None:
                continue
            defaults[collection] = default_ttl
            if default_ttl is not None and first_own is not None:
                schedule.append(Due(first_own + grace, collection, "own"))
            if default_ttl is not None and default_ttl > 0 and first_inherited is not None:
                schedule.append(Due(first_inherited + default_ttl * 1000 + grace, collection, "inherited"))
        return sorted(schedule), defaults

    def held(self) -> bool:
        """Whether the clock is not to be trusted with deleting."""
        jump = self._guard.jump() if self._guard else 0.0
        self.stats.holding = (
            f"the clock was set forward by {jump:,.0f} s while the store was open; nothing is deleted until it is set "
            "back, or trust_clock() says that it is right"
            if jump
            else None
        )
        return bool(jump)

    # --- doing it ---------------------------------------------------------------------------------------------------

    def run(
        self,
        *,
        pause: Callable[[float], object],
        stopped: Callable[[], bool] = lambda: False,
        max_seconds: float | None = None,
    ) -> VacuumReport:
        """Delete what is due, a batch of each collection in turn, and give the space back."""
        start = time.monotonic()
        before = (self.stats.deleted, self.stats.batches, self.stats.pages_returned)

        def over() -> bool:
            return stopped() or (max_seconds is not None and time.monotonic() - start >= max_seconds)

        self._can_shrink = True
        with self._engine.housekeeping():
            self._engine.others_write()
            finished = self._work(pause, over)
        deleted, batches, pages = (
            now - then
            for now, then in zip(
                (self.stats.deleted, self.stats.batches, self.stats.pages_returned), before, strict=True
            )
        )
        returned = pages * self._engine.space().page_bytes
        return VacuumReport(deleted, batches, pages, returned, time.monotonic() - start, finished, self.stats.holding)

    def _work(self, pause: Callable[[float], object], over: Callable[[], bool]) -> bool:
        """Go on until nothing is left to do, and tell whether that was reached."""
        while not over() and not self.held():
            now = present(self._clock)
            # From the start each time: many rows share a moment, and one that was passed over must not be lost.
            schedule = self.schedule()[0]
            due = [one for one in schedule if one.at <= now]
            sparse = None if due else self._gaps.next()
            if not due and not sparse and not self._unused_pages():
                self._engine.checkpoint()
                return not any(one.kind in ("index", "dropped") for one in schedule)  # that was put off
            for one in due:
                # The clock before its guard: what it may have jumped to in between is not gone by.
                now = present(self._engine.statement_clock)
                if over() or self.held():
                    return False
                pause(self._batch(one, now))
            if sparse:
                pause(self._pack(*sparse))
            if self._unused_pages():
                pause(self._give_back())
        return False

    def _batch(self, due: Due, now: int) -> float:
        """Delete a batch of what is due now, and tell for how long to let others go first."""
        if due.kind == "index":
            self._mending.mend(due.collection)
            self._engine.checkpoint()
            return GAP_SECONDS
        key = (due.collection, due.kind)
        rows = self._rows.get(key, FIRST_BATCH_ROWS)
        moment = () if due.kind == "dropped" else (now, self._policy.grace_milliseconds())
        start = time.perf_counter()
        places = self._engine.remove(self._deletions[due.kind], (due.collection, *moment, rows, BATCH_BYTES))
        taken = time.perf_counter() - start
        if places is None:
            return BUSY_SECONDS
        deleted = len(places)
        if not deleted and due.kind != "dropped":  # others hold what there is
            return BUSY_SECONDS
        self._gaps.note(places)
        if due.kind == "dropped" and not deleted and not self._mending.forget(due.collection):
            return BUSY_SECONDS
        if deleted == rows or taken > BATCH_SECONDS:
            self._rows[key] = _next_size(rows, taken, MAX_BATCH_ROWS)
        self.stats.deleted += deleted
        self.stats.batches += 1
        return self._after(taken)

    def _pack(self, first: int, last: int) -> float:
        """Close the gaps between two places, and tell for how long to let others go first."""
        start = time.perf_counter()
        if self._engine.pack(first, last) is None:
            return BUSY_SECONDS
        self._gaps.closed()
        return self._after(time.perf_counter() - start)

    def _unused_pages(self) -> int:
        if not self._can_shrink:
            return 0
        space = self._engine.space()
        return max(space.free_pages - int(space.pages * UNUSED_SHARE), 0)

    def _give_back(self) -> float:
        """Return some pages to the file system, and tell for how long to let others go first."""
        start = time.perf_counter()
        returned = self._engine.give_back(min(self._pages, self._unused_pages()))
        taken = time.perf_counter() - start
        if returned is None:
            return BUSY_SECONDS
        self.stats.pages_returned += returned
        self._can_shrink = returned > 0  # not if somebody rebuilt the file without its setting for that
        if returned == self._pages or taken > BATCH_SECONDS:
            self._pages = _next_size(self._pages, taken, MAX_BATCH_PAGES)
        return self._after(taken)

    def _after(self, taken: float) -> float:
        self.stats.seconds += taken
        self._since_checkpoint += 1
        if self._since_checkpoint >= CHECKPOINT_BATCHES:
            self._since_checkpoint = 0
            self._engine.checkpoint()
        if self._engine.others_write():
            return taken * (1 / self._policy.busy_share - 1)
        self._since_gap = (self._since_gap + 1) % GAP_BATCHES
        return 0.0 if self._since_gap else GAP_SECONDS


def _next_size(size: int, taken: float, largest: int) -> int:
    """How much to do in the next batch, if this much took so long: up by doubling, down at once."""
    growth = min(BATCH_SECONDS / max(taken, BATCH_SECONDS / 2), 2.0)
    return max(1, min(int(size * growth), largest))
