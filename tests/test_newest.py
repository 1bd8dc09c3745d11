"""The documents written last."""

import random
from collections.abc import Iterator

import pytest

import ttlstore
from ttlstore import Store
from ttlstore.collection import Collection
from ttlstore.newest import _COLLECTION, _statement
from ttlstore.statements import Prepared
from ttlstore.testing import FakeClock
from ttlstore.ttl import MAX_TTL


@pytest.fixture
def ticking() -> FakeClock:
    return FakeClock()


@pytest.fixture
def carts(ticking: FakeClock) -> Iterator[Collection]:
    with ttlstore.open(":memory:", clock=ticking) as store:
        carts = store.create_collection("carts", default_ttl=100, partition_key="/shop")
        for id, shop, ttl in (("a", 1, None), ("b", 2, 10), ("c", 1, -1)):
            carts.create({"id": id, "shop": shop, "ttl": ttl})
            ticking.advance(1)
        yield carts


def ids(carts: Collection, **options: float | str | None) -> list[str]:
    return [document["id"] for document, _ in carts.newest(**options)]  # type: ignore[arg-type]


def test_newest_comes_in_the_order_of_the_last_write(carts: Collection) -> None:
    assert ids(carts) == ["c", "b", "a"]
    carts.touch("a", partition=1)
    assert ids(carts) == ["a", "c", "b"]


def test_newest_stops_at_its_limit(carts: Collection) -> None:
    assert ids(carts, limit=2) == ["c", "b"]


def test_newest_of_a_partition_leaves_the_others_out(carts: Collection) -> None:
    assert ids(carts, partition=1) == ["c", "a"]


def test_newest_of_a_partition_by_the_id_is_the_document_with_that_id(store: Store) -> None:
    letters = store.create_collection("letters", default_ttl=100)
    letters.create_many([{"id": "a"}, {"id": "b", "ttl": 10}, {"id": "c", "ttl": -1}, {"id": "5"}])
    for id in ("a", "b", "c", "5"):
        assert ids(letters, partition=id) == [id]
    for other in ("", "d", 5, True, None):
        assert ids(letters, partition=other) == []


def test_newest_tells_what_expires_within_a_time(carts: Collection) -> None:
    assert ids(carts, expiring_within=8) == ["b"]
    assert ids(carts, expiring_within=7.999) == []
    assert ids(carts, expiring_within=1000) == ["b", "a"]


@pytest.mark.parametrize("limit", [-1, 2**63, 2**70, 1.5, float("inf"), float("nan")])
def test_newest_refuses_a_limit_that_is_no_count(store: Store, limit: float) -> None:
    carts = store.create_collection("carts", default_ttl=100)
    with pytest.raises(ValueError, match=rf"limit must be a whole number from 0 to {2**63 - 1}, got ") as refused:
        ids(carts, limit=limit)
    assert str(refused.value).endswith(f"got {limit!r}")


@pytest.mark.parametrize("seconds", [-0.001, MAX_TTL + 0.001, 1e17, float("inf"), float("-inf"), float("nan")])
def test_newest_refuses_a_time_that_no_document_has_left(store: Store, seconds: float) -> None:
    carts = store.create_collection("carts", default_ttl=100)
    with pytest.raises(ValueError, match=rf"expiring_within must be a number of seconds from 0 to {MAX_TTL}, or None"):
        ids(carts, expiring_within=seconds)


def test_newest_takes_the_least_and_the_most_that_it_allows(store: Store) -> None:
    carts = store.create_collection("carts", default_ttl=100)
    carts.create({"id": "a"})
    assert ids(carts, limit=2**63 - 1, expiring_within=MAX_TTL) == ["a"]
    assert ids(carts, limit=0) == ids(carts, expiring_within=0) == []


def test_newest_leaves_out_what_has_expired(carts: Collection, ticking: FakeClock) -> None:
    ticking.advance(8)
    assert ids(carts) == ["c", "a"]


def test_newest_tells_when_each_expires(carts: Collection) -> None:
    assert {document["id"]: expiry.seconds_left for document, expiry in carts.newest()} == {"a": 97, "b": 8, "c": None}


def test_newest_of_a_dropped_collection_says_so() -> None:
    with ttlstore.open(":memory:") as store:
        dropped = store.create_collection("dropped")
        store.delete_collection("dropped")
        with pytest.raises(ttlstore.CollectionNotFound):
            dropped.newest()


def test_newest_puts_documents_with_and_without_a_ttl_of_their_own_in_one_order(store: Store, clock: FakeClock) -> None:
    chosen = random.Random(1)
    other = store.create_collection("other", default_ttl=5)
    carts = store.create_collection("carts", default_ttl=100)
    written: dict[str, float] = {}
    for number in chosen.choices(range(60), k=200):
        document = {"id": str(number), "ttl": chosen.choice((None, None, -1, 40, 90))}
        for collection in (carts, other):
            collection.upsert(document)
        written[str(number)] = clock()
        clock.advance(chosen.choice((0, 0.8)))
    places = [(written[document["id"]], place, document["id"]) for place, document in enumerate(carts)]
    expected = [id for _, _, id in sorted(places, reverse=True)]
    assert 20 < len(expected) < len(written)
    for limit in (1, 7, 1000):
        assert ids(carts, limit=limit) == expected[:limit]


def test_newest_of_those_that_inherit_the_default_comes_by_an_index(file_store: Store) -> None:
    carts = file_store.create_collection("carts", default_ttl=100)
    sql, arrange = _statement(file_store._engine.prepare, by_id=False)
    statement = Prepared(sql.replace(_COLLECTION, str(carts._id)), arrange)
    steps = file_store._engine.steps(statement, (0, None, None, 10))
    assert sum("documents_by_write (collection_id=?)" in step for step in steps) == 1
    assert sum("documents_by_expiry (collection_id=?)" in step for step in steps) == 1
    # Only what was written in one moment is sorted, which one version calls so and another so.
    assert sum(step.endswith(("LAST TERM OF ORDER BY", "RIGHT PART OF ORDER BY")) for step in steps) == 1
