"""Collections: making, finding, changing and dropping them."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ttlstore import (
    Collection,
    CollectionExists,
    CollectionNotFound,
    IndexingPolicy,
    InvalidCollection,
    InvalidTtl,
    Store,
)
from ttlstore.testing import FakeClock


def test_a_collection_has_the_settings_it_was_made_with(store: Store) -> None:
    policy = IndexingPolicy("lazy", ("/a", ("/b/c", "/d~1e")))
    made = store.create_collection("c", partition_key="/customer/id", default_ttl=60, indexing=policy)
    for collection in (made, store.collection("c"), store.list_collections()[0], store.ensure_collection("c")):
        assert collection.name == "c"
        assert collection.partition_key == "/customer/id"
        assert collection.default_ttl == 60
        assert collection.indexing == policy


def test_by_default_ttl_is_off_and_the_id_is_the_partition_key(store: Store) -> None:
    collection = store.create_collection("c")
    assert (collection.default_ttl, collection.partition_key) == (None, "/id")
    assert collection.indexing == IndexingPolicy("consistent", ())


def test_a_collection_is_made_once(store: Store) -> None:
    store.create_collection("c", default_ttl=5).create({"id": "a"})
    with pytest.raises(CollectionExists, match="'c'"):
        store.create_collection("c", default_ttl=6)
    assert store.collection("c").default_ttl == 5
    assert store.collection("c").count() == 1


def test_ensure_makes_a_missing_collection_and_leaves_one_that_is_there(store: Store) -> None:
    assert store.ensure_collection("c", default_ttl=5, partition_key="/k").default_ttl == 5
    again = store.ensure_collection("c", default_ttl=6)
    assert (again.default_ttl, again.partition_key) == (5, "/k")
    assert len(store.list_collections()) == 1


def test_ensure_refuses_another_partition_key_than_the_one_that_is_there(store: Store) -> None:
    store.ensure_collection("c", partition_key="/k")
    assert store.ensure_collection("c", partition_key="/k").partition_key == "/k"
    with pytest.raises(InvalidCollection, match="partitioned by /k, not by '/other'"):
        store.ensure_collection("c", partition_key="/other")


def test_collections_are_listed_by_name(store: Store) -> None:
    assert store.list_collections() == []
    for name in ("b", "a", "C", "ä", "10", "9"):
        store.create_collection(name)
    assert [collection.name for collection in store.list_collections()] == ["10", "9", "C", "a", "b", "ä"]


@pytest.mark.parametrize("verb", ["collection", "delete_collection"])
def test_a_missing_collection_is_not_found(store: Store, verb: str) -> None:
    with pytest.raises(CollectionNotFound, match="'nowhere'"):
        getattr(store, verb)("nowhere")


def test_a_dropped_collection_is_gone_with_its_documents_and_its_name_is_free(store: Store, clock: FakeClock) -> None:
    old = store.create_collection("c", default_ttl=5)
    old.create({"id": "a", "of": "old"})
    store.delete_collection("c")
    assert store.list_collections() == []
    with pytest.raises(CollectionNotFound):
        store.collection("c")
    new = store.create_collection("c", partition_key="/id")
    assert new.count() == 0
    assert "a" not in new
    new.create({"id": "a", "of": "new"})
    assert [document["of"] for document in new] == ["new"]


@pytest.mark.parametrize(
    "use",
    [
        lambda it: it.create({"id": "a"}),
        lambda it: it.create({"id": "new"}),
        lambda it: it.read("a"),
        lambda it: it.get("a"),
        lambda it: it.upsert({"id": "a"}),
        lambda it: it.upsert({"id": "a"}, if_match="x"),
        lambda it: it.replace({"id": "a"}),
        lambda it: it.replace({"id": "a"}, if_match="x"),
        lambda it: it.patch("a", []),
        lambda it: it.touch("a"),
        lambda it: it.delete("a"),
        lambda it: it.delete("a", if_match="x"),
        lambda it: it.create_many([{"id": "a"}]),
        lambda it: it.upsert_many([{"id": "a"}]),
        lambda it: it.count(),
        len,
        list,
        lambda it: "a" in it,
        lambda it: it.expiry("a"),
        lambda it: it.default_ttl,
        lambda it: it.indexing,
        lambda it: it.configure(default_ttl=5),
    ],
)
def test_a_handle_on_a_dropped_collection_finds_nothing(store: Store, archive: Collection, use: Any) -> None:
    archive.create({"id": "a"})
    store.delete_collection("archive")
    new = store.create_collection("archive")
    with pytest.raises(CollectionNotFound, match="'archive' was dropped"):
        use(archive)
    assert new.count() == 0
    assert new.default_ttl is None


# --- names ------------------------------------------------------------------------------------------------------------


@given(name=st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=63))
def test_any_text_is_a_name(store: Store, name: str) -> None:
    store.create_collection(name).create({"id": "a", "name": name})
    assert store.collection(name).read("a")["name"] == name
    assert [collection.name for collection in store.list_collections()] == [name]
    store.delete_collection(name)


@pytest.mark.parametrize("name", ["'; DROP TABLE documents; --", 'a"b', "a b", "documents", "sqlite_master", "%", "?"])
def test_names_are_data_and_never_sql(store: Store, name: str) -> None:
    store.create_collection(name, partition_key="/'; --").create({"id": name, "'; --": name})
    assert store.collection(name).read(name, partition=name)["id"] == name
    assert store.check() == []


@pytest.mark.parametrize("name", ["", "a\0", "\ud800", "a" * 256, "ä" * 128, None, 1, b"c", ["c"]], ids=repr)
def test_an_invalid_name_is_refused(store: Store, name: Any) -> None:
    for verb in (store.create_collection, store.ensure_collection, store.collection, store.delete_collection):
        with pytest.raises(InvalidCollection):
            verb(name)
    assert store.list_collections() == []


@pytest.mark.parametrize(
    "partition_key", ["", "customerId", "/", "//", "/a//b", "/a/", None, 1, "/\0", "/\ud800", ["/a"]]
)
def test_an_invalid_partition_key_is_refused(store: Store, partition_key: Any) -> None:
    with pytest.raises(InvalidCollection, match="a partition key must be a path"):
        store.create_collection("c", partition_key=partition_key)
    assert store.list_collections() == []


# --- settings ---------------------------------------------------------------------------------------------------------


def test_configure_changes_only_what_is_passed(store: Store) -> None:
    collection = store.create_collection("c", default_ttl=5, indexing=IndexingPolicy("lazy", ("/a",)))
    collection.configure()
    collection.configure(default_ttl=6)
    assert (collection.default_ttl, collection.indexing) == (6, IndexingPolicy("lazy", ("/a",)))
    collection.configure(indexing="consistent")
    assert (collection.default_ttl, collection.indexing) == (6, IndexingPolicy("consistent"))
    collection.configure(default_ttl=None)
    assert collection.default_ttl is None


def test_settings_are_seen_by_every_handle(store: Store) -> None:
    one, two = store.create_collection("c"), store.collection("c")
    one.configure(default_ttl=7)
    assert two.default_ttl == 7
    two.configure(indexing="lazy")
    assert one.indexing.mode == "lazy"


@pytest.mark.parametrize(
    ("given", "seconds"),
    [(timedelta(seconds=1), 1), (timedelta(days=90), 7_776_000), (timedelta(weeks=1, hours=1), 608_400)],
)
def test_a_default_ttl_may_be_a_timedelta_of_whole_seconds(store: Store, given: timedelta, seconds: int) -> None:
    collection = store.create_collection("c", default_ttl=given)
    assert collection.default_ttl == seconds
    collection.configure(default_ttl=given * 2)
    assert collection.default_ttl == seconds * 2


@pytest.mark.parametrize(
    "given", [timedelta(milliseconds=1500), timedelta(0), timedelta(days=30_000), timedelta(seconds=-2), timedelta.max]
)
def test_another_timedelta_is_refused(store: Store, given: timedelta) -> None:
    with pytest.raises(InvalidTtl, match="default_ttl must be"):
        store.create_collection("c", default_ttl=given)


def test_the_ttl_of_a_document_is_not_a_timedelta(archive: Collection) -> None:
    with pytest.raises(InvalidTtl):
        archive.create({"id": "a", "ttl": timedelta(seconds=5)})


@pytest.mark.parametrize(
    "indexing",
    ["", "all", None, 5, IndexingPolicy, ["/a"]],
    ids=repr,
)
def test_an_unknown_indexing_mode_is_refused(store: Store, indexing: Any) -> None:
    with pytest.raises(InvalidCollection, match="indexing mode must be one of consistent, lazy, none"):
        store.create_collection("c", indexing=indexing)


@pytest.mark.parametrize(
    "paths",
    ["/a", ("a",), ("/",), ("",), (5,), ("/a", "/a"), (("/a", 5),), 5, ("/a//b",), ("/\0",), ("/\ud800",), ((),)],
)
def test_invalid_paths_are_refused(paths: Any) -> None:
    with pytest.raises(InvalidCollection):
        IndexingPolicy("consistent", paths)


def test_without_an_index_there_are_no_paths() -> None:
    with pytest.raises(InvalidCollection, match="none"):
        IndexingPolicy("none", ("/a",))


def test_an_index_has_as_many_paths_as_every_engine_can_take(store: Store) -> None:
    ten = tuple(f"/p{number}" for number in range(10))
    orders = store.create_collection("orders", indexing=IndexingPolicy(paths=(ten,)))
    orders.create({"id": "a", **{f"p{number}": number for number in range(10)}})
    assert orders.explain("c.p0 = 0 AND c.p1 = 1").index == ten
    with pytest.raises(InvalidCollection, match="an index has at most 10 paths, got 11"):
        orders.configure(indexing=IndexingPolicy(paths=((*ten, "/p10"),)))
    assert orders.indexing.paths == (ten,)
