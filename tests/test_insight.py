"""Statistics, forecast, preview and recovery: what they say is what the verbs then show."""

import sqlite3
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ttlstore
from ttlstore import Collection, CollectionNotFound, DocumentExists, DocumentNotFound, InvalidTtl, Store
from ttlstore.testing import FakeClock

TTLS = st.lists(st.sampled_from([None, -1, 1, 3, 60]), max_size=20)
DEFAULTS = st.sampled_from([None, -1, 1, 10, 100])


def size(document: dict[str, object]) -> int:
    """Bytes of a document, as written here, without the system properties."""
    import orjson

    return len(orjson.dumps({name: value for name, value in document.items() if name not in ("_ts", "_etag")}))


# --- statistics -----------------------------------------------------------------------------------------------------


def test_stats_tell_live_and_waiting_documents_and_bytes(sessions: Collection, clock: FakeClock) -> None:
    first = sessions.create({"id": "first"})
    clock.advance(4)
    second = sessions.create({"id": "second", "text": "Grüße"})
    own = sessions.create({"id": "own", "ttl": 3})
    never = sessions.create({"id": "never", "ttl": -1})
    start = clock()
    stats = sessions.stats()
    assert (stats.live_documents, stats.waiting_documents, stats.waiting_bytes) == (4, 0, 0)
    assert stats.live_bytes == sum(map(size, (first, second, own, never)))
    assert (stats.oldest_waiting, stats.next_expiry) == (None, start + 3)
    clock.advance(6)
    stats = sessions.stats()
    assert (stats.live_documents, stats.live_bytes) == (2, size(second) + size(never))
    assert (stats.waiting_documents, stats.waiting_bytes) == (2, size(first) + size(own))
    assert (stats.oldest_waiting, stats.next_expiry) == (start + 3, start + 10)


def test_stats_of_a_collection_with_ttl_off_name_no_expiry(archive: Collection, clock: FakeClock) -> None:
    archive.create({"id": "a", "ttl": 1})
    archive.create({"id": "b"})
    clock.advance(5)
    stats = archive.stats()
    assert (stats.live_documents, stats.waiting_documents, stats.next_expiry) == (2, 0, None)


def test_stats_of_an_empty_collection_are_zero(sessions: Collection) -> None:
    stats = sessions.stats()
    assert (stats.live_documents, stats.live_bytes, stats.waiting_documents, stats.next_expiry) == (0, 0, 0, None)


def test_stats_of_a_store_add_up_its_collections(store: Store, clock: FakeClock, kind: str) -> None:
    for name, default_ttl in (("a", 5), ("b", 10), ("c", None)):
        store.create_collection(name, default_ttl=default_ttl).create({"id": "x", "of": name})
    dropped = store.create_collection("dropped")
    dropped.create_many({"id": f"{number}"} for number in range(3))
    store.delete_collection("dropped")
    clock.advance(5)
    stats = store.stats()
    assert (stats.collections, stats.live_documents, stats.waiting_documents) == (3, 2, 4)
    assert stats.live_bytes == sum(store.collection(name).stats().live_bytes for name in "abc")
    assert stats.next_expiry == clock() + 5
    assert stats.engine == (store._engine.description if kind == "postgres" else f"SQLite {sqlite3.sqlite_version}")
    assert stats.file_bytes > 0
    report = store.vacuum()
    assert store.stats().vacuum.deleted == report.deleted == 4
    assert store.stats().waiting_documents == 0


@given(ttls=TTLS, default_ttl=DEFAULTS, wait=st.integers(0, 120_000))
def test_stats_count_what_can_be_read(ttls: list[int | None], default_ttl: int | None, wait: int) -> None:
    clock = FakeClock()
    with ttlstore.open(":memory:", clock=clock, vacuum=False) as store:
        collection = store.create_collection("c", default_ttl=default_ttl)
        collection.create_many({"id": f"{number}", "ttl": ttl} for number, ttl in enumerate(ttls))
        clock.advance(wait / 1000)
        stats = collection.stats()
        live = list(collection)
        assert (stats.live_documents, stats.live_bytes) == (len(live), sum(map(size, live)))
        assert stats.waiting_documents == len(ttls) - len(live) == len(list(collection.waiting()))
        expiries = [collection.expiry(document["id"]).expires_at for document in live]
        assert stats.next_expiry == min((at for at in expiries if at is not None), default=None)


# --- forecast -------------------------------------------------------------------------------------------------------


def test_a_forecast_tells_what_expires_in_each_interval_ahead(sessions: Collection, clock: FakeClock) -> None:
    sessions.create({"id": "ten"})
    sessions.create({"id": "three", "ttl": 3})
    sessions.create({"id": "thirty", "ttl": 30})
    sessions.create({"id": "never", "ttl": -1})
    forecast = sessions.forecast(interval=5, intervals=3)
    assert [interval.documents for interval in forecast] == [1, 1, 0]
    assert [(interval.start, interval.end) for interval in forecast] == [
        (clock() + start, clock() + start + 5) for start in (0, 5, 10)
    ]


@given(ttls=TTLS, default_ttl=DEFAULTS, interval=st.sampled_from([1, 7, 60]))
def test_a_forecast_comes_true(ttls: list[int | None], default_ttl: int | None, interval: int) -> None:
    clock = FakeClock()
    with ttlstore.open(":memory:", clock=clock, vacuum=False) as store:
        collection = store.create_collection("c", default_ttl=default_ttl)
        collection.create_many({"id": f"{number}", "ttl": ttl} for number, ttl in enumerate(ttls))
        for expected in collection.forecast(interval=timedelta(seconds=interval), intervals=5):
            before = collection.stats()
            clock.advance(interval)
            after = collection.stats()
            assert clock() == expected.end
            assert expected.documents == before.live_documents - after.live_documents
            assert expected.bytes == before.live_bytes - after.live_bytes


@pytest.mark.parametrize(("interval", "intervals"), [(0, 5), (-1, 5), (1, 0), (1, 10_001)])
def test_a_forecast_over_no_time_is_refused(sessions: Collection, interval: int, intervals: int) -> None:
    with pytest.raises(ValueError, match="must be"):
        sessions.forecast(interval=interval, intervals=intervals)


# --- preview --------------------------------------------------------------------------------------------------------


@given(ttls=TTLS, old=DEFAULTS, new=DEFAULTS, wait=st.integers(0, 120_000))
def test_a_preview_says_what_the_change_then_does(
    ttls: list[int | None], old: int | None, new: int | None, wait: int
) -> None:
    clock = FakeClock()
    with ttlstore.open(":memory:", clock=clock, vacuum=False) as store:
        collection = store.create_collection("c", default_ttl=old)
        collection.create_many({"id": f"{number}", "ttl": ttl} for number, ttl in enumerate(ttls))
        clock.advance(wait / 1000)
        before = {document["id"]: size(document) for document in collection}
        preview = collection.preview_ttl(new)
        assert collection.default_ttl == old
        assert {document["id"] for document in collection} == before.keys()
        collection.configure(default_ttl=new)
        after = {document["id"]: size(document) for document in collection}
        hidden, revived = before.keys() - after.keys(), after.keys() - before.keys()
        assert (preview.hides, preview.hidden_bytes) == (len(hidden), sum(before[id] for id in hidden))
        assert (preview.revives, preview.revived_bytes) == (len(revived), sum(after[id] for id in revived))
        assert preview.live == len(after)


def test_a_preview_of_an_invalid_default_is_refused(sessions: Collection) -> None:
    with pytest.raises(InvalidTtl, match="got 0"):
        sessions.preview_ttl(0)


def test_a_preview_of_a_change_that_would_be_refused_is_refused(store: Store) -> None:
    unindexed = store.create_collection("unindexed", indexing="none")
    with pytest.raises(InvalidTtl, match="indexing"):
        unindexed.preview_ttl(60)


def test_insight_into_a_dropped_collection_is_refused(store: Store, sessions: Collection) -> None:
    store.delete_collection("sessions")
    for ask in (sessions.stats, sessions.forecast, lambda: sessions.preview_ttl(None)):
        with pytest.raises(CollectionNotFound):
            ask()


# --- recovery -------------------------------------------------------------------------------------------------------


def test_an_expired_document_whose_row_is_there_can_be_recovered(sessions: Collection, clock: FakeClock) -> None:
    written = sessions.create({"id": "a", "n": 1})
    clock.advance(10)
    ((waiting, expiry),) = sessions.waiting()
    assert waiting == written
    assert (expiry.source, expiry.ttl, expiry.seconds_left) == ("collection", 10, 0)
    recovered = sessions.recover("a")
    assert recovered == sessions.read("a")
    assert (recovered["n"], recovered["_ts"]) == (1, int(clock()))
    assert recovered["_etag"] != written["_etag"]
    assert list(sessions.waiting()) == []
    clock.advance(9.999)
    assert "a" in sessions
    clock.advance(0.001)
    assert "a" not in sessions


def test_a_document_whose_row_was_deleted_cannot_be_recovered(
    store: Store, sessions: Collection, clock: FakeClock
) -> None:
    sessions.create({"id": "a"})
    clock.advance(10)
    store.vacuum()
    with pytest.raises(DocumentNotFound):
        sessions.recover("a")


def test_a_live_document_needs_no_recovery(sessions: Collection) -> None:
    sessions.create({"id": "a"})
    with pytest.raises(DocumentExists, match="is live"):
        sessions.recover("a")


def test_recovery_takes_the_partition(store: Store, clock: FakeClock) -> None:
    orders = store.create_collection("orders", partition_key="/customer", default_ttl=10)
    orders.create({"id": "a", "customer": 1})
    clock.advance(10)
    with pytest.raises(DocumentNotFound):
        orders.recover("a", partition=2)
    assert orders.recover("a", partition=1)["customer"] == 1
