"""Every verb, clock steps and changes of default_ttl at random, against a model that is a plain dict."""

import copy
import tempfile
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import ttlstore
from tests.model import Model, Row
from tests.postgres import Server
from tests.undone import Undone
from ttlstore import CollectionNotFound, DocumentExists, DocumentNotFound, InvalidTtl, PreconditionFailed
from ttlstore.testing import FakeClock

NAMES = ["one", "two"]
ids = st.sampled_from(["a", "b", "c", "ä/'"])
names = st.sampled_from(NAMES)
ttls = st.sampled_from([None, None, -1, 1, 2, 5])
default_ttls = st.sampled_from([None, -1, 1, 2, 5])
steps = st.sampled_from([0.001, 0.999, 1.0, 1.0, 2.0, 5.0, -0.001, -1.0])
contents = st.dictionaries(
    st.sampled_from(["x", "y", ""]), st.integers(-(2**63), 2**63 - 1) | st.text(max_size=3), max_size=2
)
etags = st.sampled_from(["present", "older", "none"])


class AnyOrderOfCalls(RuleBasedStateMachine):
    target = ":memory:"

    def __init__(self) -> None:
        super().__init__()
        self.resources = ExitStack()
        self.clock = FakeClock()
        self.store = self.opened()
        self.model = Model()
        self.etags = {"never there"}
        self.transactions: list[tuple[AbstractContextManager[None], Model]] = []

    def opened(self) -> ttlstore.Store:
        return ttlstore.open(self.target, clock=self.clock, durability="normal", vacuum=False)

    def teardown(self) -> None:
        while self.transactions:
            self.leave_a_transaction(good=True)
        assert self.store.check() == []
        self.store.close()
        self.resources.close()

    # --- helpers ---

    def now(self) -> int:
        return round(self.clock() * 1000)

    def live(self, name: str) -> dict[str, Row]:
        return self.model.live(name, self.now())

    def collection(self, name: str) -> ttlstore.Collection:
        return self.store.collection(name)

    def written(self, name: str, document: dict[str, Any], stored: dict[str, Any]) -> None:
        """The store says that it stored this: it must be true, new and written now."""
        document = {key: value for key, value in document.items() if value is not None or key != "ttl"}
        etag = stored["_etag"]
        assert etag not in self.etags, "an etag was used again"
        self.etags.add(etag)
        row = Row(document, self.now(), etag)
        assert stored == row.shown()
        self.model.rows[name][document["id"]] = row

    def etag(self, row: Row | None, which: str) -> str | None:
        if which == "none":
            return None
        return row.etag if row is not None and which == "present" else "never there"

    # --- settings and time ---

    @initialize(one=default_ttls, two=default_ttls)
    def make_collections(self, one: int | None, two: int | None) -> None:
        for name, default_ttl in zip(NAMES, (one, two), strict=True):
            self.store.create_collection(name, default_ttl=default_ttl)
            self.model.default_ttl[name] = default_ttl
            self.model.rows[name] = {}

    @rule(by=steps)
    def time_passes(self, by: float) -> None:
        self.clock.advance(by)

    @rule(name=names, default_ttl=default_ttls)
    def change_the_default(self, name: str, default_ttl: int | None) -> None:
        self.collection(name).configure(default_ttl=default_ttl)
        self.model.default_ttl[name] = default_ttl

    @rule(name=names, default_ttl=default_ttls)
    def drop_and_make_again(self, name: str, default_ttl: int | None) -> None:
        old = self.collection(name)
        self.store.delete_collection(name)
        self.store.create_collection(name, default_ttl=default_ttl)
        with pytest.raises(CollectionNotFound):
            old.count()
        self.model.default_ttl[name] = default_ttl
        self.model.rows[name] = {}

    # --- writing ---

    @rule(name=names, id=ids, ttl=ttls, content=contents)
    def create(self, name: str, id: str, ttl: int | None, content: dict[str, Any]) -> None:
        document = {"id": id, "ttl": ttl, **content}
        if id in self.live(name):
            with pytest.raises(DocumentExists):
                self.collection(name).create(document)
        else:
            self.written(name, document, self.collection(name).create(document))

    @rule(name=names, id=ids, ttl=ttls, content=contents, which=etags)
    def upsert(self, name: str, id: str, ttl: int | None, content: dict[str, Any], which: str) -> None:
        document = {"id": id, "ttl": ttl, **content}
        row = self.live(name).get(id)
        etag = self.etag(row, which)
        if etag == "never there":
            with pytest.raises(PreconditionFailed):
                self.collection(name).upsert(document, if_match=etag)
        else:
            self.written(name, document, self.collection(name).upsert(document, if_match=etag))

    @rule(name=names, id=ids, ttl=ttls, content=contents, which=etags)
    def replace(self, name: str, id: str, ttl: int | None, content: dict[str, Any], which: str) -> None:
        document = {"id": id, "ttl": ttl, **content}
        row = self.live(name).get(id)
        etag = self.etag(row, which)
        if row is None or etag == "never there":
            with pytest.raises(DocumentNotFound if row is None else PreconditionFailed):
                self.collection(name).replace(document, if_match=etag)
        else:
            self.written(name, document, self.collection(name).replace(document, if_match=etag))

    @rule(name=names, id=ids, ttl=ttls, value=st.integers(-9, 9), which=etags)
    def patch(self, name: str, id: str, ttl: int | None, value: int, which: str) -> None:
        operations: list[dict[str, Any]] = [
            {"op": "set", "path": "/x", "value": value},
            {"op": "set", "path": "/ttl", "value": ttl},
        ]
        row = self.live(name).get(id)
        etag = self.etag(row, which)
        if row is None or etag == "never there":
            with pytest.raises(DocumentNotFound if row is None else PreconditionFailed):
                self.collection(name).patch(id, operations, if_match=etag)
        else:
            patched = self.collection(name).patch(id, operations, if_match=etag)
            self.written(name, {**row.document, "x": value, "ttl": ttl}, patched)

    @rule(name=names, id=ids)
    def touch(self, name: str, id: str) -> None:
        row = self.live(name).get(id)
        if row is None:
            with pytest.raises(DocumentNotFound):
                self.collection(name).touch(id)
        else:
            self.written(name, row.document, self.collection(name).touch(id))

    @rule(name=names, id=ids, which=etags)
    def delete(self, name: str, id: str, which: str) -> None:
        row = self.live(name).get(id)
        etag = self.etag(row, which)
        if row is None or etag == "never there":
            with pytest.raises(DocumentNotFound if row is None else PreconditionFailed):
                self.collection(name).delete(id, if_match=etag)
        else:
            self.collection(name).delete(id, if_match=etag)
            del self.model.rows[name][id]

    @rule(name=names, wanted=st.lists(st.tuples(ids, ttls), max_size=4), verb=st.sampled_from(["create", "upsert"]))
    def write_many(self, name: str, wanted: list[tuple[str, int | None]], verb: str) -> None:
        documents: list[dict[str, Any]] = [{"id": id, "ttl": ttl, "n": n} for n, (id, ttl) in enumerate(wanted)]
        there = set(self.live(name))
        good = 0
        for document in documents:
            if verb == "create" and document["id"] in there:
                break
            there.add(document["id"])
            good += 1
        collection = self.collection(name)
        write = collection.create_many if verb == "create" else collection.upsert_many
        if good == len(documents):
            assert write(iter(documents)) == good
        else:
            with pytest.raises(DocumentExists, match=rf"document {good} "):
                write(iter(documents))
        stored = 0 if good < len(documents) and self.transactions else good
        for document in {document["id"]: document for document in documents[:stored]}.values():
            self.written(name, document, collection.read(document["id"]))

    @rule(name=names, id=ids, ttl=st.sampled_from([0, -2, 1.0, "1", True, 2**31]))
    def write_an_invalid_ttl(self, name: str, id: str, ttl: object) -> None:
        with pytest.raises(InvalidTtl):
            self.collection(name).upsert({"id": id, "ttl": ttl})

    # --- transactions ---

    @precondition(lambda self: len(self.transactions) < 3)
    @rule()
    def enter_a_transaction(self) -> None:
        transaction = self.store.transaction()
        before = copy.deepcopy(self.model)
        transaction.__enter__()
        self.transactions.append((transaction, before))

    @precondition(lambda self: self.transactions)
    @rule(good=st.booleans())
    def leave_a_transaction(self, good: bool) -> None:
        transaction, before = self.transactions.pop()
        if good:
            transaction.__exit__(None, None, None)
        else:
            error = Undone()
            assert not transaction.__exit__(Undone, error, None)
            self.model = before

    # --- what must hold after every step ---

    @invariant()
    def every_way_of_looking_agrees_with_the_model(self) -> None:
        for name in self.model.rows:
            collection, expected = self.collection(name), self.live(name)
            assert {document["id"]: document for document in collection} == {
                id: row.shown() for id, row in expected.items()
            }
            assert collection.count() == len(collection) == len(expected)
            assert collection.default_ttl == self.model.default_ttl[name]
            for id in ("a", "b", "c", "ä/'"):
                row = expected.get(id)
                assert collection.get(id) == (row.shown() if row else None)
                assert (id in collection) == (row is not None)
                if row is None:
                    with pytest.raises(DocumentNotFound):
                        collection.read(id)
                    with pytest.raises(DocumentNotFound):
                        collection.expiry(id)
                else:
                    left = collection.expiry(id).seconds_left
                    assert left is None or left > 0


class AnyOrderOfCallsOnAFile(AnyOrderOfCalls):
    """The same, and the store may be closed and opened again at any time."""

    def opened(self) -> ttlstore.Store:
        if self.target == ":memory:":
            self.target = str(Path(self.resources.enter_context(tempfile.TemporaryDirectory())) / "store.db")
        return super().opened()

    @precondition(lambda self: not self.transactions)
    @rule()
    def close_and_open_again(self) -> None:
        self.store.close()
        self.store = self.opened()


TestAnyOrderOfCalls = AnyOrderOfCalls.TestCase
TestAnyOrderOfCalls.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
TestAnyOrderOfCallsOnAFile = AnyOrderOfCallsOnAFile.TestCase
TestAnyOrderOfCallsOnAFile.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)


@pytest.mark.hypothesis  # which it marks by itself where it sees it at once
def test_any_order_of_calls_on_postgresql(postgres: Server) -> None:
    class AnyOrderOfCallsOnPostgres(AnyOrderOfCallsOnAFile):
        def opened(self) -> ttlstore.Store:
            if self.target == ":memory:":
                self.target = postgres.store_url(self.resources.enter_context(postgres.schema()))
            return super().opened()

    run_state_machine_as_test(
        AnyOrderOfCallsOnPostgres, settings=settings(max_examples=25, stateful_step_count=30, deadline=None)
    )
