"""Deletes on their way to a copy: what the source has no more goes, and nothing that somebody has just written."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ttlstore
from ttlstore import CollectionExists, DocumentNotFound, PreconditionFailed, Store
from ttlstore.batches import BATCH_ROWS
from ttlstore.copying import copy
from ttlstore.mirroring import Mirror, Surplus
from ttlstore.testing import FakeClock


@pytest.fixture
def there(places: tuple[str, str], clock: FakeClock) -> Iterator[Store]:
    """The target."""
    with ttlstore.open(places[1], clock=clock, vacuum=False) as store:
        yield store
        assert store.check() == []


@pytest.fixture
def mirror(places: tuple[str, str], here: Store, there: Store, clock: FakeClock) -> Mirror:
    """Of two stores that a copy has made the same, a second ago. Its own copy begins now."""
    notes = here.create_collection("notes", default_ttl=60)
    notes.create_many({"id": id, "by": "source"} for id in ("a", "b", "é", "\U0001f600", "\uffff"))
    orders = here.create_collection("orders", partition_key="/customer")
    orders.create_many({"id": "same", "customer": customer} for customer in (1, "1", None, "x"))
    assert copy(*places, clock=clock).surplus == 0
    clock.advance(1)
    return Mirror(*places, clock=clock)


def test_what_was_deleted_from_the_source_is_deleted(
    mirror: Mirror, here: Store, there: Store, places: tuple[str, str], clock: FakeClock
) -> None:
    here.collection("notes").delete("a")
    here.collection("notes").delete("\U0001f600")
    here.collection("orders").delete("same", partition="1")
    assert copy(*places, clock=clock).surplus == 3
    assert mirror.survey() == Surplus(documents=3, newer=0)
    assert mirror.delete() == 3
    for collection in here.list_collections():
        assert list(there.collection(collection.name)) == list(collection)
    assert mirror.survey() == Surplus(documents=0, newer=0)
    assert mirror.delete() == 0


def test_nothing_is_deleted_where_nothing_was(mirror: Mirror, there: Store) -> None:
    assert mirror.survey() == Surplus(documents=0, newer=0)
    assert mirror.delete() == 0
    assert there.stats().live_documents == 9


def test_what_was_written_into_the_target_since_the_copy_began_is_left(
    mirror: Mirror, here: Store, there: Store, clock: FakeClock
) -> None:
    here.collection("notes").delete("a")
    here.collection("notes").delete("b")
    there.collection("notes").create({"id": "new"})
    there.collection("notes").upsert({"id": "b", "by": "target"})
    assert mirror.survey() == Surplus(documents=1, newer=2)
    assert mirror.delete() == 1
    assert "a" not in there.collection("notes")
    assert there.collection("notes").read("b")["by"] == "target"
    assert "new" in there.collection("notes")


def test_what_is_written_between_the_look_and_the_delete_is_left(
    mirror: Mirror, here: Store, there: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ttlstore import mirroring

    here.collection("notes").delete("a")
    deleted = mirroring._deleted

    def written_first(*arguments: object) -> int:
        there.collection("notes").upsert({"id": "a", "by": "target"})
        return deleted(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(mirroring, "_deleted", written_first)
    assert mirror.delete() == 0
    assert there.collection("notes").read("a")["by"] == "target"


def test_a_target_that_others_write_to_is_left_alone(
    mirror: Mirror, here: Store, there: Store, places: tuple[str, str], clock: FakeClock
) -> None:
    here.collection("notes").delete("a")
    there.collection("notes").upsert({"id": "b", "by": "target"})
    clock.advance(1)
    later = Mirror(*places, clock=clock)
    with pytest.raises(PreconditionFailed, match="document 'b' of 'notes' is newer there than in "):
        later.survey()
    assert "a" in there.collection("notes")


def test_what_the_source_gets_while_it_is_mirrored_is_left(mirror: Mirror, here: Store, there: Store) -> None:
    here.collection("notes").upsert({"id": "b", "by": "source", "new": True})
    here.collection("notes").create({"id": "later"})
    assert mirror.survey() == Surplus(documents=0, newer=0)
    assert mirror.delete() == 0
    assert "b" in there.collection("notes")


def test_what_has_expired_is_too_many_in_neither(mirror: Mirror, there: Store, clock: FakeClock) -> None:
    clock.advance(59)
    assert mirror.survey() == Surplus(documents=0, newer=0)
    assert mirror.delete() == 0
    assert there.stats().waiting_documents == 5, "that is for the vacuum"


def test_collections_that_the_source_does_not_have_are_left(mirror: Mirror, here: Store, there: Store) -> None:
    there.create_collection("its own").create({"id": "a"})
    here.delete_collection("orders")
    assert mirror.survey() == Surplus(documents=0, newer=0)
    assert mirror.delete() == 0
    assert there.collection("orders").count() == 4
    assert there.collection("its own").count() == 1


def test_with_another_default_nothing_is_deleted(mirror: Mirror, here: Store, there: Store) -> None:
    here.collection("notes").configure(default_ttl=1)
    assert here.collection("notes").count() == 0
    for act in (mirror.survey, mirror.delete):
        with pytest.raises(CollectionExists, match="with another default_ttl"):
            act()
    assert there.collection("notes").count() == 5


steps = st.tuples(
    st.sampled_from(["upsert", "upsert", "delete", "touch", "copy", "advance"]),
    st.sampled_from(["a", "a b", "a\t", "ab", "é", "\uffff", "\U0001f600"]),  # in no order of their own
    st.sampled_from([1, "1", "é", None]),
)


@settings(max_examples=10)
@given(steps=st.lists(steps, max_size=20))
def test_whatever_was_done_both_have_the_same_in_the_end(
    places: tuple[str, str], here: Store, there: Store, clock: FakeClock, steps: list[tuple[str, str, Any]]
) -> None:
    notes = here.create_collection("notes", partition_key="/p", default_ttl=3)
    for verb, id, partition in steps:
        match verb:
            case "upsert":
                notes.upsert({"id": id, "p": partition})
            case "copy":
                copy(*places, clock=clock)
            case "advance":
                clock.advance(1)
            case _:
                with suppress(DocumentNotFound):
                    getattr(notes, verb)(id, partition=partition)
    clock.advance(0.001)  # what the last copy brought is older than the next one
    mirror = Mirror(*places, clock=clock)
    copy(*places, clock=clock)
    assert mirror.survey().documents == mirror.delete()
    assert sorted(map(repr, there.collection("notes"))) == sorted(map(repr, notes))
    for store in (here, there):
        store.delete_collection("notes")


def test_many_are_deleted_in_batches(
    places: tuple[str, str], here: Store, there: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ttlstore import mirroring

    notes = here.create_collection("notes")
    notes.create_many({"id": str(number)} for number in range(2 * BATCH_ROWS + 20))
    copy(*places, clock=clock)
    clock.advance(1)
    mirror = Mirror(*places, clock=clock)
    with here.transaction():
        for number in range(2 * BATCH_ROWS + 10):
            notes.delete(str(number))
    batches = []
    deleted = mirroring._deleted

    def counting(collection: ttlstore.Collection, keys: list[mirroring._Key]) -> int:
        batches.append(len(keys))
        return deleted(collection, keys)

    monkeypatch.setattr(mirroring, "_deleted", counting)
    assert mirror.delete() == 2 * BATCH_ROWS + 10
    assert batches == [BATCH_ROWS, BATCH_ROWS, 10]
    assert list(there.collection("notes")) == list(notes)


def test_what_is_written_in_the_millisecond_in_which_the_copy_begins_is_left(
    places: tuple[str, str], here: Store, there: Store, clock: FakeClock
) -> None:
    here.create_collection("notes")
    there.create_collection("notes")
    mirror = Mirror(*places, clock=clock)
    there.collection("notes").create({"id": "new"})
    assert mirror.survey() == Surplus(documents=0, newer=1)
    assert mirror.delete() == 0
