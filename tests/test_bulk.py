"""Bulk writes: any iterable, in batches; a bad document is named and what came before it is told."""

import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

import ttlstore
from tests.undone import undone
from ttlstore import Collection, CollectionNotFound, DocumentExists, InvalidDocument, InvalidTtl, Store
from ttlstore.batches import BATCH_BYTES, BATCH_ROWS
from ttlstore.errors import DocumentRefused
from ttlstore.testing import FakeClock

both = pytest.mark.parametrize("verb", ["create_many", "upsert_many"])


def some(count: int, **more: Any) -> Iterator[dict[str, Any]]:
    return ({"id": str(n), **more} for n in range(count))


@both
@pytest.mark.parametrize("count", [0, 1, BATCH_ROWS - 1, BATCH_ROWS, BATCH_ROWS + 1, 2 * BATCH_ROWS])
def test_any_number_is_stored_and_told(archive: Collection, verb: str, count: int) -> None:
    assert getattr(archive, verb)(some(count)) == archive.count() == count
    assert [document["id"] for document in archive] == [str(n) for n in range(count)]


@both
@pytest.mark.parametrize("make", [list, tuple, iter, lambda it: {d["id"]: d for d in it}.values()])
def test_any_iterable_will_do(archive: Collection, verb: str, make: Any) -> None:
    assert getattr(archive, verb)(make(list(some(3)))) == 3
    assert archive.count() == 3


@pytest.mark.parametrize("bad", [0, 1, BATCH_ROWS - 1, BATCH_ROWS, BATCH_ROWS + 7])
@pytest.mark.parametrize(
    ("document", "error"),
    [({"id": ""}, InvalidDocument), ({"id": "x", "ttl": 0}, InvalidTtl), ({"id": "x", "y": b""}, InvalidDocument)],
    ids=["an empty id", "an invalid ttl", "bytes"],
)
@both
def test_a_bad_document_is_named_by_its_position_and_what_came_before_is_stored(
    archive: Collection, verb: str, document: dict[str, Any], error: type[DocumentRefused], bad: int
) -> None:
    documents = [*some(bad), document, *some(5)]
    with pytest.raises(error) as refused:
        getattr(archive, verb)(documents)
    assert f"document {bad} (counted from 0)" in str(refused.value)
    assert f"the {bad} before it are stored" in str(refused.value)
    assert refused.value.position == bad
    assert archive.count() == bad


@pytest.mark.parametrize("bad", [0, 3, BATCH_ROWS, BATCH_ROWS + 3])
def test_a_document_that_exists_is_named_by_its_position(archive: Collection, bad: int) -> None:
    there = archive.create({"id": str(bad), "first": True})
    with pytest.raises(DocumentExists) as refused:
        archive.create_many(some(BATCH_ROWS + 10))
    assert f"document {bad} (counted from 0): there is a document '{bad}'" in str(refused.value)
    assert f"the {bad} before it are stored" in str(refused.value)
    assert archive.count() == bad + 1
    assert archive.read(str(bad)) == there


def test_a_document_that_comes_twice_exists_the_second_time(archive: Collection) -> None:
    with pytest.raises(DocumentExists, match=r"document 2 \(counted from 0\)"):
        archive.create_many([{"id": "a", "n": 1}, {"id": "b"}, {"id": "a", "n": 2}, {"id": "c"}])
    assert [document["id"] for document in archive] == ["a", "b"]
    assert archive.read("a")["n"] == 1
    assert archive.upsert_many([{"id": "a", "n": 3}, {"id": "a", "n": 4}]) == 2
    assert archive.read("a")["n"] == 4


@both
@pytest.mark.parametrize("good", [2, BATCH_ROWS + 2])
def test_inside_a_transaction_it_is_all_or_nothing(store: Store, archive: Collection, verb: str, good: int) -> None:
    with store.transaction():
        archive.create({"id": "kept"})
        with pytest.raises(InvalidDocument) as refused:
            getattr(archive, verb)([*some(good), {"id": 5}])
        assert f"document {good} (counted from 0)" in str(refused.value)
        assert "nothing of this call is stored" in str(refused.value)
        assert archive.count() == 1
        archive.create_many([{"id": "also"}])
    assert [document["id"] for document in archive] == ["kept", "also"]


def test_inside_a_transaction_it_goes_with_the_transaction(store: Store, archive: Collection) -> None:
    with undone(store):
        assert archive.create_many(some(BATCH_ROWS + 1)) == BATCH_ROWS + 1
    assert archive.count() == 0


@both
def test_an_error_of_the_iterable_itself_comes_out_and_tells_how_many_are_stored(
    archive: Collection, verb: str
) -> None:
    def breaking() -> Iterator[dict[str, Any]]:
        yield from some(3)
        raise OSError("the line is dead")

    with pytest.raises(OSError, match="the line is dead") as broken:
        getattr(archive, verb)(breaking())
    assert any("3" in note for note in broken.value.__notes__)
    assert archive.count() == 3


@both
def test_it_streams(archive: Collection, verb: str, kind: str) -> None:
    """Documents are stored while others are not even made."""
    stored: list[int] = []

    def documents() -> Iterator[dict[str, Any]]:
        for n in range(3 * BATCH_ROWS):
            if n % BATCH_ROWS == 0:
                stored.append(archive.count())
            yield {"id": str(n)}

    getattr(archive, verb)(documents())
    under_way = 1 if kind == "postgres" else 0  # a batch that the server writes meanwhile
    assert all(have >= BATCH_ROWS * (batch - under_way) for batch, have in enumerate(stored))
    assert stored[0] == 0
    assert stored[2] < 3 * BATCH_ROWS


def test_memory_is_bounded_by_bytes_and_not_only_by_rows(file_store: Store) -> None:
    collection = file_store.create_collection("c")

    def peak(count: int) -> int:
        tracemalloc.start()
        try:
            collection.upsert_many({"id": "same", "text": "x" * (BATCH_BYTES // 8)} for _ in range(count))
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(100) < peak(20) * 1.5


def test_one_collection_can_be_copied_into_another(store: Store) -> None:
    source, target = store.create_collection("source"), store.create_collection("target")
    source.create_many(some(2500))
    assert target.create_many(source) == 2500
    assert [document["id"] for document in target] == [document["id"] for document in source]


def test_documents_of_a_bulk_write_expire_like_others(notes: Collection, clock: FakeClock) -> None:
    notes.create_many([{"id": "a", "ttl": 5}, {"id": "b"}])
    clock.advance(5)
    assert notes.create_many([{"id": "a", "again": True}]) == 1
    assert notes.read("a")["again"]
    assert notes.count() == 2


@both
def test_a_collection_that_was_dropped_takes_nothing(store: Store, archive: Collection, verb: str) -> None:
    store.delete_collection("archive")
    with pytest.raises(CollectionNotFound):
        getattr(archive, verb)([{"id": "a"}])


@both
@pytest.mark.parametrize("documents", [[], [{"id": "a"}]], ids=["no document", "one document"])
def test_a_closed_store_takes_nothing(
    store: Store, archive: Collection, verb: str, documents: list[dict[str, Any]]
) -> None:
    store.close()
    with pytest.raises(ttlstore.StoreClosed):
        getattr(archive, verb)(documents)
