"""The rules of the contract about a collection's setting, its precision and its index: 7 to 12."""

import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ttlstore
from tests.undone import undone
from ttlstore import Collection, IndexingPolicy, InvalidTtl, Store
from ttlstore.testing import FakeClock
from ttlstore.ttl import MAX_TTL

# --- 7: off is not -1 -------------------------------------------------------------------------------------------------


def test_rule_7_off_lets_nothing_expire_and_keeps_the_ttl(archive: Collection, clock: FakeClock) -> None:
    archive.create({"id": "a", "ttl": 1})
    clock.advance(1000)
    assert archive.read("a")["ttl"] == 1
    assert archive.expiry("a").reason == "never expires: TTL is off for its collection"


def test_rule_7_a_kept_ttl_applies_again_counted_from_the_last_write(archive: Collection, clock: FakeClock) -> None:
    archive.create({"id": "long ago", "ttl": 60})
    clock.advance(40)
    archive.create({"id": "of late", "ttl": 60})
    clock.advance(20)
    archive.configure(default_ttl=-1)
    assert [document["id"] for document in archive] == ["of late"]
    assert archive.expiry("of late").seconds_left == 40
    archive.configure(default_ttl=None)
    assert archive.count() == 2


def test_rule_7_without_a_default_only_documents_with_a_ttl_expire(notes: Collection, clock: FakeClock) -> None:
    notes.create({"id": "own", "ttl": 1})
    notes.create({"id": "none"})
    clock.advance(1)
    assert [document["id"] for document in notes] == ["none"]


# --- 8: changing default_ttl is retroactive and immediate -------------------------------------------------------------


def test_rule_8_a_change_hides_and_revives_every_document_that_inherits(sessions: Collection, clock: FakeClock) -> None:
    sessions.create({"id": "inherits"})
    sessions.create({"id": "own", "ttl": 20})
    sessions.create({"id": "never", "ttl": -1})
    clock.advance(15)

    def there(default_ttl: int | None) -> set[str]:
        sessions.configure(default_ttl=default_ttl)
        assert sessions.count() == len(list(sessions))
        return {document["id"] for document in sessions}

    assert there(10) == {"own", "never"}
    assert there(16) == {"inherits", "own", "never"}
    assert there(15) == {"own", "never"}
    assert there(-1) == {"inherits", "own", "never"}
    clock.advance(5)
    assert there(-1) == {"inherits", "never"}
    assert there(MAX_TTL) == {"inherits", "never"}
    assert there(None) == {"inherits", "own", "never"}


def test_rule_8_a_change_holds_inside_its_transaction_and_goes_with_it(
    sessions: Collection, store: Store, clock: FakeClock
) -> None:
    sessions.create({"id": "a"})
    clock.advance(5)
    with undone(store):
        sessions.configure(default_ttl=5)
        assert "a" not in sessions
    assert sessions.default_ttl == 10
    assert "a" in sessions


def test_rule_8_another_handle_obeys_from_its_next_call(file_store: Store, path: Path, clock: FakeClock) -> None:
    here = file_store.create_collection("c", default_ttl=10)
    here.create({"id": "a"})
    with ttlstore.open(path, clock=clock, vacuum=False) as other:
        there = other.collection("c")
        clock.advance(5)
        assert there.read("a")
        here.configure(default_ttl=5)
        assert there.default_ttl == 5
        assert "a" not in there
        there.configure(default_ttl=6)
        assert "a" in here


# --- 9: precision -----------------------------------------------------------------------------------------------------

Microseconds = st.integers(0, 5_000_000)
START = 1_700_000_000_000_000


@given(written=Microseconds, later=Microseconds, ttl=st.integers(1, 4))
def test_rule_9_between_milliseconds_a_document_lives_its_ttl_and_less_than_a_millisecond_more(
    written: int, later: int, ttl: int
) -> None:
    now = START + written
    with ttlstore.open(":memory:", clock=lambda: now / 1_000_000) as store:
        collection = store.create_collection("c", default_ttl=-1)
        collection.create({"id": "a", "ttl": ttl})
        now += later
        if later < ttl * 1_000_000:
            assert "a" in collection
        if later >= ttl * 1_000_000 + 1000:
            assert "a" not in collection
            assert collection.create({"id": "a"})


@given(microsecond=st.integers(0, 999), by=st.sampled_from(["upsert", "touch", "patch", "upsert_many"]))
def test_rule_9_no_write_between_milliseconds_shortens_a_life(microsecond: int, by: str) -> None:
    now = START
    with ttlstore.open(":memory:", clock=lambda: now / 1_000_000) as store:
        collection = store.create_collection("c", default_ttl=1)
        collection.create({"id": "a"})
        now += 500_000 + microsecond
        match by:
            case "upsert":
                collection.upsert({"id": "a"})
            case "touch":
                collection.touch("a")
            case "patch":
                collection.patch("a", [{"op": "set", "path": "/x", "value": 1}])
            case _:
                collection.upsert_many([{"id": "a"}])
        now += 999_999
        assert collection.read("a")
        assert collection.expiry("a").seconds_left is not None
        now += 1000
        assert "a" not in collection


def test_rule_9_the_time_is_shown_in_whole_seconds_and_kept_in_milliseconds(
    sessions: Collection, clock: FakeClock
) -> None:
    clock.set(1_700_000_000.999)
    assert sessions.create({"id": "a"})["_ts"] == 1_700_000_000
    assert sessions.read("a")["_ts"] == 1_700_000_000
    assert type(sessions.read("a")["_ts"]) is int
    assert sessions.expiry("a").expires_at == 1_700_000_010.999
    clock.set(1_700_000_010.998)
    assert "a" in sessions
    clock.set(1_700_000_010.999)
    assert "a" not in sessions


# --- 10: TTL needs an index -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("default_ttl", [-1, 1, 10, timedelta(days=1)])
def test_rule_10_without_an_index_there_is_no_default_ttl(store: Store, default_ttl: Any) -> None:
    with pytest.raises(InvalidTtl, match="none"):
        store.create_collection("c", default_ttl=default_ttl, indexing="none")
    collection = store.create_collection("c", indexing="none")
    with pytest.raises(InvalidTtl, match="none"):
        collection.configure(default_ttl=default_ttl)
    assert collection.default_ttl is None


@pytest.mark.parametrize("default_ttl", [-1, 10])
def test_rule_10_with_a_default_ttl_the_index_cannot_be_given_up(store: Store, default_ttl: int) -> None:
    collection = store.create_collection("c", default_ttl=default_ttl)
    with pytest.raises(InvalidTtl, match="none"):
        collection.configure(indexing="none")
    with pytest.raises(InvalidTtl, match="none"):
        collection.configure(indexing=IndexingPolicy("none"), default_ttl=5)
    assert collection.indexing.mode == "consistent"
    assert collection.default_ttl == default_ttl


@pytest.mark.parametrize("mode", ["consistent", "lazy"])
def test_rule_10_both_indexing_modes_expire_documents(store: Store, clock: FakeClock, mode: str) -> None:
    collection = store.create_collection("c", default_ttl=10, indexing=mode)
    collection.create({"id": "a"})
    clock.advance(10)
    assert "a" not in collection
    assert collection.count() == 0


def test_rule_10_both_settings_can_be_changed_at_once(store: Store) -> None:
    collection = store.create_collection("c", indexing="none")
    collection.configure(default_ttl=5, indexing="lazy")
    assert (collection.default_ttl, collection.indexing.mode) == (5, "lazy")
    collection.configure(default_ttl=None, indexing="none")
    assert (collection.default_ttl, collection.indexing.mode) == (None, "none")


def test_rule_10_documents_keep_their_ttl_where_there_is_no_index(store: Store, clock: FakeClock) -> None:
    collection = store.create_collection("c", indexing="none")
    collection.create({"id": "a", "ttl": 1})
    clock.advance(2)
    assert collection.read("a")["ttl"] == 1


# --- 11: deleting is housekeeping -------------------------------------------------------------------------------------


def test_rule_11_it_makes_no_difference_whether_the_row_was_deleted(path: Path, clock: FakeClock) -> None:
    """Two collections go the same way, and only from one of them the expired row is taken."""
    with ttlstore.open(path, clock=clock, vacuum=False) as store:
        kept, cleaned = (store.create_collection(name, default_ttl=10) for name in ("kept", "cleaned"))
        for collection in (kept, cleaned):
            collection.create_many([{"id": "a", "n": 1}, {"id": "b", "ttl": -1}])
        clock.advance(10)
        with sqlite3.connect(path) as database:
            assert database.execute("DELETE FROM documents WHERE id = 'a' AND collection_id = 2").rowcount == 1
        database.close()

        def seen(collection: Collection) -> list[object]:
            answers: list[object] = [collection.count(), "a" in collection, collection.get("a")]
            answers += [document["id"] for document in collection]
            for verb in (collection.touch, collection.delete, collection.read):
                with pytest.raises(ttlstore.DocumentNotFound):
                    verb("a")
            created = collection.create({"id": "a", "n": 2})
            return [*answers, created["n"], created["_ts"], collection.count()]

        assert seen(kept) == seen(cleaned)


# --- 12: TTL is for whole documents -----------------------------------------------------------------------------------


def test_rule_12_a_ttl_inside_a_document_is_data(notes: Collection, clock: FakeClock) -> None:
    document = {"id": "a", "part": {"ttl": 1}, "list": [{"ttl": 0}], "TTL": 1, " ttl": "x"}
    notes.create(document)
    clock.advance(1000)
    found = notes.read("a")
    assert {name: found[name] for name in document} == document
    assert notes.expiry("a").ttl == -1
