"""The vacuum's thread: asleep until the next document is due, woken by what makes one due earlier."""

import atexit
import logging
import math
import queue
import threading
import time
import weakref

from ttlstore import forks
from ttlstore.engine import Engine
from ttlstore.errors import StoreClosed, TtlStoreError
from ttlstore.ttl import NEVER, Clock, present
from ttlstore.vacuum import Vacuum

log = logging.getLogger("ttlstore.vacuum")

FIRST_LOOK_SECONDS = 0.05  # after opening, unless something is written before: it would get in the way of the rest
SHORTEST_NAP_SECONDS = 1.0  # after work: documents that expire one by one are deleted by the second, not one by one
LONGEST_NAP_SECONDS = 60.0  # while something will expire: another process may have written what expires earlier
STALE_MILLISECONDS = 60_000  # after which a write has the collections' defaults looked up again
OTHERS_TURN_SECONDS = 1.0  # until it is asked again whether the process that vacuums now is done
TURN_PATIENCE_SECONDS = 30.0  # with the turn of another, which may be suspended: two vacuums do no harm, only more work
OUT_OF_TURN_SECONDS = 3.0  # of work then, before it is asked and waited for again: many may have lost their patience
HOLD_SECONDS = 5.0  # between looks at a clock that was set
FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS = 1.0, 60.0  # after errors, doubled each time
EXIT_SECONDS = 1.0  # that the end of the interpreter waits for a batch under way


class BackgroundVacuum:
    """Runs the vacuum of one open store in a thread of its own."""

    def __init__(self, vacuum: Vacuum, engine: Engine, clock: Clock, grace_milliseconds: int) -> None:
        self._vacuum = vacuum
        self._engine = engine
        self._clock = clock
        self._grace = grace_milliseconds
        self._stopped = False  # for good
        self._reset()
        _running.add(self)
        forks.threads.add(self)
        self._start()

    def _reset(self) -> None:
        self._thread: threading.Thread | None = None
        self._forking = False
        self._guard = threading.Lock()  # of the target
        # Not a Condition: a signal that interrupts its notify() in a caller's thread loses the one who waits.
        self._calls: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._defaults: dict[int, int | None] = {}  # as they were at the last look: a hint, never the rule
        self._looked_at = 0
        self._refused_since: float | None = None  # by time.monotonic(): how long another has had the turn
        self._target = math.inf  # milliseconds of the store's clock until which the thread sleeps

    def _start(self) -> None:
        thread = threading.Thread(target=self._loop, name="ttlstore-vacuum", daemon=True)
        self._thread = None  # if there is no room for one now, another call may find some
        thread.start()
        self._thread = thread

    # --- from the store's threads -----------------------------------------------------------------------------------

    def notice(self, collection: int, ttl: int | None, ts: int) -> None:
        """A document with this ttl was written: wake up in time. Cheap where that changes nothing."""
        if ts - self._looked_at > STALE_MILLISECONDS or collection not in self._defaults:
            due = ts
        else:
            default = self._defaults[collection]
            effective = default if ttl is None or default is None else ttl
            if effective is None or effective == NEVER:
                return
            due = ts + effective * 1000
        if due + self._grace < self._target:
            self.wake(due + self._grace)

    def wake(self, at: float = 0) -> None:
        """Look for work, at a time of the store's clock (milliseconds) or at once."""
        self._look(at)
        if self._engine.in_transaction():
            self._engine.after_transaction(self._look)  # until then there is nothing to be seen

    def _look(self, at: float = 0) -> None:
        if self._thread is None and not self._stopped:
            self._start()  # in a forked child
        with self._guard:
            if at < self._target:
                self._target = at
                self._calls.put(None)

    def stop(self, timeout: float | None = None) -> None:
        """End the thread, after the batch under way."""
        self._stopped = True
        self._see_off(timeout)

    def _see_off(self, timeout: float | None = None) -> None:
        thread = self._thread
        self._calls.put(None)
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)

    # --- in the thread ----------------------------------------------------------------------------------------------

    def _loop(self) -> None:
        self._called(FIRST_LOOK_SECONDS)
        retry = FIRST_RETRY_SECONDS
        while not self._leaving():
            self._target = math.inf
            try:
                next_look = self._work()
                retry = FIRST_RETRY_SECONDS
                self._sleep(next_look)
            except StoreClosed:
                return
            except Exception as error:
                # Whatever it is, even the clock: expired rows can wait, and the application must not suffer.
                self._vacuum.failed(error)
                # An error of ours says it all: a server that was restarted is worth no traceback.
                surprise = not isinstance(error, TtlStoreError)
                name = self._engine.name
                log.warning("the vacuum of %s failed; next try in %g s: %s", name, retry, error, exc_info=surprise)
                self._wait(retry)
                retry = min(retry * 2, LAST_RETRY_SECONDS)

    def _leaving(self) -> bool:
        return self._stopped or self._forking

    def _work(self) -> float:
        """Do what is due, and tell when to look again."""
        due_at = self._next_due()
        if due_at > present(self._clock):
            self._refused_since = None
            return due_at
        with self._engine.turn() as ours:
            if not ours and not self._out_of_patience():
                return present(self._clock) + OTHERS_TURN_SECONDS * 1000
            self._refused_since = None
            held_before = self._vacuum.stats.holding
            report = self._vacuum.run(
                pause=self._wait, stopped=self._leaving, max_seconds=None if ours else OUT_OF_TURN_SECONDS
            )
        if report.holding:
            if not held_before:
                log.warning("the vacuum of %s holds: %s", self._engine.name, report.holding)
            return present(self._clock) + HOLD_SECONDS * 1000
        log.debug("deleted %d rows of %s in %d batches", report.deleted, self._engine.name, report.batches)
        self._wait(self._vacuum.look_again_after(SHORTEST_NAP_SECONDS))
        return self._next_due()

    def _out_of_patience(self) -> bool:
        if self._refused_since is None:
            self._refused_since = time.monotonic()
        return time.monotonic() - self._refused_since >= TURN_PATIENCE_SECONDS

    def _next_due(self) -> float:
        schedule, self._defaults = self._vacuum.schedule()
        self._looked_at = present(self._clock)
        return schedule[0].at if schedule else math.inf

    def _wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not self._leaving() and (left := end - time.monotonic()) > 0:
            self._called(left)  # in vain, but for stop(): the target is looked at afterwards

    def _sleep(self, until: float) -> None:
        with self._guard:
            self._target = min(self._target, until)
        while not self._leaving() and (left := (self._target - present(self._clock)) / 1000) > 0:
            nap = None if left == math.inf else min(left, LONGEST_NAP_SECONDS)
            if not self._called(nap) and nap == LONGEST_NAP_SECONDS:
                return

    def _called(self, seconds: float | None) -> bool:
        """Whether somebody called within that time."""
        try:
            self._calls.get(timeout=seconds)
        except queue.Empty:
            return False
        return True

    # --- forks and the end of the interpreter -----------------------------------------------------------------------

    def before_fork(self) -> None:
        """End the thread, after the batch under way: in the child it would stand still in whatever it did.

        Python 3.12 and later warn whoever forks beside a thread, and users could do nothing about this one.
        """
        self._forking = True
        self._see_off(forks.PATIENCE_SECONDS)  # it may be waiting for a lock that the thread has which forks

    def after_fork_in_parent(self) -> None:
        self._forking = False
        if self._thread is not None and not self._thread.is_alive() and not self._stopped:
            self._start()

    def after_fork_in_child(self) -> None:
        """The thread is the parent's; a write in the child starts another."""
        self._reset()


_running: weakref.WeakSet[BackgroundVacuum] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    for background in list(_running):
        background.stop(EXIT_SECONDS)
