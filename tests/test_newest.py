"""The documents written last."""

from collections.abc import Iterator

import pytest

import ttlstore
from ttlstore.collection import Collection
from ttlstore.testing import FakeClock


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


def ids(carts: Collection, **options: float) -> list[str]:
    return [document["id"] for document, _ in carts.newest(**options)]  # type: ignore[arg-type]


def test_newest_comes_in_the_order_of_the_last_write(carts: Collection) -> None:
    assert ids(carts) == ["c", "b", "a"]
    carts.touch("a", partition=1)
    assert ids(carts) == ["a", "c", "b"]


def test_newest_stops_at_its_limit(carts: Collection) -> None:
    assert ids(carts, limit=2) == ["c", "b"]


def test_newest_of_a_partition_leaves_the_others_out(carts: Collection) -> None:
    assert ids(carts, partition=1) == ["c", "a"]


def test_newest_tells_what_expires_within_a_time(carts: Collection) -> None:
    assert ids(carts, expiring_within=8) == ["b"]
    assert ids(carts, expiring_within=7.999) == []
    assert ids(carts, expiring_within=1000) == ["b", "a"]


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
