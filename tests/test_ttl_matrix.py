"""The matrix of the contract: each of its cells, to the millisecond before, at and after the moment."""

import pytest

from ttlstore import Collection, DocumentNotFound, Store
from ttlstore.testing import FakeClock
from ttlstore.ttl import MAX_TTL

AGES = 100 * 365 * 86_400
MILLISECOND = 0.001

NEVER = [
    pytest.param(default_ttl, ttl, id=f"ttl {ttl} under default {default_ttl}")
    for default_ttl, ttl in [
        (None, None),
        (None, -1),
        (None, 1),
        (None, 7),
        (None, MAX_TTL),
        (-1, None),
        (-1, -1),
        (1, -1),
        (10, -1),
        (MAX_TTL, -1),
    ]
]
AFTER = [
    pytest.param(default_ttl, ttl, seconds, id=f"ttl {ttl} under default {default_ttl}")
    for default_ttl, ttl, seconds in [
        (-1, 1, 1),
        (-1, 7, 7),
        (-1, MAX_TTL, MAX_TTL),
        (10, None, 10),
        (1, None, 1),
        (MAX_TTL, None, MAX_TTL),
        (10, 7, 7),
        (10, 10, 10),
        (10, 99, 99),
        (10, 1, 1),
        (MAX_TTL, 1, 1),
        (1, MAX_TTL, MAX_TTL),
    ]
]


def written(store: Store, default_ttl: int | None, ttl: int | None) -> Collection:
    """A collection with one document, "it"."""
    collection = store.create_collection("cell", default_ttl=default_ttl)
    collection.create({"id": "it"} if ttl is None else {"id": "it", "ttl": ttl})
    return collection


def is_there(collection: Collection) -> bool:
    """As every way of looking says, all of them the same."""
    try:
        collection.read("it")
        read = True
    except DocumentNotFound:
        read = False
    answers = {
        read,
        collection.get("it") is not None,
        "it" in collection,
        collection.count() == 1,
        len(collection) == 1,
        [document["id"] for document in collection] == ["it"],
    }
    assert len(answers) == 1, "the ways of looking disagree"
    return read


@pytest.mark.parametrize(("default_ttl", "ttl"), NEVER)
def test_a_document_that_never_expires_is_there_after_ages(
    store: Store, clock: FakeClock, default_ttl: int | None, ttl: int | None
) -> None:
    collection = written(store, default_ttl, ttl)
    for _ in range(3):
        assert is_there(collection)
        assert collection.expiry("it").expires_at is None
        assert collection.expiry("it").seconds_left is None
        clock.advance(AGES)


@pytest.mark.parametrize(("default_ttl", "ttl", "seconds"), AFTER)
def test_a_document_is_there_until_the_millisecond_in_which_it_expires(
    store: Store, clock: FakeClock, default_ttl: int, ttl: int | None, seconds: int
) -> None:
    collection = written(store, default_ttl, ttl)
    assert is_there(collection)
    clock.advance(seconds - MILLISECOND)
    assert is_there(collection)
    assert collection.expiry("it").seconds_left == MILLISECOND
    clock.advance(MILLISECOND)
    assert not is_there(collection)
    clock.advance(MILLISECOND)
    assert not is_there(collection)
    clock.advance(AGES)
    assert not is_there(collection)


@pytest.mark.parametrize(("default_ttl", "ttl", "seconds"), AFTER)
def test_the_last_write_counts_and_not_the_first(
    store: Store, clock: FakeClock, default_ttl: int, ttl: int | None, seconds: int
) -> None:
    collection = written(store, default_ttl, ttl)
    clock.advance(seconds - MILLISECOND)
    collection.touch("it")
    clock.advance(seconds - MILLISECOND)
    assert is_there(collection)
    clock.advance(MILLISECOND)
    assert not is_there(collection)


@pytest.mark.parametrize(
    ("default_ttl", "ttl", "effective", "source", "reason"),
    [
        (None, None, None, "off", "never expires: TTL is off for its collection"),
        (None, -1, None, "off", "never expires: TTL is off for its collection"),
        (None, 7, None, "off", "never expires: TTL is off for its collection"),
        (-1, None, -1, "collection", "never expires: it has no ttl of its own, and its collection has no default"),
        (-1, -1, -1, "document", "never expires, by its own ttl"),
        (-1, 7, 7, "document", "expires 7 s after its last write, by its own ttl"),
        (10, None, 10, "collection", "expires 10 s after its last write, by its collection's default"),
        (10, -1, -1, "document", "never expires, by its own ttl"),
        (10, 7, 7, "document", "expires 7 s after its last write, by its own ttl"),
    ],
)
def test_expiry_tells_when_and_why(
    store: Store,
    clock: FakeClock,
    default_ttl: int | None,
    ttl: int | None,
    effective: int | None,
    source: str,
    reason: str,
) -> None:
    collection = written(store, default_ttl, ttl)
    at = clock()
    clock.advance(2.5)
    expiry = collection.expiry("it")
    assert (expiry.ttl, expiry.source, expiry.reason) == (effective, source, reason)
    if effective in (None, -1):
        assert expiry.expires_at is None
    else:
        assert effective is not None
        assert expiry.expires_at == at + effective
        assert expiry.seconds_left == effective - 2.5


def test_the_moment_of_expiry_is_read_from_the_boundary_itself(store: Store, clock: FakeClock) -> None:
    """Written and asked at odd milliseconds, where seconds as floats are never exact."""
    collection = store.create_collection("odd", default_ttl=1)
    for millisecond in range(0, 1000, 37):
        clock.set(1_700_000_000 + millisecond / 1000)
        collection.upsert({"id": "it"})
        clock.advance(0.999)
        assert "it" in collection
        clock.advance(MILLISECOND)
        assert "it" not in collection
