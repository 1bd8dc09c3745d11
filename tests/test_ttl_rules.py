"""The rules of the contract, by their numbers."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ttlstore
from ttlstore import Collection, DocumentExists, DocumentNotFound, InvalidTtl, PreconditionFailed, Store
from ttlstore.testing import FakeClock
from ttlstore.ttl import MAX_TTL

Verb = Callable[[Collection], Any]

ETAG: list[str] = [""]  # of the document that expired, for the verbs below

NEEDS_A_DOCUMENT: dict[str, Verb] = {
    "read": lambda it: it.read("a"),
    "expiry": lambda it: it.expiry("a"),
    "replace": lambda it: it.replace({"id": "a", "by": "replace"}),
    "replace with its etag": lambda it: it.replace({"id": "a"}, if_match=ETAG[0]),
    "patch": lambda it: it.patch("a", [{"op": "set", "path": "/by", "value": "patch"}]),
    "patch with its etag": lambda it: it.patch("a", [], if_match=ETAG[0]),
    "patch of its ttl": lambda it: it.patch("a", [{"op": "set", "path": "/ttl", "value": -1}]),
    "touch": lambda it: it.touch("a"),
    "delete": lambda it: it.delete("a"),
    "delete with its etag": lambda it: it.delete("a", if_match=ETAG[0]),
}
WRITES: dict[str, Verb] = {
    "upsert": lambda it: it.upsert({"id": "a"}),
    "replace": lambda it: it.replace({"id": "a"}),
    "patch": lambda it: it.patch("a", [{"op": "set", "path": "/x", "value": 1}]),
    "an empty patch": lambda it: it.patch("a", []),
    "touch": lambda it: it.touch("a"),
    "upsert_many": lambda it: it.upsert_many([{"id": "a"}]),
    "upsert with its etag": lambda it: it.upsert({"id": "a"}, if_match=it.read("a")["_etag"]),
    "replace with its etag": lambda it: it.replace({"id": "a"}, if_match=it.read("a")["_etag"]),
}


@pytest.fixture
def expired(sessions: Collection, clock: FakeClock) -> Collection:
    """A collection in which "a" has just expired and its row is still there."""
    ETAG[0] = sessions.create({"id": "a", "by": "before"})["_etag"]
    clock.advance(10)
    return sessions


# --- 1: expired means gone, at once, everywhere -----------------------------------------------------------------------


@pytest.mark.parametrize("verb", NEEDS_A_DOCUMENT.values(), ids=NEEDS_A_DOCUMENT.keys())
def test_rule_1_verbs_answer_not_found_for_an_expired_document(expired: Collection, verb: Verb) -> None:
    with pytest.raises(DocumentNotFound, match="'a'"):
        verb(expired)


def test_rule_1_get_gives_the_default_for_an_expired_document(expired: Collection) -> None:
    assert expired.get("a") is None
    assert expired.get("a", "nothing") == "nothing"


def test_rule_1_create_over_an_expired_document_succeeds(expired: Collection, clock: FakeClock) -> None:
    created = expired.create({"id": "a", "by": "after"})
    assert expired.read("a") == created == {"id": "a", "by": "after", "_etag": created["_etag"], "_ts": int(clock())}
    assert created["_etag"] != ETAG[0]
    with pytest.raises(DocumentExists):
        expired.create({"id": "a"})


def test_rule_1_create_many_over_expired_documents_succeeds(expired: Collection) -> None:
    assert expired.create_many([{"id": "a", "by": "after"}, {"id": "b"}]) == 2
    assert [document["id"] for document in expired] == ["a", "b"]
    assert expired.read("a")["by"] == "after"


def test_rule_1_upsert_over_an_expired_document_creates(expired: Collection) -> None:
    expired.upsert({"id": "a", "new": True})
    assert "by" not in expired.read("a")


def test_rule_1_an_etag_condition_finds_no_expired_document(expired: Collection) -> None:
    with pytest.raises(PreconditionFailed):
        expired.upsert({"id": "a"}, if_match=ETAG[0])
    assert "a" not in expired
    assert expired.create({"id": "a", "new": True})["new"], "nothing may be left in the way"


def test_rule_1_totals_and_iteration_leave_expired_documents_out(expired: Collection) -> None:
    expired.create({"id": "b"})
    assert expired.count() == len(expired) == 1
    assert [document["id"] for document in expired] == ["b"]
    assert "a" not in expired
    assert "b" in expired


def test_rule_1_a_document_that_expires_during_an_iteration_does_not_come(
    sessions: Collection, clock: FakeClock
) -> None:
    sessions.create_many({"id": f"{n:04}", "ttl": 5 if n % 2 else -1} for n in range(300))
    iteration = iter(sessions)
    assert [next(iteration)["id"] for _ in range(3)] == ["0000", "0001", "0002"]
    clock.advance(5)
    assert [document["id"] for document in iteration] == [f"{n:04}" for n in range(4, 300, 2)]


def test_rule_1_a_second_handle_on_the_store_agrees(file_store: Store, path: str, clock: FakeClock) -> None:
    file_store.create_collection("c", default_ttl=10).create({"id": "a"})
    with ttlstore.open(path, clock=clock, vacuum=False) as other:
        clock.advance(9.999)
        assert "a" in other.collection("c")
        clock.advance(0.001)
        assert "a" not in other.collection("c")
        other.collection("c").create({"id": "a", "by": "the other"})
    assert file_store.collection("c").read("a")["by"] == "the other"


@given(
    default_ttl=st.one_of(st.none(), st.just(-1), st.integers(1, 5)),
    ttls=st.lists(st.one_of(st.none(), st.just(-1), st.integers(1, 5)), max_size=12),
    age=st.integers(0, 6000),
)
def test_rule_1_all_ways_of_looking_agree_with_the_rule(
    store: Store, clock: FakeClock, default_ttl: int | None, ttls: list[int | None], age: int
) -> None:
    collection = store.create_collection(f"c{len(store.list_collections())}", default_ttl=default_ttl)
    collection.create_many({"id": str(n), "ttl": ttl} for n, ttl in enumerate(ttls))
    clock.advance(age / 1000)

    def is_live(ttl: int | None) -> bool:
        effective = default_ttl if ttl is None else ttl
        return default_ttl is None or effective is None or effective == -1 or effective * 1000 > age

    expected = {str(n) for n, ttl in enumerate(ttls) if is_live(ttl)}
    ids = [str(n) for n in range(len(ttls))]
    assert {document["id"] for document in collection} == expected
    assert {id for id in ids if id in collection} == expected
    assert {id for id in ids if collection.get(id)} == expected
    assert collection.count() == len(collection) == len(expected)


# --- 2: nothing but the collection's setting can bring it back --------------------------------------------------------


def test_rule_2_a_refused_verb_does_not_revive(expired: Collection, clock: FakeClock) -> None:
    for verb in NEEDS_A_DOCUMENT.values():
        with pytest.raises(DocumentNotFound):
            verb(expired)
    assert "a" not in expired
    expired.configure(default_ttl=11)
    assert expired.read("a")["by"] == "before"
    assert expired.read("a")["_etag"] == ETAG[0]
    clock.advance(1)
    assert "a" not in expired


def test_rule_2_what_is_created_in_its_place_has_nothing_of_it(notes: Collection, clock: FakeClock) -> None:
    notes.create({"id": "a", "ttl": 1, "secret": True})
    clock.advance(1)
    notes.create({"id": "a"})
    clock.advance(1000)
    assert set(notes.read("a")) == {"id", "_ts", "_etag"}


# --- 3: every successful write restarts the countdown -----------------------------------------------------------------


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_rule_3_every_write_restarts_the_countdown(sessions: Collection, clock: FakeClock, write: Verb) -> None:
    sessions.create({"id": "a"})
    clock.advance(9.999)
    write(sessions)
    assert sessions.read("a")["_ts"] == int(clock())
    clock.advance(9.999)
    assert "a" in sessions
    clock.advance(0.001)
    assert "a" not in sessions


@pytest.mark.parametrize(
    "failing",
    [
        lambda it: it.create({"id": "a"}),
        lambda it: it.create_many([{"id": "a"}]),
        lambda it: it.replace({"id": "a"}, if_match="another"),
        lambda it: it.upsert({"id": "a"}, if_match="another"),
        lambda it: it.delete("a", if_match="another"),
        lambda it: it.patch("a", [], if_match="another"),
        lambda it: it.patch("a", [{"op": "remove", "path": "/nowhere"}]),
        lambda it: it.patch("a", [{"op": "set", "path": "/ttl", "value": 0}]),
        lambda it: it.replace({"id": "a", "ttl": 0}),
        lambda it: it.upsert({"id": "a", "ttl": "10"}),
        lambda it: it.upsert({"id": "a", "x": float("nan")}),
        lambda it: it.upsert_many([{"id": "a", "x": object()}]),
    ],
)
def test_rule_3_a_write_that_fails_changes_nothing(sessions: Collection, clock: FakeClock, failing: Verb) -> None:
    before = sessions.create({"id": "a", "x": 1})
    clock.advance(9.999)
    with pytest.raises(ttlstore.TtlStoreError):
        failing(sessions)
    assert sessions.read("a") == before
    clock.advance(0.001)
    assert "a" not in sessions


@pytest.mark.parametrize(
    "reading",
    [
        lambda it: it.read("a"),
        lambda it: it.get("a"),
        lambda it: it.expiry("a"),
        lambda it: "a" in it,
        lambda it: it.count(),
        list,
        lambda it: it.default_ttl,
        lambda it: it.indexing,
    ],
)
def test_rule_3_reads_never_write(file_store: Store, path: str, clock: FakeClock, reading: Verb) -> None:
    sessions = file_store.create_collection("sessions", default_ttl=10)
    sessions.create({"id": "a"})
    sessions.create({"id": "gone", "ttl": 1})
    clock.advance(1)
    with open(path, "rb") as file, open(f"{path}-wal", "rb") as log:
        before = file.read(), log.read()
        reading(sessions)
        file.seek(0)
        log.seek(0)
        assert (file.read(), log.read()) == before


# --- 4 and 5: ttl is a property like any other, and the default is not written ----------------------------------------


def test_rule_4_replacing_changes_removes_and_disables_the_ttl(sessions: Collection, clock: FakeClock) -> None:
    sessions.create({"id": "a", "ttl": 3})
    assert sessions.expiry("a").ttl == 3
    assert sessions.replace({"id": "a", "ttl": 5})["ttl"] == 5
    assert sessions.expiry("a").ttl == 5
    sessions.replace({"id": "a"})
    assert (sessions.expiry("a").ttl, sessions.expiry("a").source) == (10, "collection")
    sessions.replace({"id": "a", "ttl": -1})
    assert sessions.expiry("a").ttl == -1
    clock.advance(1e9)
    assert sessions.read("a")["ttl"] == -1


@pytest.mark.parametrize("verb", ["create", "upsert", "replace"])
def test_rule_4_none_is_the_same_as_leaving_it_out_and_is_not_stored(sessions: Collection, verb: str) -> None:
    if verb == "replace":
        sessions.create({"id": "a", "ttl": 3})
    returned = getattr(sessions, verb)({"id": "a", "ttl": None})
    assert "ttl" not in returned
    assert "ttl" not in sessions.read("a")
    assert sessions.expiry("a").source == "collection"


def test_rule_4_patching_the_ttl_to_none_removes_it(sessions: Collection) -> None:
    sessions.create({"id": "a", "ttl": 3})
    assert "ttl" not in sessions.patch("a", [{"op": "set", "path": "/ttl", "value": None}])
    assert "ttl" not in sessions.read("a")
    assert sessions.expiry("a").ttl == 10


def test_rule_5_the_default_is_never_written_into_a_document(sessions: Collection) -> None:
    written = sessions.create({"id": "a", "x": 1})
    assert set(written) == set(sessions.read("a")) == {"id", "x", "_ts", "_etag"}
    assert set(sessions.touch("a")) == {"id", "x", "_ts", "_etag"}
    sessions.configure(default_ttl=99)
    assert set(sessions.read("a")) == {"id", "x", "_ts", "_etag"}


# --- 6: what is valid -------------------------------------------------------------------------------------------------

INVALID_TTLS: list[object] = [
    0,
    -2,
    -(2**31),
    MAX_TTL + 1,
    2**63,
    10**30,
    True,
    False,
    1.0,
    -1.0,
    0.5,
    float("nan"),
    "1",
    "",
    b"1",
]
INVALID_TTLS += [[], [1], {}, {"seconds": 1}, (), 1 + 0j]


@pytest.mark.parametrize("ttl", INVALID_TTLS, ids=repr)
@pytest.mark.parametrize("default_ttl", [None, -1, 10])
def test_rule_6_an_invalid_ttl_is_refused_whatever_the_setting(
    store: Store, default_ttl: int | None, ttl: object
) -> None:
    collection = store.create_collection("c", default_ttl=default_ttl)
    collection.create({"id": "there"})
    before = collection.read("there")
    for attempt in (
        lambda: collection.create({"id": "a", "ttl": ttl}),
        lambda: collection.upsert({"id": "there", "ttl": ttl}),
        lambda: collection.replace({"id": "there", "ttl": ttl}),
        lambda: collection.create_many([{"id": "a", "ttl": ttl}]),
        lambda: collection.upsert_many([{"id": "there", "ttl": ttl}]),
    ):
        with pytest.raises(InvalidTtl) as refused:
            attempt()
        assert "-1" in str(refused.value)
        assert str(MAX_TTL) in str(refused.value)
        assert repr(ttl)[:70] in str(refused.value)
    assert list(collection) == [before]


@pytest.mark.parametrize("ttl", [-1, 1, 2, MAX_TTL - 1, MAX_TTL])
def test_rule_6_the_limits_themselves_are_valid(store: Store, ttl: int) -> None:
    collection = store.create_collection("c", default_ttl=ttl)
    assert collection.default_ttl == ttl
    assert collection.create({"id": "a", "ttl": ttl})["ttl"] == ttl
    assert collection.read("a")["ttl"] == ttl


@pytest.mark.parametrize("default_ttl", INVALID_TTLS, ids=repr)
def test_rule_6_an_invalid_default_is_refused(store: Store, default_ttl: Any) -> None:
    with pytest.raises(InvalidTtl, match="default_ttl must be None"):
        store.create_collection("c", default_ttl=default_ttl)
    assert store.list_collections() == []
    collection = store.create_collection("c", default_ttl=5)
    with pytest.raises(InvalidTtl, match=f"-1 .* 1 to {MAX_TTL}"):
        collection.configure(default_ttl=default_ttl)
    assert collection.default_ttl == 5


def test_small_steps_of_a_fake_clock_add_up(clock: FakeClock) -> None:
    start = clock()
    for _ in range(10):
        clock.advance(0.0004)
    assert round(clock() - start, 6) == 0.004
