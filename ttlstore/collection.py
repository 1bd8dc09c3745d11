"""A collection: the verbs on its documents."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NoReturn, TypeVar

from ttlstore import patch, ttl
from ttlstore.background import BackgroundVacuum
from ttlstore.bulk import BulkWrite
from ttlstore.document import (
    Document,
    Encoded,
    check_id,
    comparable,
    decode,
    encode,
    encode_partition,
    new_etag,
    parse_pointer,
    partition_of,
    with_system,
)
from ttlstore.engine import Engine
from ttlstore.errors import (
    DocumentExists,
    DocumentNotFound,
    PartitionRequired,
    PreconditionFailed,
    StoreCorrupt,
    dropped,
    shown,
)
from ttlstore.indexing import IndexingPolicy, check_ttl_and_indexing
from ttlstore.insight import CollectionStats, ForecastInterval, Insight, TtlChange
from ttlstore.newest import newest
from ttlstore.queries import Queries
from ttlstore.query.explain import Explanation
from ttlstore.query.pages import Page
from ttlstore.query.parameters import Parameters
from ttlstore.settings import CollectionSettings
from ttlstore.statements import Prepared, Values
from ttlstore.ttl import Expiry, check_default_ttl, present
from ttlstore.unset import UNSET, Unset
from ttlstore.walk import Walk

D = TypeVar("D")

MAX_INTERVALS = 10_000  # of a forecast


class Collection:
    """A named set of documents with one default TTL. Made by a `Store`.

    Every verb sees live documents only, and raises CollectionNotFound once the collection was dropped. A point
    operation on a collection that is partitioned by anything but `/id` takes `partition=`, else PartitionRequired.
    """

    def __init__(
        self, engine: Engine, background: BackgroundVacuum | None, id: int, name: str, partition_key: str
    ) -> None:
        self.name = name
        self.partition_key = partition_key
        self._engine = engine
        self._statements = engine.statements
        self._clock = engine.clock
        self._statement_clock = engine.statement_clock
        self._background = background
        self._id = id
        self._partition_path = parse_pointer(partition_key)
        self._partitioned_by_id = self._partition_path == ("id",)
        # What `partition` is where it may be left out; nothing is this where it may not. It spares each read a call.
        self._implied: object = UNSET if self._partitioned_by_id else object()
        self._settings = CollectionSettings(engine, id, name)
        self._queries = Queries(engine, id, name, self._partition_path)
        self._walk = Walk(engine, id)

    def __repr__(self) -> str:
        return f"<Collection {self.name!r} of {self._engine.name}>"

    # --- settings ---------------------------------------------------------------------------------------------------

    @property
    def default_ttl(self) -> int | None:
        """None: TTL is off; -1: on, no default; n: seconds. As it stands in the database now."""
        return self._settings.default_ttl

    @property
    def indexing(self) -> IndexingPolicy:
        """The indexing policy, as it stands in the database now."""
        return self._settings.indexing

    def configure(
        self,
        *,
        default_ttl: int | timedelta | Unset | None = UNSET,
        indexing: IndexingPolicy | str | Callable[[IndexingPolicy], IndexingPolicy] | Unset = UNSET,
    ) -> None:
        """Change the settings that are passed. A new `default_ttl` holds at once, for every document that inherits it.

        `indexing` may be a function that makes the new policy of the present one, which nobody changes meanwhile.

        Raises InvalidTtl or InvalidCollection.
        """
        self._settings.change(default_ttl, indexing)
        if self._background:
            self._background.wake()

    # --- reading ----------------------------------------------------------------------------------------------------

    def read(self, id: str, *, partition: Any = UNSET) -> Document:
        """The document. Raises DocumentNotFound."""
        document = self._find(id, "" if partition is self._implied else self._partition(id, partition))
        if document is None:
            raise self._not_found(id, partition)
        return document

    def get(self, id: str, default: D | None = None, *, partition: Any = UNSET) -> Document | D | None:
        """The document, or the default if there is none."""
        document = self._find(id, "" if partition is self._implied else self._partition(id, partition))
        return default if document is None else document

    def _find(self, id: str, key: str) -> Document | None:
        values = (check_id(id), key, present(self._statement_clock), self._id)
        body, ts, etag, checksum = self._engine.one(self._statements.read, values) or self._raise_dropped()
        if body is None:
            return None
        document = decode(body, ts, etag, checksum)
        if document["id"] != id or (key and partition_of(document, self._partition_path) != key):
            raise self._mixed_up(id)
        return document

    def expiry(self, id: str, *, partition: Any = UNSET) -> Expiry:
        """When the document expires, and why. Raises DocumentNotFound."""
        values = (check_id(id), self._partition(id, partition), present(self._statement_clock), self._id)
        ts, own_ttl, default_ttl, now = self._engine.one(self._statements.expiry, values) or self._raise_dropped()
        if ts is None:
            raise self._not_found(id, partition)
        return ttl.expiry(own_ttl, default_ttl, ts, now)

    def count(self) -> int:
        """How many documents there are."""
        row = self._engine.one(self._statements.count, (present(self._statement_clock), self._id))
        count: int = (row or self._raise_dropped())[0]
        return count

    def __len__(self) -> int:
        return self.count()

    def __contains__(self, id: object) -> bool:
        """Whether there is a document with this id, in any partition."""
        if not isinstance(id, str):
            return False
        row = self._engine.one(self._statements.contains, (check_id(id), present(self._statement_clock), self._id))
        return bool((row or self._raise_dropped())[0])

    def __iter__(self) -> Iterator[Document]:
        """Every document, in the order in which they were first written.

        Documents may be written and deleted meanwhile: one that is there all the time comes once, as it is when its
        turn comes near; one that expires before its turn does not come.
        """
        yield from self._walk.live()
        self._settings.row()  # nothing is also what a dropped collection has

    def snapshot(self) -> Iterator[Document]:
        """Every document, in the order of iteration, as it is when the first is asked for.

        What is written or expires meanwhile does not show. Until the last was read the file cannot shrink.
        """
        self._settings.row()
        yield from self._walk.snapshot()

    def newest(
        self, *, limit: int = 20, partition: Any = UNSET, expiring_within: float | None = None
    ) -> list[tuple[Document, Expiry]]:
        """The documents written last, the newest first, and when each expires.

        With `partition`, only those in it; with `expiring_within`, only those that expire in so many seconds.
        Raises ValueError.
        """
        asked = None if partition is UNSET else encode_partition(partition)
        if asked is not None and self._partitioned_by_id:
            asked = partition if isinstance(partition, str) else ""  # which is no document's id
        found = newest(self._engine, self._id, limit, asked, expiring_within, by_id=self._partitioned_by_id)
        if not found:
            self._settings.row()  # nothing is also what a dropped collection has
        return found

    # --- queries ----------------------------------------------------------------------------------------------------

    def query(
        self, sql: str, parameters: Parameters | None = None, *, partition: Any = UNSET, scan: bool = False
    ) -> Iterator[Any]:
        """The results of a query, one after the other, as of the moment when the first is asked for.

        Text that does not start with SELECT is a condition: `"c.total > 10"`. With `partition`, only documents in it
        are asked. In indexing mode `"none"` a query needs `scan=True`. Raises QueryError.
        """
        return self._queries.run(sql, parameters, partition, scan=scan)

    def query_page(
        self,
        sql: str,
        parameters: Parameters | None = None,
        *,
        size: int = 100,
        token: str | None = None,
        partition: Any = UNSET,
        scan: bool = False,
    ) -> Page:
        """So many results of a query, and the token with which the same call gives those after them.

        Whatever is written or expires between two pages, nothing comes twice and nothing that stays is left out.
        Raises QueryError, also for a token that is not of this query.
        """
        return self._queries.page(sql, parameters, partition, scan=scan, size=size, token=token)

    def explain(self, sql: str, parameters: Parameters | None = None, *, partition: Any = UNSET) -> Explanation:
        """What of a query the database does, which index serves it, and what is evaluated afterwards. Runs nothing."""
        return self._queries.explain(sql, parameters, partition)

    # --- insight ----------------------------------------------------------------------------------------------------

    def stats(self) -> CollectionStats:
        """Live and waiting documents and bytes, and the next expiry. Read from the indexes."""
        with self._insight() as insight:
            return insight.stats()

    def forecast(self, *, interval: float | timedelta = 3600, intervals: int = 24) -> list[ForecastInterval]:
        """Documents and bytes that expire in each of the intervals (seconds) ahead, if nothing is written."""
        seconds = interval.total_seconds() if isinstance(interval, timedelta) else interval
        if not 0.001 <= seconds <= ttl.MAX_TTL:
            raise ValueError(f"interval must be a number of seconds from 0.001 to {ttl.MAX_TTL}, got {shown(interval)}")
        if not 1 <= intervals <= MAX_INTERVALS:
            raise ValueError(f"intervals must be from 1 to {MAX_INTERVALS}, got {shown(intervals)}")
        with self._insight() as insight:
            return insight.forecast(seconds, intervals)

    def preview_ttl(self, default_ttl: int | timedelta | None) -> TtlChange:
        """What `configure(default_ttl=…)` would hide and revive at this moment. Changes nothing. Raises InvalidTtl."""
        new_default_ttl = check_default_ttl(default_ttl)
        with self._insight() as insight:
            check_ttl_and_indexing(new_default_ttl, self.indexing)
            return insight.preview(new_default_ttl)

    @contextmanager
    def _insight(self) -> Iterator[Insight]:
        with self._engine.reading():
            yield Insight(self._engine, self._id, self.default_ttl, present(self._clock))

    # --- recovery ---------------------------------------------------------------------------------------------------

    def waiting(self) -> Iterator[tuple[Document, Expiry]]:
        """The expired documents whose rows are not deleted yet, and why they expired: what `recover` can bring back."""
        return self._walk.waiting()

    def recover(self, id: str, *, partition: Any = UNSET) -> Document:
        """Bring back a document that expired and whose row is still there, as a new write. Returns it as stored.

        The one exception to "nothing brings it back"; a `VacuumPolicy` with a `grace` makes it dependable. Raises
        DocumentNotFound if the row is gone, DocumentExists if the document is live.
        """
        key = (check_id(id), self._partition(id, partition))
        with self._engine.writing():
            row = self._engine.one(self._statements.read_waiting, (self._id, *key, present(self._statement_clock)))
            if row is None:
                if self._find(*key):
                    raise DocumentExists(f"the document {shown(id)} in {self.name!r} is live: nothing to recover")
                raise self._not_found(id, partition)
            return self.create(decode(*row))

    # --- writing ----------------------------------------------------------------------------------------------------

    def create(self, document: Document) -> Document:
        """Store a new document; an id is made up if it has none. Returns it as stored.

        Raises DocumentExists, InvalidDocument or InvalidTtl.
        """
        encoded, stored = encode(document, self._partition_path, make_id=True)
        etag = new_etag()
        changed, ts = self._engine.write(
            self._statements.create, lambda now, ts: (*encoded.values(ts, etag), self._id, now)
        )
        if not changed:
            self._settings.row()
            raise DocumentExists(f"there is a document {encoded.id!r} in {self.name!r} already")
        return self._stored(stored, encoded, ts, etag)

    def upsert(self, document: Document, *, if_match: str | None = None) -> Document:
        """Store a document, whether there is one with its id or not. Returns it as stored.

        With `if_match`, only over the version with that `_etag`, else PreconditionFailed. Raises InvalidDocument or
        InvalidTtl.
        """
        encoded, stored = encode(document, self._partition_path)
        etag = new_etag()
        if if_match is None:
            changed, ts = self._engine.write(
                self._statements.upsert, lambda now, ts: (*encoded.values(ts, etag), self._id)
            )
        else:
            changed, ts = self._replace(encoded, etag, if_match)
        if not changed:
            self._settings.row()
            raise self._precondition_failed(encoded.id, if_match)
        return self._stored(stored, encoded, ts, etag)

    def replace(self, document: Document, *, if_match: str | None = None) -> Document:
        """Store a document in place of the one with its id. Returns it as stored.

        Raises DocumentNotFound, InvalidDocument or InvalidTtl; with `if_match`, PreconditionFailed if the one that is
        there has another `_etag`.
        """
        encoded, stored = encode(document, self._partition_path)
        etag = new_etag()
        while True:
            changed, ts = self._replace(encoded, etag, if_match)
            if changed:
                return self._stored(stored, encoded, ts, etag)
            self._explain_refusal(encoded.id, encoded.partition, if_match)

    def patch(
        self,
        id: str,
        operations: Sequence[patch.Operation],
        *,
        partition: Any = UNSET,
        if_match: str | None = None,
    ) -> Document:
        """Change parts of a document: all of the operations or none. Returns it as stored.

        An operation is `{"op": …, "path": "/a/b", "value": …}`, where `op` is `set`, `add`, `replace`, `remove`, `incr`
        or `move` (`"from"` instead of `"value"`). Raises DocumentNotFound, InvalidPatch, InvalidDocument, InvalidTtl or
        PreconditionFailed.
        """

        def apply(document: Document) -> None:
            if if_match is not None and document["_etag"] != if_match:
                raise self._precondition_failed(id, if_match)
            patch.apply(document, operations, self._partition_path)

        return self._rewrite(id, partition, apply)

    def touch(self, id: str, *, partition: Any = UNSET) -> Document:
        """Restart the countdown of a document. Returns it as stored. Raises DocumentNotFound."""
        return self._rewrite(id, partition, lambda document: None)

    def delete(self, id: str, *, partition: Any = UNSET, if_match: str | None = None) -> None:
        """Delete a document. Raises DocumentNotFound; with `if_match`, PreconditionFailed."""
        key = (check_id(id), self._partition(id, partition))
        etag = comparable(if_match)
        while True:
            if if_match is None:
                changed, _ = self._engine.write(self._statements.delete, lambda now, ts: (*key, self._id, now))
            else:
                changed, _ = self._engine.write(self._statements.delete_if, lambda now, ts: (*key, self._id, now, etag))
            if changed:
                return
            self._explain_refusal(*key, if_match)

    def create_many(self, documents: Iterable[Document]) -> int:
        """Store new documents from any iterable, in batches; returns how many. Inside `transaction()`: all or none.

        Raises what `create` does, naming the position of the document and how many are stored.
        """
        encoded = (encode(document, self._partition_path, make_id=True)[0] for document in documents)
        return self._bulk(self._statements.create, lambda now: (self._id, now)).run(encoded)

    def upsert_many(self, documents: Iterable[Document]) -> int:
        """Store documents from any iterable, in batches; returns how many. Inside `transaction()`: all or none.

        Raises what `upsert` does, naming the position of the document and how many are stored.
        """
        encoded = (encode(document, self._partition_path)[0] for document in documents)
        return self._bulk(self._statements.upsert, lambda now: (self._id,)).run(encoded)

    def _bulk(self, statement: Prepared, context: Callable[[int], Values]) -> BulkWrite:
        return BulkWrite(self._engine, statement, context, self._refuse_in_bulk, self._noticed)

    # --- how writes are made ----------------------------------------------------------------------------------------

    def _noticed(self, ttls: Iterable[int | None], ts: int) -> None:
        if self._background:
            for each in ttls:
                self._background.notice(self._id, each, ts)

    def _stored(self, document: Document, encoded: Encoded, ts: int, etag: str) -> Document:
        if self._background:
            self._background.notice(self._id, encoded.ttl, ts)
        return with_system(document, ts, etag)

    def _replace(self, encoded: Encoded, etag: str, if_match: str | None) -> tuple[int, int]:
        if if_match is None:
            return self._engine.write(
                self._statements.replace, lambda now, ts: (*encoded.values(ts, etag), self._id, now)
            )
        return self._engine.write(
            self._statements.replace_if,
            lambda now, ts: (*encoded.values(ts, etag), self._id, now, comparable(if_match)),
        )

    def _rewrite(self, id: str, partition: Any, change: Callable[[Document], None]) -> Document:
        """Read, change and write a document as one."""
        with self._engine.writing():
            document = self.read(id, partition=partition)
            change(document)
            return self.replace(document)

    # --- partitions and refusals ------------------------------------------------------------------------------------

    def _partition(self, id: str, partition: Any) -> str:
        if self._partitioned_by_id:
            return "" if partition is UNSET or partition == id else encode_partition(partition)
        if partition is UNSET:
            raise PartitionRequired(f"{self.name!r} is partitioned by {self.partition_key}: pass partition=")
        return encode_partition(partition)

    def _explain_refusal(self, id: str, partition: str, if_match: str | None) -> None:
        """Raise why a write of a document that must be there changed nothing; return if it would by now."""
        found = self._find(id, partition)
        if found is None:
            raise self._not_found(id, UNSET)
        if if_match is not None and found["_etag"] != if_match:
            raise self._precondition_failed(id, if_match)

    def _refuse_in_bulk(self, encoded: Encoded) -> NoReturn:
        self._settings.row()
        raise DocumentExists(f"there is a document {encoded.id!r} in {self.name!r} already")

    def _not_found(self, id: str, partition: Any) -> DocumentNotFound:
        where = "" if partition is UNSET else f" in partition {shown(partition)}"
        return DocumentNotFound(f"there is no document {shown(id)} in {self.name!r}{where}")

    def _mixed_up(self, id: str) -> StoreCorrupt:
        return StoreCorrupt(f"an index of {self._engine.name} is damaged: from {shown(id)} it leads to another")

    def _precondition_failed(self, id: str, if_match: str | None) -> PreconditionFailed:
        return PreconditionFailed(
            f"the document {shown(id)} in {self.name!r} is not the version {shown(if_match)} (if_match); read it again"
        )

    def _raise_dropped(self) -> NoReturn:
        raise dropped(self.name)
