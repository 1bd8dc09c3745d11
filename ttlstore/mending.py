"""What the vacuum does about indexes: one that is amiss is put right, behind everything else.

One whose making was cut short, one that a lazy collection still lacks, and those of a collection that was dropped. An
index that cannot be made or removed (for want of room or of rights, or because of a document that does not fit in it)
is no reason to keep rows that have expired: it is told, and tried again, less and less often.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ttlstore import indexes
from ttlstore.engine import Engine
from ttlstore.errors import CollectionNotFound, StoreBusy, StoreClosed, TtlStoreError, shown
from ttlstore.indexing import IndexingPolicy
from ttlstore.schema import index_prefix

log = logging.getLogger("ttlstore.vacuum")

BUSY_SECONDS = 10.0  # until the next try to make an index that waits for others; rows are deleted meanwhile
FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS = 60.0, 3600.0  # after errors, doubled: a try may read all documents in vain


class _Failure(NamedTuple):
    said: str
    again_at: float
    """By time.monotonic()."""
    wait: float
    """Seconds until then."""


class Mending:
    """The indexes of one store, as far as they are amiss."""

    def __init__(self, engine: Engine, failed: Callable[[TtlStoreError], None]) -> None:
        """`failed` is told of each failure."""
        self._engine = engine
        self._failed = failed
        self._busy_until = 0.0  # by time.monotonic()
        # By the name of the index, which tells its paths: another policy is tried at once. What is left of a dropped
        # collection, by what the names of its indexes begin with.
        self._failures: dict[str, _Failure] = {}

    def due_in(self, collection: int, policy: IndexingPolicy | None, there: dict[str, bool | None]) -> float | None:
        """In how many seconds something is to be done about a collection's indexes; None if nothing is.

        Without a policy, the collection was dropped.
        """
        if policy is None:
            return self._seconds_left(index_prefix(collection))
        names = set().union(*indexes.amiss(collection, policy, there))
        if not names:
            return None
        return max(min(map(self._seconds_left, names)), self._busy_until - time.monotonic(), 0.0)

    def _seconds_left(self, what: str) -> float:
        failure = self._failures.get(what)
        return 0.0 if failure is None else max(failure.again_at - time.monotonic(), 0.0)

    def mend(self, collection: int) -> bool:
        """Remove or make one index, and tell whether another one is to be done now.

        Whole, however long that takes: an index is not built by halves.
        """
        name, label = self._next(collection)
        if name is None:
            return False
        try:
            with self._defining() as define:
                policy = self._settings(collection)[0]
                if name in indexes.amiss(collection, policy, self._engine.all_indexes())[1]:
                    indexes.build(self._engine, define, collection, policy, name)
                else:
                    indexes.remove(self._engine, define, collection, policy, name)
        except StoreClosed:
            raise
        except StoreBusy:  # another process has its hands on them, or a transaction stays open that must end before
            self._busy_until = time.monotonic() + BUSY_SECONDS
        except TtlStoreError as error:
            self._put_off(name, f"an index of the collection {label}", error)
        else:
            self._failures.pop(name, None)
        return self._next(collection)[0] is not None

    def forget(self, collection: int) -> bool:
        """A dropped collection without documents, and its indexes: empty by now, they are removed in no time."""
        what = index_prefix(collection)
        try:
            with self._engine.writing():
                if not self._engine.change(self._engine.statements.forget_dropped, (collection,)):
                    return False
                indexes.remove_others(self._engine, self._engine.define, collection, IndexingPolicy())
        except StoreClosed:
            raise
        except (StoreBusy, CollectionNotFound):  # somebody may still write to it who began before it was dropped
            return False
        except TtlStoreError as error:
            self._put_off(what, "what is left of a dropped collection", error)
            return False
        self._failures.pop(what, None)
        return True

    def _next(self, collection: int) -> tuple[str | None, str]:
        """An index to be done now, and the collection for messages."""
        policy, label = self._settings(collection)
        there = self._engine.all_indexes()
        if self.due_in(collection, policy, there) != 0:
            return None, label
        names = sorted(set().union(*indexes.amiss(collection, policy, there)))
        return next((name for name in names if not self._seconds_left(name)), None), label

    def _settings(self, collection: int) -> tuple[IndexingPolicy, str]:
        settings = self._engine.one(self._engine.statements.collection, (collection,))
        if settings is None:
            return IndexingPolicy(), "that was dropped"
        return IndexingPolicy.stored(*settings[-2:]), shown(settings[1])

    @contextmanager
    def _defining(self) -> Iterator[indexes.Define]:
        with self._engine.defining() as define:
            if define is not None:
                yield define
                return
            with self._engine.writing():
                yield self._engine.define

    def _put_off(self, what: str, label: str, error: TtlStoreError) -> None:
        before = self._failures.get(what)
        wait = FIRST_RETRY_SECONDS if before is None else min(before.wait * 2, LAST_RETRY_SECONDS)
        self._failures[what] = _Failure(str(error), time.monotonic() + wait, wait)
        self._failed(error)
        if before is None or before.said != str(error):  # once, however often it is tried
            log.warning(
                "the vacuum of %s cannot make or remove %s, and goes on without; next try in %g s: %s",
                *(self._engine.name, label, wait, error),
            )
