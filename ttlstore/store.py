"""A store: the collections in one database, and what concerns all of them."""

import dataclasses
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import timedelta
from types import TracebackType
from typing import Self

import orjson

from ttlstore import engine as engines
from ttlstore import indexes
from ttlstore import migrate as migrations
from ttlstore.background import BackgroundVacuum
from ttlstore.clockguard import ClockGuard
from ttlstore.collection import Collection
from ttlstore.document import check_text, decode, encode, parse_pointer
from ttlstore.engine import Durability, Engine, Progress, Row
from ttlstore.errors import (
    CannotOpen,
    CollectionExists,
    CollectionNotFound,
    InvalidCollection,
    InvalidDocument,
    InvalidTtl,
    SchemaOutdated,
    SchemaTooNew,
    StoreBusy,
    StoreCorrupt,
    StoreFailed,
    TtlStoreError,
    shown,
)
from ttlstore.indexing import IndexingPolicy, check_ttl_and_indexing
from ttlstore.insight import StoreStats, store_stats
from ttlstore.ttl import Clock, check_clock, check_default_ttl, present
from ttlstore.unset import UNSET, Unset
from ttlstore.vacuum import Vacuum, VacuumPolicy, VacuumReport

MAX_NAME_BYTES = 255  # of a collection's name, in UTF-8
NAMED_COLLECTIONS = 8  # at most, to whoever named one that is not there
CHECKED_ROWS = 500  # read at a time by check()


def open(
    target: str | os.PathLike[str],
    *,
    clock: Clock = time.time,
    vacuum: bool | VacuumPolicy = True,
    migrate: bool = True,
    durability: Durability = "full",
    busy_timeout: float = 5.0,
    read_only: bool = False,
) -> "Store":
    """Open a store, and make it if it is not there.

    `target` is a path, `":memory:"` or a SQLAlchemy URL. Rows of expired documents are deleted in the background, as a
    `VacuumPolicy` says, unless `vacuum=False`. An older store is upgraded. With `migrate=False` nothing is made or
    upgraded: the store must be there, and up to date. With `durability="full"` a write that returned survives a loss of
    power, with `"normal"` a crash of the process. A call that needs a lock waits for up to `busy_timeout` seconds.
    With `read_only=True`, as for the standby of a PostgreSQL server, writes raise StoreReadOnly, and nothing is made,
    upgraded or vacuumed.

    Raises CannotOpen, NotAStore, SchemaOutdated, SchemaTooNew or StoreBusy.
    """
    check_clock(clock)
    if vacuum not in (True, False) and not isinstance(vacuum, VacuumPolicy):
        raise ValueError(f"vacuum must be True, False or a VacuumPolicy, got {shown(vacuum)}")
    for name, value in (("migrate", migrate), ("read_only", read_only)):
        if value not in (True, False):
            raise ValueError(f"{name} must be True or False, got {shown(value)}")
    if read_only:
        migrate = vacuum = False
    engine = engines.connect(
        target, clock=clock, durability=durability, busy_timeout=busy_timeout, create=migrate, read_only=read_only
    )
    try:
        if vacuum and engine.standby:
            raise CannotOpen(
                f"{engine.name} is a standby, where nothing can be deleted: vacuum the primary, and open this with "
                "read_only=True"
            )
        migrations.ensure_schema(engine, migrate=migrate)
        # A clock of the caller's own may jump as it likes.
        return Store(engine, vacuum, ClockGuard(engine.clock) if clock is time.time else None)
    except BaseException:
        engine.close()
        raise


class Store:
    """An open store. May be used from many threads, and left to forked children; close it, or use it with `with`."""

    def __init__(self, engine: Engine, vacuum: bool | VacuumPolicy, guard: ClockGuard | None) -> None:
        self._engine = engine
        self._statements = engine.statements
        self._clock = engine.clock
        self._guard = guard
        policy = vacuum if isinstance(vacuum, VacuumPolicy) else VacuumPolicy()
        self._vacuum = Vacuum(engine, self._clock, guard, policy)
        self._background = (
            BackgroundVacuum(self._vacuum, engine, self._clock, policy.grace_milliseconds()) if vacuum else None
        )

    def __repr__(self) -> str:
        return f"<Store {self._engine.name}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def name(self) -> str:
        """What was opened, as it may be shown: without a password."""
        return self._engine.name

    def now(self) -> float:
        """The time by the store's clock, in seconds since the Unix epoch. No document expires by any other."""
        return present(self._clock) / 1000

    def close(self) -> None:
        """Wait for the calls under way and give the file back. Calls after that raise StoreClosed."""
        if self._background:
            self._background.stop()
        self._engine.close()

    # --- collections ------------------------------------------------------------------------------------------------

    def create_collection(
        self,
        name: str,
        *,
        partition_key: str = "/id",
        default_ttl: int | timedelta | None = None,
        indexing: IndexingPolicy | str = "consistent",
    ) -> Collection:
        """Make a collection. Raises CollectionExists, InvalidCollection or InvalidTtl.

        `default_ttl` is None (TTL is off), -1 (on, no default) or a number of seconds.
        """
        _check_name(name)
        _check_partition_key(partition_key)
        default_ttl = check_default_ttl(default_ttl)
        indexing = IndexingPolicy.of(indexing)
        check_ttl_and_indexing(default_ttl, indexing)
        row = (name, partition_key, default_ttl, indexing.mode, indexing.paths_json(), present(self._clock))
        with self._engine.defining() if indexing.paths else nullcontext() as define:
            with self._engine.writing():
                if not self._engine.change(self._statements.create_collection, row):
                    raise CollectionExists(f"there is a collection {name!r} in {self._engine.name} already")
                collection = self.collection(name)
                if define is None:
                    indexes.make(self._engine, self._engine.define, collection._id, indexing)
            if define is not None:
                try:
                    indexes.make(self._engine, define, collection._id, indexing)
                except StoreBusy as error:
                    # Not to be dropped again: others may have stored something in it by now.
                    raise StoreBusy(
                        f"{error}; the collection {name!r} is there, and the vacuum will index it"
                    ) from error
        if self._background and indexing.mode == "lazy":
            self._background.wake()
        return collection

    def ensure_collection(
        self,
        name: str,
        *,
        partition_key: str | Unset = UNSET,
        default_ttl: int | timedelta | None = None,
        indexing: IndexingPolicy | str = "consistent",
    ) -> Collection:
        """The collection as it stands; made with these settings only if there is none.

        Raises InvalidCollection if it is partitioned by another key than the one that is named: that cannot be changed.
        """
        key = "/id" if partition_key is UNSET else partition_key
        if self._find(name) is None:
            try:
                return self.create_collection(name, partition_key=key, default_ttl=default_ttl, indexing=indexing)
            except CollectionExists:
                pass  # another was faster
            except StoreBusy:
                if self._find(name) is None:
                    raise
        found = self.collection(name)
        if partition_key is not UNSET and found.partition_key != key:
            raise InvalidCollection(
                f"the collection {name!r} is partitioned by {found.partition_key}, not by {shown(key)}, and stays so"
            )
        return found

    def collection(self, name: str) -> Collection:
        """The collection. Raises CollectionNotFound."""
        settings = self._find(name)
        if settings is None:
            raise CollectionNotFound(f"there is no collection {shown(name)} in {self._engine.name}{self._named()}")
        return self._collection(settings)

    def _named(self) -> str:
        """The collections that are there, for whoever named one that is not; nothing where they are many."""
        names = [shown(collection.name) for collection in self.list_collections()]
        return f": it has {', '.join(names)}" if 0 < len(names) <= NAMED_COLLECTIONS else ""

    def list_collections(self) -> list[Collection]:
        """All collections, by name."""
        return [self._collection(settings) for settings in self._engine.all(self._statements.list_collections)]

    def delete_collection(self, name: str) -> None:
        """Drop a collection and its documents, and free its name. Raises CollectionNotFound."""
        _check_name(name)
        with self._engine.writing():
            if not self._engine.change(self._statements.drop_collection, (name,)):
                raise CollectionNotFound(f"there is no collection {name!r} in {self._engine.name}")
        if self._background:
            self._background.wake()

    def _find(self, name: str) -> Row | None:
        _check_name(name)
        return self._engine.one(self._statements.collection_named, (name,))

    def _collection(self, settings: Row) -> Collection:
        id, name, partition_key, default_ttl, mode, paths = settings
        try:
            _check_name(name)
            _check_partition_key(partition_key)
            check_ttl_and_indexing(check_default_ttl(default_ttl), IndexingPolicy.stored(mode, paths))
        except (InvalidCollection, InvalidTtl, orjson.JSONDecodeError, TypeError) as error:
            raise StoreCorrupt(f"{self._engine.name} is damaged, the settings of a collection too: {error}") from error
        return Collection(self._engine, self._background, id, name, partition_key)

    # --- the whole store --------------------------------------------------------------------------------------------

    def transaction(self) -> AbstractContextManager[None]:
        """Everything this thread does inside is one change, over all collections; an exception takes it back.

        Nested, it is a savepoint. Other threads and processes see nothing of it before its end, and cannot write
        meanwhile.
        """
        return self._engine.writing()

    def vacuum(
        self,
        *,
        max_seconds: float | None = None,
        grace: float | timedelta | None = None,
        progress: Progress | None = None,
    ) -> VacuumReport:
        """Delete the rows of expired documents now, in batches, and give the space back; for so long at most.

        What expired less than `grace` ago is kept; by itself, what the store was opened with. What others hold is left
        to the next time. `progress` is told after each batch how many rows are deleted, of how many that waited at the
        start.
        """
        vacuum = self._vacuum if grace is None else self._vacuum.with_grace(grace)
        if progress is None:
            return vacuum.run(pause=time.sleep, max_seconds=max_seconds)
        waiting, before = self.stats().waiting_documents, self._vacuum.stats.deleted

        def pause(seconds: float) -> None:
            progress(self._vacuum.stats.deleted - before, waiting)
            time.sleep(seconds)

        return vacuum.run(pause=pause, max_seconds=max_seconds)

    def trust_clock(self) -> None:
        """Say that the clock is right, after it was set forward and the vacuum holds because of it."""
        if self._guard:
            self._guard.trust()
        if self._background:
            self._background.wake()

    def stats(self) -> StoreStats:
        """All collections by numbers, the space they take up, and what the vacuum of this process has done."""
        now = present(self._clock)
        with self._engine.reading():
            return store_stats(self._engine, now, dataclasses.replace(self._vacuum.stats))

    def check(self, *, progress: Progress = lambda checked, total: None) -> list[str]:
        """Look through the whole store for damage. Returns what is wrong, a sentence each; nothing if all is well.

        `progress` is told now and then how many of how many documents are checked, expired ones included.
        """
        problems: list[str] = []
        for look in (self._engine.check, self._damaged_settings, lambda: self._damaged_documents(progress)):
            try:
                problems.extend(look())
            except (StoreCorrupt, StoreFailed) as error:  # where looking further is not possible
                problems.append(str(error))
        return problems

    def _damaged_settings(self) -> list[str]:
        self.list_collections()  # raises what is wrong
        return []

    def _damaged_documents(self, progress: Progress) -> Iterator[str]:
        after = checked = total = 0
        # What is broken cannot be counted by, and the rows may be read all the same.
        with suppress(StoreCorrupt, StoreFailed, TypeError):
            stats = self.stats()
            total = stats.live_documents + stats.waiting_documents
        while rows := self._engine.all(self._statements.rows, (after, CHECKED_ROWS)):
            if rows[-1][1] <= after:
                raise StoreCorrupt(f"{self._engine.name} is damaged: its rows are out of order")
            after = rows[-1][1]
            for partition_key, _, partition, id, ttl, size, *stored in rows:
                try:
                    encoded, _ = encode(decode(*stored), parse_pointer(partition_key))
                except (TtlStoreError, ValueError, AttributeError) as error:  # the key may be damaged too
                    yield f"document {id!r}: {error}"
                    continue
                if (encoded.partition, encoded.id, encoded.ttl, len(encoded.body)) != (
                    partition,
                    id,
                    ttl,
                    size,
                ):
                    yield f"document {id!r}: its row and its body do not say the same"
            checked += len(rows)
            progress(checked, max(checked, total))

    def backup(self, path: str | os.PathLike[str], *, progress: Progress = lambda copied, total: None) -> None:
        """Copy the store to a new file, as it is at one moment, while others go on working. Raises CannotOpen.

        When it returns, the copy survives a loss of power. A backup that is killed leaves a file behind whose name ends
        in `.unfinished`. A store that is damaged is not copied: StoreCorrupt. `progress` is told now and then how many
        of how many pages are copied.
        """
        if self._engine.in_transaction():
            raise StoreBusy("a backup cannot be made inside transaction(): leave its block first")
        target = os.fsdecode(path)
        if os.path.lexists(target):
            raise CannotOpen(f"{target} is there already: a backup needs a new file")
        folder = os.path.dirname(target) or os.curdir
        if not os.path.isdir(folder):
            raise CannotOpen(f"{target} cannot be made: there is no folder {folder}")
        if not os.access(folder, os.W_OK):
            raise CannotOpen(f"{target} cannot be made: the folder cannot be written")
        # The name appears once the copy is whole. Until then another, which no other backup has.
        unfinished = f"{target}.{secrets.token_hex(4)}.unfinished"
        try:
            self._engine.backup(unfinished, progress)
            if problems := _problems_in(unfinished):
                raise StoreCorrupt(f"{self._engine.name} is damaged and was not copied: {problems[0]}")
            _publish(unfinished, target)
            _keep_names(folder)
        except OSError as error:
            if isinstance(error, TtlStoreError):
                raise
            raise CannotOpen(f"{target} cannot be written: {error.strerror}") from None
        finally:
            for file in (unfinished, f"{unfinished}-journal", f"{unfinished}-wal", f"{unfinished}-shm"):
                with suppress(OSError):
                    os.unlink(file)


def _problems_in(copy: str) -> list[str]:
    try:
        with open(copy, migrate=False, vacuum=False) as store:
            return store.check()
    except (SchemaOutdated, SchemaTooNew):
        return ["its schema is not what it was"]


def _publish(unfinished: str, target: str) -> None:
    try:
        os.link(unfinished, target)  # unlike a rename, it takes the place of nothing
    except FileExistsError:
        raise CannotOpen(f"{target} is there already: a backup needs a new file") from None
    except OSError:  # a file system without links
        os.replace(unfinished, target)


def _keep_names(folder: str) -> None:
    """Wait until the disk has them: what is in the file would be of no use without its name."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:  # a folder that may be written and not read; on Windows, any
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name:
        raise InvalidCollection(f"a collection's name must be a string that is not empty, got {shown(name)}")
    try:
        check_text("a collection's name", name)
    except InvalidDocument as error:
        raise InvalidCollection(str(error)) from None
    if len(name.encode()) > MAX_NAME_BYTES:
        raise InvalidCollection(
            f"a collection's name must be at most {MAX_NAME_BYTES} bytes of UTF-8, got {shown(name)}"
        )


def _check_partition_key(partition_key: object) -> None:
    try:
        if not isinstance(partition_key, str):
            raise TypeError
        check_text("a partition key", partition_key)
        valid = all(parse_pointer(partition_key))
    except (TypeError, ValueError):
        valid = False
    if not valid:
        raise InvalidCollection(
            f"a partition key must be a path such as '/customerId' or '/address/city', got {shown(partition_key)}"
        )
