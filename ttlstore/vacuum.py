"""Deleting the rows of expired documents: in small batches, and behind everything else that goes on."""

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import NamedTuple

from ttlstore.clockguard import ClockGuard
from ttlstore.engine import Engine
from ttlstore.errors import shown
from ttlstore.gaps import Gaps
from ttlstore.indexing import IndexingPolicy
from ttlstore.mending import Mending
from ttlstore.overhead import Overhead
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
STARVED_SECONDS = 0.1  # without a batch, because others always had the lock: from then on it waits for it as they do
IN_LINE_SECONDS = 0.1  # for so long at a time: one who writes without a rest leaves gaps of microseconds
GAP_BATCHES = 2  # from gap to gap: so a process that cannot be seen waiting gets in after some 10 ms at the latest
HELD_SECONDS = 5.0  # that rows which others hold are waited for, as other calls wait for a lock unless told otherwise
PASS_SECONDS = 1.0  # at least, from one look for what is due from the very start to the next
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
    start: int = 0
    """Where the first of the rows is, by what they are deleted in order of."""
    untouched: bool = True
    """Whether none of them was deleted yet."""


class Vacuum:
    """The job itself. Has no thread of its own: `pause` is how it lets time pass."""

    def __init__(self, engine: Engine, clock: Clock, guard: ClockGuard | None, policy: VacuumPolicy) -> None:
        self.stats = VacuumStats()
        self._engine = engine
        self._clock = clock
        self._guard = guard
        self._policy = policy
        self._rows: dict[tuple[int, str], int] = {}  # in the next batch, by what is deleted
        self._overheads: dict[tuple[int, str], Overhead] = {}
        self._look_seconds = 0.0  # that the last look for what is due took
        self._in_line = False  # for the lock: from when others left no gap until nobody writes
        self._through_at = 0.0  # by time.monotonic(): when it last had the lock, or began to ask for it
        self._rested_at = 0.0  # when it has let others go first for long enough
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
        start = time.monotonic()
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
                schedule.append(Due(first_own + grace, collection, "own", first_own))
            if default_ttl is not None and default_ttl > 0 and first_inherited is not None:
                at = first_inherited + default_ttl * 1000 + grace
                schedule.append(Due(at, collection, "inherited", first_inherited))
        self._look_seconds = time.monotonic() - start
        return sorted(schedule), defaults

    def look_again_after(self, least: float) -> float:
        """How long to go without a look for what is due: so many seconds, or longer if that takes its time.

        On PostgreSQL it comes past every row that was deleted while somebody's old snapshot might still see it.
        """
        return max(least, self._rest_after(self._look_seconds))

    def _rest_after(self, taken: float) -> float:
        return taken * (1 / self._policy.busy_share - 1)

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
        self._in_line, self._through_at, self._rested_at = False, start, start
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
        """Go on until nothing is left to do but what others hold, and tell whether nothing is."""
        got_on = time.monotonic()
        while not over() and not self.held():
            now = present(self._clock)
            schedule = self.schedule()[0]
            due = [one for one in schedule if one.at <= now]
            sparse = None if due else self._gaps.next()
            if not due and not sparse and not self._unused_pages():
                self._engine.checkpoint()
                return not any(one.kind in ("index", "dropped") for one in schedule)  # that was put off
            before = (self.stats.deleted, self.stats.pages_returned, sparse)
            if sparse:
                pause(self._pack(*sparse))
            self._pass(due, pause, over)
            after = (self.stats.deleted, self.stats.pages_returned, None if due else self._gaps.next())
            if after != before or any(one.kind == "index" for one in due):
                got_on = time.monotonic()
            elif time.monotonic() - got_on >= HELD_SECONDS:
                return False
        return False

    def _pass(self, due: list[Due], pause: Callable[[float], object], over: Callable[[], bool]) -> None:
        """Go through what is due once, from its start on, a batch of each in turn.

        Not from the start for each batch: PostgreSQL keeps the traces of deleted rows for as long as a snapshot is open
        that may see them, and would read them all again. And not through to the end, if there is none in sight: what
        was passed over, or has come to be due before the place that was reached, is found by the next pass.
        """
        until = time.monotonic() + self.look_again_after(PASS_SECONDS)
        while True:
            left: list[Due] = []
            for one in due:
                # The clock before its guard: what it may have jumped to in between is not gone by.
                now = present(self._engine.statement_clock)
                if over() or self.held():
                    return
                rest, more = self._batch(one, now)
                left += [more] if more else []
                pause(rest)
            # Those who leave no gap will need the pages themselves.
            if self._unused_pages() and not (left and self._in_line):
                pause(self._give_back())
            due = left
            if not due or time.monotonic() >= until:
                return

    def _batch(self, due: Due, now: int) -> tuple[float, Due | None]:
        """Delete a batch of what is due now; tells for how long to let others go first, and what is left, if any is."""
        if due.kind == "index":
            more = self._mending.mend(due.collection)
            self._engine.checkpoint()
            return GAP_SECONDS, due if more else None
        key = (due.collection, due.kind)
        rows = self._rows.get(key, FIRST_BATCH_ROWS)
        moment = () if due.kind == "dropped" else (now, self._policy.grace_milliseconds())
        values = (due.collection, *moment, due.start, rows, BATCH_BYTES)
        with self._lock() as ours:
            late = max(time.monotonic() - self._rested_at, 0.0)
            start = time.perf_counter()
            removed = self._engine.remove(self._deletions[due.kind], values) if ours else None
        taken = time.perf_counter() - start
        if removed is None:
            return self._refused(), due
        self._through_at = time.monotonic()
        if not removed:
            return self._at_the_end(due), None
        self._gaps.note([place for place, _ in removed])
        overhead = self._overheads.setdefault(key, Overhead())
        overhead.note(len(removed), taken)
        if len(removed) == rows or taken > BATCH_SECONDS:
            self._rows[key] = _next_size(rows, max(taken - overhead.seconds, 0.0), MAX_BATCH_ROWS)
        self.stats.deleted += len(removed)
        self.stats.batches += 1
        # From the last one's key on, not behind it: others may have the same.
        reached = max(key for _, key in removed)
        rest = self._after(taken)
        if self._in_line:  # the others had the lock while it was waited for: that is part of the rest
            rest = max(rest - late, 0.0)
        self._rested_at = self._through_at + rest
        return rest, due._replace(start=reached, untouched=False)

    def _lock(self) -> AbstractContextManager[bool]:
        return self._engine.in_line(IN_LINE_SECONDS) if self._in_line else nullcontext(True)

    def _refused(self) -> float:
        """Others have the lock; tells for how long to leave it to them.

        Somebody who writes without a rest would keep the vacuum out for ever, and the file would grow and grow.
        """
        if self._in_line or time.monotonic() - self._through_at < STARVED_SECONDS:
            return BUSY_SECONDS
        self._in_line = True
        return 0.0

    def _at_the_end(self, due: Due) -> float:
        """Nothing is left from the place on that was reached; tells for how long to let others go first."""
        if due.kind == "dropped" and self._mending.forget(due.collection):
            return self._after(0.0)
        return self.look_again_after(BUSY_SECONDS) if due.untouched else 0.0  # others hold what there is

    def _pack(self, first: int, last: int) -> float:
        """Close the gaps between two places, and tell for how long to let others go first."""
        start = time.perf_counter()
        if self._engine.pack(first, last) is None:
            return BUSY_SECONDS
        self._gaps.closed(first)
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
            return self._rest_after(taken)
        self._in_line = False
        self._since_gap = (self._since_gap + 1) % GAP_BATCHES
        return 0.0 if self._since_gap else GAP_SECONDS


def _next_size(size: int, taken: float, largest: int) -> int:
    """How much to do in the next batch, if this much took so long: up by doubling, down at once."""
    growth = min(BATCH_SECONDS / max(taken, BATCH_SECONDS / 2), 2.0)
    return max(1, min(int(size * growth), largest))
