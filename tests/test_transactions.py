"""Transactions: one change over all collections, or none."""

import threading

import pytest

import ttlstore
from tests.undone import Undone, undone
from ttlstore import Collection, CollectionNotFound, DocumentExists, DocumentNotFound, Store
from ttlstore.testing import FakeClock


def ids(collection: Collection) -> list[str]:
    return [document["id"] for document in collection]


def test_a_transaction_that_ends_well_is_kept(store: Store, archive: Collection, notes: Collection) -> None:
    with store.transaction():
        archive.create({"id": "a"})
        notes.create({"id": "b"})
    assert (ids(archive), ids(notes)) == (["a"], ["b"])


def test_an_exception_takes_everything_back_over_all_collections(
    store: Store, archive: Collection, sessions: Collection, clock: FakeClock
) -> None:
    before = [archive.create({"id": "a"}), archive.create({"id": "b"}), archive.create({"id": "c"})]
    clock.advance(1)
    with undone(store):
        archive.replace({"id": "a", "x": 1})
        archive.patch("b", [{"op": "set", "path": "/x", "value": 1}])
        archive.delete("c")
        archive.create_many([{"id": "d"}, {"id": "e"}])
        sessions.upsert({"id": "f"})
        sessions.configure(default_ttl=None, indexing="none")
        store.create_collection("new").create({"id": "g"})
        store.delete_collection("archive")
    assert list(archive) == before
    assert sessions.count() == 0
    assert (sessions.default_ttl, sessions.indexing.mode) == (10, "consistent")
    assert [collection.name for collection in store.list_collections()] == ["archive", "sessions"]


def test_the_exception_itself_comes_out(store: Store) -> None:
    error = Undone("mine")

    def failing() -> None:
        with store.transaction():
            raise error

    with pytest.raises(Undone) as raised:
        failing()
    assert raised.value is error


def test_inside_a_transaction_its_own_changes_are_seen(store: Store, archive: Collection) -> None:
    with store.transaction():
        archive.create({"id": "a"})
        assert archive.read("a")
        assert archive.count() == 1
        with pytest.raises(DocumentExists):
            archive.create({"id": "a"})
        archive.delete("a")
        with pytest.raises(DocumentNotFound):
            archive.read("a")
        archive.create({"id": "b"})
    assert ids(archive) == ["b"]


def test_a_refused_call_inside_takes_only_itself_back(store: Store, archive: Collection) -> None:
    archive.create({"id": "a"})
    with store.transaction():
        archive.create({"id": "b"})
        with pytest.raises(DocumentExists):
            archive.create({"id": "a"})
        with pytest.raises(ttlstore.InvalidPatch):
            archive.patch("a", [{"op": "remove", "path": "/x"}])
        archive.create({"id": "c"})
    assert ids(archive) == ["a", "b", "c"]


def test_nested_transactions_are_savepoints(store: Store, archive: Collection) -> None:
    with store.transaction():
        archive.create({"id": "a"})
        with undone(store):
            archive.create({"id": "b"})
            with store.transaction():
                archive.create({"id": "c"})
        with store.transaction():
            archive.create({"id": "d"})
            with undone(store):
                archive.delete("a")
        assert ids(archive) == ["a", "d"]
    assert ids(archive) == ["a", "d"]


def test_an_outer_transaction_takes_the_inner_with_it(store: Store, archive: Collection) -> None:
    with undone(store), store.transaction():
        archive.create({"id": "a"})
    assert ids(archive) == []
    archive.create({"id": "b"})
    assert ids(archive) == ["b"]


def test_a_collection_made_in_a_transaction_that_failed_is_not_there(store: Store) -> None:
    made: list[Collection] = []
    with undone(store):
        made.append(store.create_collection("c"))
    with pytest.raises(CollectionNotFound):
        made[0].create({"id": "a"})
    store.create_collection("c").create({"id": "b"})
    with pytest.raises(CollectionNotFound):
        store.collection("d")


def test_expiry_goes_on_inside_a_transaction(store: Store, sessions: Collection, clock: FakeClock) -> None:
    with store.transaction():
        sessions.create({"id": "a"})
        clock.advance(10)
        assert "a" not in sessions
        sessions.create({"id": "a", "again": True})
    assert sessions.read("a")["again"]


def test_other_threads_are_not_in_it(file_store: Store) -> None:
    collection = file_store.create_collection("c")
    collection.create({"id": "a", "x": 0})
    seen: list[object] = []

    def look() -> None:
        seen.extend([collection.read("a")["x"], collection.count()])

    with file_store.transaction():
        collection.replace({"id": "a", "x": 1})
        collection.create({"id": "b"})
        other = threading.Thread(target=look)
        other.start()
        other.join()
    look()
    assert seen == [0, 1, 1, 2]


def test_what_another_thread_writes_is_not_taken_back(store: Store, archive: Collection) -> None:
    begun = threading.Event()

    def write() -> None:
        begun.wait()
        archive.create({"id": "theirs"})

    other = threading.Thread(target=write)
    other.start()
    with undone(store):
        archive.create({"id": "mine"})
        begun.set()
    other.join()
    assert ids(archive) == ["theirs"]


def test_a_bulk_write_beside_a_transaction_is_not_in_it(store: Store, archive: Collection) -> None:
    """What comes before a bad document is stored, also while another thread is in a transaction."""
    asked = threading.Event()
    errors: list[ttlstore.TtlStoreError] = []

    def documents() -> object:
        asked.set()
        yield {"id": "good"}
        yield {"id": ""}

    def write() -> None:
        try:
            archive.create_many(documents())  # type: ignore[arg-type]
        except ttlstore.InvalidDocument as error:
            errors.append(error)

    other = threading.Thread(target=write)
    with store.transaction():
        other.start()
        asked.wait(5)
    other.join()
    assert "the 1 before it are stored" in str(errors[0])
    assert ids(archive) == ["good"]


def test_a_full_store_ends_the_transaction_and_nothing_of_it_is_stored(file_store: Store) -> None:
    collection = file_store.create_collection("c")
    collection.create({"id": "before"})
    raw = file_store._engine._connections.mine().raw  # type: ignore[attr-defined]
    raw.execute("PRAGMA cache_size = 10")
    limit = raw.execute("PRAGMA page_count").fetchone()[0] + 20
    raw.execute(f"PRAGMA max_page_count = {limit}")

    def fill() -> None:
        with file_store.transaction():
            for n in range(1000):
                collection.create({"id": str(n), "text": "x" * 3000})

    with pytest.raises(ttlstore.StoreFull):
        fill()
    assert ids(collection) == ["before"]

    def go_on_regardless() -> None:
        with file_store.transaction():
            with pytest.raises(ttlstore.StoreFull):
                collection.create_many({"id": str(n), "text": "x" * 3000} for n in range(1000))
            collection.create({"id": "after"})

    try:
        go_on_regardless()
    except ttlstore.StoreFailed:
        assert ids(collection) == ["before"]
    else:
        assert ids(collection) == ["before", "after"]


def test_a_transaction_on_a_closed_store_is_refused(store: Store, archive: Collection) -> None:
    transaction = store.transaction()
    store.close()
    with pytest.raises(ttlstore.StoreClosed), transaction:
        archive.create({"id": "a"})


def test_closing_inside_a_transaction_takes_it_back(path: str) -> None:
    store = ttlstore.open(path)
    collection = store.create_collection("c")

    def close_inside() -> None:
        with store.transaction():
            collection.create({"id": "a"})
            store.close()

    with pytest.raises(ttlstore.StoreClosed):
        close_inside()
    with ttlstore.open(path) as store:
        assert store.collection("c").count() == 0
