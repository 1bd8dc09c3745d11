"""Partitions: identity is the partition and the id."""

import math
from typing import Any

import pytest

from ttlstore import Collection, DocumentExists, DocumentNotFound, InvalidDocument, PartitionRequired, Store
from ttlstore.testing import FakeClock

KEYS: list[Any] = [
    "CO18",
    "",
    "1",
    "true",
    "null",
    '"',
    "ä😀",
    1,
    0,
    -5,
    2**63 - 1,
    -(2**63),
    1.5,
    1e300,
    True,
    False,
    None,
]


@pytest.fixture
def orders(store: Store) -> Collection:
    return store.create_collection("orders", partition_key="/customerId", default_ttl=10)


def order(customer: Any, **more: Any) -> dict[str, Any]:
    return {"id": "SO05", "customerId": customer, **more}


def test_the_same_id_lives_once_in_every_partition(orders: Collection) -> None:
    for n, key in enumerate(KEYS):
        orders.create(order(key, n=n))
    assert orders.count() == len(KEYS)
    for n, key in enumerate(KEYS):
        found = orders.read("SO05", partition=key)
        assert found["n"] == n
        assert type(found["customerId"]) is type(key)
        with pytest.raises(DocumentExists):
            orders.create(order(key))
    assert "SO05" in orders


def test_every_verb_stays_in_its_partition(orders: Collection, clock: FakeClock) -> None:
    mine, theirs = orders.create(order("me")), orders.create(order("them"))
    clock.advance(5)
    orders.replace({**mine, "x": 1})
    orders.patch("SO05", [{"op": "set", "path": "/y", "value": 1}], partition="me")
    orders.touch("SO05", partition="me")
    orders.upsert({**mine, "z": 1})
    assert orders.read("SO05", partition="them") == theirs
    assert orders.expiry("SO05", partition="me").seconds_left == 10
    assert orders.expiry("SO05", partition="them").seconds_left == 5
    clock.advance(5)
    assert orders.get("SO05", partition="them") is None
    assert "SO05" in orders
    orders.delete("SO05", partition="me")
    assert "SO05" not in orders


@pytest.mark.parametrize(
    "verb",
    [
        lambda it: it.read("SO05"),
        lambda it: it.get("SO05"),
        lambda it: it.touch("SO05"),
        lambda it: it.delete("SO05"),
        lambda it: it.patch("SO05", []),
        lambda it: it.expiry("SO05"),
    ],
)
def test_a_point_operation_needs_the_partition(orders: Collection, verb: Any) -> None:
    before = orders.create(order("me"))
    with pytest.raises(PartitionRequired, match="'orders' is partitioned by /customerId: pass partition="):
        verb(orders)
    assert list(orders) == [before]


def test_another_partition_has_another_document_or_none(orders: Collection) -> None:
    orders.create(order("me"))
    for key in ("ME", "", None, 0, "me "):
        assert orders.get("SO05", partition=key) is None
        with pytest.raises(DocumentNotFound, match="in partition"):
            orders.read("SO05", partition=key)
        for verb in (orders.touch, orders.delete, orders.expiry):
            with pytest.raises(DocumentNotFound):
                verb("SO05", partition=key)
        with pytest.raises(DocumentNotFound):
            orders.replace(order(key))
    assert orders.count() == 1


def test_equal_numbers_are_one_partition_and_true_is_not_one(orders: Collection) -> None:
    orders.create(order(1))
    assert orders.read("SO05", partition=1.0)["customerId"] == 1
    with pytest.raises(DocumentExists):
        orders.create(order(1.0))
    orders.create(order(True))
    orders.create(order("1"))
    orders.create(order(0.0))
    assert orders.get("SO05", partition=-0.0) is not None
    assert orders.get("SO05", partition=False) is None


@pytest.mark.parametrize("value", [[], {}, ["a"], {"a": 1}])
def test_a_partition_key_is_a_scalar(orders: Collection, value: Any) -> None:
    with pytest.raises(InvalidDocument, match="a partition key must be"):
        orders.create(order(value))
    with pytest.raises(InvalidDocument, match="a partition key must be"):
        orders.read("SO05", partition=value)


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf, "a\0b", "\ud800", 2**64, 10**30, b"x", pytest.param(object(), id="object")],
    ids=repr,
)
def test_a_partition_that_no_document_can_be_in_is_refused(orders: Collection, value: Any) -> None:
    orders.create(order(None))
    with pytest.raises(InvalidDocument):
        orders.read("SO05", partition=value)
    with pytest.raises(InvalidDocument):
        orders.delete("SO05", partition=value)
    with pytest.raises(InvalidDocument):
        orders.upsert(order(value))
    assert orders.count() == 1


@pytest.mark.parametrize("document", [{"id": "a"}, {"id": "a", "customerid": 1}, {"id": "a", "x": {"customerId": 1}}])
def test_a_document_without_its_partition_key_is_refused(orders: Collection, document: dict[str, Any]) -> None:
    with pytest.raises(InvalidDocument, match="has no /customerId"):
        orders.create(document)
    with pytest.raises(InvalidDocument, match=r"document 0 .* has no /customerId"):
        orders.upsert_many([document])
    assert orders.count() == 0


def test_a_partition_key_may_lie_deep_and_have_any_name(store: Store) -> None:
    deep = store.create_collection("deep", partition_key="/a~1b/ü/~0")
    deep.create({"id": "x", "a/b": {"ü": {"~": "here"}}})
    assert deep.read("x", partition="here")
    for missing in ({}, {"a/b": "ü"}, {"a/b": {"ü": ["~"]}}, {"a/b": None}):
        with pytest.raises(InvalidDocument, match="has no /a~1b/ü/~0"):
            deep.create({"id": "y", **missing})


def test_a_collection_partitioned_by_id_takes_the_id_as_partition_or_none(archive: Collection) -> None:
    archive.create({"id": "a"})
    assert archive.read("a") == archive.read("a", partition="a")
    assert archive.touch("a", partition="a")
    for another in ("b", "", None, 1):
        assert archive.get("a", partition=another) is None
    archive.delete("a", partition="a")
    assert archive.count() == 0


def test_replacing_with_another_partition_key_is_another_document(orders: Collection) -> None:
    orders.create(order("me", n=1))
    with pytest.raises(DocumentNotFound):
        orders.replace(order("them", n=2))
    orders.upsert(order("them", n=2))
    assert orders.count() == 2
    assert orders.read("SO05", partition="me")["n"] == 1


def test_create_over_an_expired_document_of_another_partition_touches_it_not(
    orders: Collection, clock: FakeClock
) -> None:
    orders.create(order("me", n=1))
    clock.advance(10)
    orders.create(order("them", n=2))
    assert [document["n"] for document in orders] == [2]
    orders.configure(default_ttl=11)
    assert orders.read("SO05", partition="me")["n"] == 1
