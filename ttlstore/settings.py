"""The settings of a collection: as they stand in the database, and how they change."""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

from ttlstore import indexes
from ttlstore.engine import Engine, Row
from ttlstore.errors import StoreBusy, dropped
from ttlstore.indexing import IndexingPolicy, check_ttl_and_indexing
from ttlstore.ttl import check_default_ttl
from ttlstore.unset import UNSET, Unset


class CollectionSettings:
    """The default TTL and the indexing policy of a collection, both read anew each time."""

    def __init__(self, engine: Engine, collection: int, name: str) -> None:
        self._engine = engine
        self._statements = engine.statements
        self._collection = collection
        self._name = name

    def row(self) -> Row:
        """As `Statements.collection` has it. Raises CollectionNotFound."""
        row = self._engine.one(self._statements.collection, (self._collection,))
        if row is None:
            raise dropped(self._name)
        return row

    @property
    def default_ttl(self) -> int | None:
        default_ttl: int | None = self.row()[3]
        return default_ttl

    @property
    def indexing(self) -> IndexingPolicy:
        *_, mode, paths = self.row()
        return IndexingPolicy.stored(mode, paths)

    def change(
        self,
        default_ttl: int | timedelta | Unset | None,
        indexing: IndexingPolicy | str | Callable[[IndexingPolicy], IndexingPolicy] | Unset,
    ) -> None:
        """Change those that are passed, and the indexes with them. Raises InvalidTtl or InvalidCollection."""
        new_ttl = default_ttl if default_ttl is UNSET else check_default_ttl(default_ttl)
        if indexing is UNSET:
            self._store(new_ttl, UNSET)
        else:
            self._change_indexes(new_ttl, indexing)

    def _change_indexes(
        self,
        default_ttl: int | Unset | None,
        new: IndexingPolicy | str | Callable[[IndexingPolicy], IndexingPolicy],
    ) -> None:
        engine, id = self._engine, self._collection
        if not callable(new):
            new = IndexingPolicy.of(new)  # before anyone waits: it may be wrong
        with engine.defining() as define:
            if define is None:
                with engine.writing():
                    indexing = new(self.indexing) if callable(new) else new
                    self._store(default_ttl, indexing)
                    indexes.remove_others(engine, engine.define, id, indexing)
                    indexes.make(engine, engine.define, id, indexing)
                return
            indexing = new(self.indexing) if callable(new) else new
            # Before the settings, so that a failure leaves them as they are: but only if they can be so at all.
            check_ttl_and_indexing(self.default_ttl if default_ttl is UNSET else default_ttl, indexing)
            indexes.make(engine, define, id, indexing)
            self._store(default_ttl, indexing)
            with suppress(StoreBusy):  # the vacuum will come to it
                indexes.remove_others(engine, define, id, indexing)

    def _store(self, default_ttl: int | Unset | None, indexing: IndexingPolicy | Unset) -> None:
        with self._engine.writing():
            settings = self._engine.one(self._statements.collection_to_change, (self._collection,))
            if settings is None:
                raise dropped(self._name)
            *_, old_ttl, mode, paths = settings
            new_ttl: int | None = old_ttl if default_ttl is UNSET else default_ttl
            new_indexing = IndexingPolicy.stored(mode, paths) if indexing is UNSET else indexing
            check_ttl_and_indexing(new_ttl, new_indexing)
            values = (new_ttl, new_indexing.mode, new_indexing.paths_json(), self._collection)
            self._engine.change(self._statements.configure, values)
