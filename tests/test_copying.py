"""Copying a store to another place: every document with the life that it has left."""

import random
import tracemalloc
from pathlib import Path

import pytest

import ttlstore
from tests.faults import works
from tests.faults.victim import Victim
from ttlstore import CollectionExists, IndexingPolicy, InvalidDocument, Store
from ttlstore.batches import BATCH_BYTES, BATCH_ROWS
from ttlstore.copying import Copied, copy
from ttlstore.errors import command
from ttlstore.testing import FakeClock


def test_documents_come_with_the_life_that_they_have_left(
    here: Store, places: tuple[str, str], clock: FakeClock
) -> None:
    sessions = here.create_collection("sessions", default_ttl=60)
    sessions.create({"id": "inherits", "text": "ä 😀 \0 \\ \t", "numbers": [0, -1, 1.5, 2**63 - 1]})
    sessions.create({"id": "own", "ttl": 100})
    sessions.create({"id": "never", "ttl": -1})
    sessions.create({"id": "gone", "ttl": 1})
    clock.advance(20.125)
    orders = here.create_collection("orders", partition_key="/customer/id", indexing=IndexingPolicy(paths=("/total",)))
    orders.create_many({"id": "same", "customer": {"id": key}, "total": 10} for key in ("x\t", 1, True, None))
    assert copy(*places, clock=clock) == Copied(collections=2, documents=7, written=7)
    with ttlstore.open(places[1], clock=clock, vacuum=False) as there:
        for collection in here.list_collections():
            copied = there.collection(collection.name)
            assert list(copied) == list(collection)
            assert (copied.partition_key, copied.default_ttl) == (collection.partition_key, collection.default_ttl)
            assert copied.indexing == collection.indexing
        for id in ("inherits", "own", "never"):
            assert there.collection("sessions").expiry(id) == sessions.expiry(id)
        assert there.collection("orders").read("same", partition=1) == orders.read("same", partition=1)
        assert there.stats().waiting_documents == 0, "what has expired is not copied"
        assert there.check() == []
        clock.advance(39.875)
        assert there.collection("sessions").get("inherits") is None
        assert there.collection("sessions").get("own") is not None


def test_copying_again_brings_over_what_has_changed(here: Store, places: tuple[str, str], clock: FakeClock) -> None:
    notes = here.create_collection("notes")
    notes.create_many({"id": str(number)} for number in range(5))
    copy(*places, clock=clock)
    assert copy(*places, clock=clock) == Copied(collections=1, documents=5, written=0)
    clock.advance(1)
    notes.upsert({"id": "1", "new": True})
    notes.create({"id": "5"})
    assert copy(*places, clock=clock) == Copied(collections=1, documents=6, written=2)
    with ttlstore.open(places[1], clock=clock, vacuum=False) as there:
        assert list(there.collection("notes")) == list(notes)


def test_what_was_deleted_from_the_source_stays_and_is_told(
    here: Store, places: tuple[str, str], clock: FakeClock
) -> None:
    notes = here.create_collection("notes", default_ttl=60)
    here.create_collection("others").create({"id": "a"})
    notes.create_many({"id": str(number)} for number in range(5))
    copy(*places, clock=clock)
    notes.delete("0")
    assert copy(*places, clock=clock) == Copied(collections=2, documents=5, written=0, surplus=1)
    clock.advance(60)
    assert copy(*places, clock=clock) == Copied(collections=2, documents=1, written=0, surplus=0)


def test_what_is_newer_in_the_target_is_left(here: Store, places: tuple[str, str], clock: FakeClock) -> None:
    here.create_collection("notes").create({"id": "a", "by": "source"})
    copy(*places, clock=clock)
    clock.advance(1)
    with ttlstore.open(places[1], clock=clock, vacuum=False) as there:
        there.collection("notes").upsert({"id": "a", "by": "target"})
        assert copy(*places, clock=clock).written == 0
        assert there.collection("notes").read("a")["by"] == "target"


def test_what_is_newer_in_the_target_and_has_expired_is_not_there_and_so_not_in_the_way(
    here: Store, places: tuple[str, str], clock: FakeClock
) -> None:
    here.create_collection("notes", default_ttl=-1).create({"id": "a", "from": "source"})
    clock.advance(10)
    with ttlstore.open(places[1], clock=clock, vacuum=False) as there:
        there.create_collection("notes", default_ttl=-1).create({"id": "a", "from": "target", "ttl": 5})
    assert copy(*places, clock=clock) == Copied(collections=1, documents=1, written=0)
    clock.advance(5)
    assert copy(*places, clock=clock) == Copied(collections=1, documents=1, written=1)
    with ttlstore.open(places[1], clock=clock, vacuum=False) as there:
        assert there.collection("notes").read("a") == here.collection("notes").read("a")


def test_a_copy_that_was_interrupted_goes_on(here: Store, places: tuple[str, str], clock: FakeClock) -> None:
    here.create_collection("notes").create_many({"id": str(number)} for number in range(2 * BATCH_ROWS + 10))
    told = []

    def interrupt(copied: int, total: int) -> None:
        told.append((copied, total))
        if len(told) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy(*places, clock=clock, progress=interrupt)
    assert told == [(BATCH_ROWS, 2 * BATCH_ROWS + 10), (2 * BATCH_ROWS, 2 * BATCH_ROWS + 10)]
    assert copy(*places, clock=clock) == Copied(collections=1, documents=2 * BATCH_ROWS + 10, written=10)


def test_a_copy_whose_process_is_killed_goes_on(here: Store, places: tuple[str, str], clock: FakeClock) -> None:
    notes = here.create_collection("notes", default_ttl=60)
    notes.create_many({"id": str(number)} for number in range(4 * BATCH_ROWS + 10))
    clock.advance(30)
    victim = Victim(works.copy_until, places[1], places[0], clock(), 2 * BATCH_ROWS)
    assert victim.hears() == 2 * BATCH_ROWS
    victim.killed_after(0)
    with ttlstore.open(places[1], clock=clock, vacuum=False) as there:
        assert list(there.collection("notes")) == list(notes)[: 2 * BATCH_ROWS]
        size = 4 * BATCH_ROWS + 10
        assert copy(*places, clock=clock) == Copied(collections=1, documents=size, written=2 * BATCH_ROWS + 10)
        assert list(there.collection("notes")) == list(notes)
        assert there.check() == []
        clock.advance(30)
        assert there.collection("notes").count() == 0


def test_large_documents_are_copied_a_few_at_a_time(here: Store, places: tuple[str, str], clock: FakeClock) -> None:
    notes = here.create_collection("notes")
    notes.create_many({"id": str(number), "text": "x" * (BATCH_BYTES // 8)} for number in range(20))
    notes.create({"id": "larger than a batch", "text": "x" * (2 * BATCH_BYTES)})
    notes.create_many({"id": f"small {number}"} for number in range(10))
    told: list[int] = []
    assert copy(*places, clock=clock, progress=lambda copied, _: told.append(copied)).written == 31
    assert told == [8, 16, 21, 31]
    with ttlstore.open(places[1], clock=clock, vacuum=False) as there:
        assert list(there.collection("notes")) == list(notes)


def test_memory_is_bounded_by_bytes_and_not_only_by_rows(
    here: Store, places: tuple[str, str], clock: FakeClock
) -> None:
    notes = here.create_collection("notes")

    def peak(count: int) -> int:
        notes.upsert_many({"id": str(number), "text": "x" * (BATCH_BYTES // 8)} for number in range(count))
        clock.advance(1)
        tracemalloc.start()
        try:
            copy(*places, clock=clock)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    few = peak(20)
    assert peak(60) < few * 1.5


def test_what_is_written_while_it_is_copied_comes_as_it_is_when_its_turn_comes(
    here: Store, places: tuple[str, str], clock: FakeClock
) -> None:
    notes = here.create_collection("notes")
    notes.create_many({"id": str(number)} for number in range(3 * BATCH_ROWS))
    last = str(3 * BATCH_ROWS - 1)

    def change(copied: int, _: int) -> None:
        if copied == BATCH_ROWS:
            notes.upsert({"id": last, "new": True})
            notes.delete(str(3 * BATCH_ROWS - 2))
            notes.create({"id": "later"})

    assert copy(*places, clock=clock, progress=change).documents == 3 * BATCH_ROWS - 1
    with ttlstore.open(places[1], clock=clock, vacuum=False) as there:
        assert there.collection("notes").read(last)["new"]
        assert "later" not in there.collection("notes"), "an end that moves away would never be reached"


@pytest.mark.parametrize("places", ["file to postgres"], indirect=True)
def test_a_document_whose_keys_the_target_has_no_room_for_is_named_and_the_way_out_works(
    here: Store, places: tuple[str, str], clock: FakeClock
) -> None:
    orders = here.create_collection("orders", partition_key="/p")
    orders.create_many({"id": str(number), "p": "a"} for number in range(70))
    long = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=9000))
    orders.create({"id": "too long", "p": long})
    orders.create({"id": "after it", "p": "a"})
    with pytest.raises(InvalidDocument, match="document 'too long' of 'orders' cannot be copied to postgresql://"):
        copy(*places, clock=clock)
    with ttlstore.open(places[1], clock=clock, vacuum=False) as there:
        assert there.collection("orders").count() == 70
    orders.delete("too long", partition=long)
    assert copy(*places, clock=clock) == Copied(collections=1, documents=71, written=1)


@pytest.mark.parametrize("settings", [{"default_ttl": 5}, {"partition_key": "/customer"}])
def test_a_collection_with_other_settings_is_not_mixed_with(
    here: Store, places: tuple[str, str], clock: FakeClock, settings: dict[str, object]
) -> None:
    here.create_collection("notes", default_ttl=10).create({"id": "a"})
    with ttlstore.open(places[1], clock=clock, vacuum=False) as there:
        there.create_collection("notes", **{"default_ttl": 10, **settings})  # type: ignore[arg-type]
        with pytest.raises(CollectionExists, match=f"with another {next(iter(settings))}"):
            copy(*places, clock=clock)
        assert there.collection("notes").count() == 0


@pytest.mark.parametrize(("default_ttl", "setting"), [(None, "off"), (-1, "on"), (7200, "7200")])
def test_another_default_comes_with_the_command_that_makes_it_the_same(
    here: Store, places: tuple[str, str], clock: FakeClock, default_ttl: int | None, setting: str
) -> None:
    notes = here.create_collection("my notes", default_ttl=60)
    copy(*places, clock=clock)
    notes.configure(default_ttl=default_ttl)
    with pytest.raises(CollectionExists) as refused:
        copy(*places, clock=clock)
    with ttlstore.open(places[1], clock=clock, vacuum=False) as there:
        assert command("ttl", there.name, "my notes", setting) in str(refused.value)
        there.collection("my notes").configure(default_ttl=default_ttl)
    assert copy(*places, clock=clock).collections == 1


def test_a_target_keeps_the_indexes_that_it_has(here: Store, places: tuple[str, str], clock: FakeClock) -> None:
    notes = here.create_collection("notes", indexing=IndexingPolicy(paths=("/a",)))
    copy(*places, clock=clock)
    notes.configure(indexing=IndexingPolicy(paths=("/b",)))
    notes.create({"id": "1", "a": 1, "b": 2})
    assert copy(*places, clock=clock).written == 1
    with ttlstore.open(places[1], clock=clock, vacuum=False) as there:
        assert there.collection("notes").indexing == IndexingPolicy(paths=("/a",))
        assert there.collection("notes").read("1") == notes.read("1")


def test_what_is_not_there_cannot_be_copied(path: Path, clock: FakeClock) -> None:
    with pytest.raises(ttlstore.CannotOpen, match="there is no store"):
        copy(path, f"{path}-target", clock=clock)
    assert not Path(f"{path}-target").exists()
