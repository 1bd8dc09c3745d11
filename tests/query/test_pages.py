"""Pages: whatever happens between them, nothing comes twice and nothing that stays is left out."""

from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ttlstore import Collection, IndexingPolicy, Page, QueryError, Store
from ttlstore.query.pages import MAX_SIZE, Position, Tokens
from ttlstore.testing import FakeClock
from ttlstore.unset import UNSET

names = count()


@pytest.fixture
def orders(store: Store) -> Collection:
    orders = store.create_collection("orders", default_ttl=100, indexing=IndexingPolicy(paths=("/total",)))
    orders.create_many({"id": str(number), "total": number % 3, "tags": ["x", "y"]} for number in range(10))
    return orders


def all_pages(collection: Collection, text: str, *, size: int, **options: Any) -> list[list[Any]]:
    pages, token = [], None
    while True:
        page = collection.query_page(text, size=size, token=token, **options)
        pages.append(page.items)
        token = page.token
        if token is None:
            return pages


def test_the_pages_together_are_the_result(orders: Collection) -> None:
    for text in (
        "SELECT VALUE c.id FROM c",
        "SELECT VALUE c.id FROM c ORDER BY c.total DESC",
        "SELECT VALUE c.id FROM c WHERE c.total + 1 > 1 ORDER BY c.total, c.id DESC",
        "SELECT VALUE c.id FROM c ORDER BY c.total * 2",
        "SELECT c.id, t FROM c JOIN t IN c.tags",
        "SELECT TOP 7 VALUE c.id FROM c ORDER BY c.total",
        "SELECT VALUE c.id FROM c OFFSET 2 LIMIT 5",
        "SELECT DISTINCT VALUE c.total FROM c",
        "SELECT c.total, COUNT(1) AS n FROM c GROUP BY c.total",
        "SELECT VALUE COUNT(1) FROM c",
        "SELECT VALUE t FROM t IN c.tags",
    ):
        expected = list(orders.query(text))
        for size in (1, 3, 7, 100):
            pages = all_pages(orders, text, size=size)
            assert [item for page in pages for item in page] == expected
            assert all(len(page) == size for page in pages[:-1])


def test_a_page_is_items_and_a_token_which_is_none_with_the_last(orders: Collection) -> None:
    page = orders.query_page("SELECT VALUE c.id FROM c WHERE c.total = 0", size=4)
    assert page == Page(["0", "3", "6", "9"], None)
    first = orders.query_page("SELECT VALUE c.id FROM c WHERE c.total = 0", size=3)
    assert first.items == ["0", "3", "6"]
    second = orders.query_page("SELECT VALUE c.id FROM c WHERE c.total = 0", size=3, token=first.token)
    assert second == (["9"], None)
    assert orders.query_page("c.total = 99") == ([], None)


def test_the_size_may_change_from_page_to_page(orders: Collection) -> None:
    first = orders.query_page("SELECT VALUE c.id FROM c", size=2)
    second = orders.query_page("SELECT VALUE c.id FROM c", size=5, token=first.token)
    assert first.items + second.items == [str(number) for number in range(7)]


@pytest.mark.parametrize("size", [0, -1, MAX_SIZE + 1, 1.0, "1", None, True])
def test_a_size_that_is_none_is_refused(orders: Collection, size: Any) -> None:
    with pytest.raises(QueryError, match="size of a page"):
        orders.query_page("SELECT * FROM c", size=size)


# --- while the collection changes -------------------------------------------------------------------------------------


def test_documents_that_are_deleted_or_expire_between_pages_do_not_move_the_others(
    orders: Collection, clock: FakeClock
) -> None:
    clock.advance(50)
    for number in (5, 6, 7, 8):
        orders.touch(str(number))
    first = orders.query_page("SELECT VALUE c.id FROM c", size=6)
    assert first.items[-1] == "5"
    orders.delete("5")  # the one that the token names
    clock.advance(50)  # 0 to 4 and 9 expire
    assert orders.query_page("SELECT VALUE c.id FROM c", size=6, token=first.token).items == ["6", "7", "8"]


def test_documents_added_between_pages_come_if_they_belong_behind(orders: Collection) -> None:
    text = "SELECT VALUE c.id FROM c ORDER BY c.total"
    first = orders.query_page(text, size=5)
    assert first.items == ["0", "3", "6", "9", "1"]
    orders.create({"id": "before", "total": 0.5})
    orders.create({"id": "behind", "total": 1.5})
    orders.create({"id": "string", "total": "z"})
    second = orders.query_page(text, size=100, token=first.token)
    assert second.items == ["4", "7", "behind", "2", "5", "8", "string"]


def test_an_index_may_come_and_go_between_pages(orders: Collection) -> None:
    text = "SELECT VALUE c.id FROM c ORDER BY c.total DESC"
    first = orders.query_page(text, size=4)
    orders.configure(indexing=IndexingPolicy())
    second = orders.query_page(text, size=4, token=first.token)
    orders.configure(indexing=IndexingPolicy(paths=("/total",)))
    third = orders.query_page(text, size=4, token=second.token)
    assert first.items + second.items + third.items == ["8", "5", "2", "7", "4", "1", "9", "6", "3", "0"]


values = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.5, "", "a", "b\0", "b\x01", [1], {"a": 1}])
changes = st.lists(
    st.tuples(st.sampled_from(["create", "delete", "expire", "update"]), st.integers(0, 14), values), max_size=3
)


@settings(max_examples=40)
@given(
    present=st.lists(values, min_size=5, max_size=15),
    changed=st.lists(changes, min_size=1, max_size=4),
    order=st.sampled_from(["", "ORDER BY c.v", "ORDER BY c.v DESC", "ORDER BY c.v, c.w DESC"]),
    indexed=st.booleans(),
    size=st.integers(1, 4),
)
def test_what_stays_as_it_is_comes_exactly_once(
    store: Store,
    clock: FakeClock,
    present: list[Any],
    changed: list[list[tuple[str, int, Any]]],
    order: str,
    indexed: bool,
    size: int,
) -> None:
    policy = IndexingPolicy(paths=("/v", ("/v", "/w")) if indexed else ())
    documents = store.create_collection(f"c{next(names)}", default_ttl=-1, indexing=policy)
    for number, value in enumerate(present):
        documents.create({"id": str(number), "v": value, "w": number % 2})
    touched: dict[str, set[str]] = {}
    found: list[str] = []
    token = None
    text = f"SELECT VALUE c.id FROM c {order}"
    rounds = iter(changed)
    while True:
        page = documents.query_page(text, size=size, token=token)
        found += page.items
        token = page.token
        if token is None:
            break
        for kind, number, value in next(rounds, []):
            change(documents, clock, kind, str(number), value)
            touched.setdefault(str(number), set()).add(kind)
    staying = {str(number) for number in range(len(present))} - touched.keys()
    assert staying <= set(found)
    assert len([id for id in found if id in staying]) == len(staying)
    if not order:  # there, a document that is only changed keeps its place
        staying |= {id for id, kinds in touched.items() if kinds == {"update"}}
        assert all(found.count(id) <= 1 for id in staying)
    store.delete_collection(documents.name)


def change(documents: Collection, clock: FakeClock, kind: str, id: str, value: Any) -> None:
    document = documents.get(id)
    if kind == "create" and document is None:
        documents.create({"id": id, "v": value, "w": 2})
    elif kind == "update" and document is not None:
        documents.replace({**document, "v": value})
    elif kind == "delete" and document is not None:
        documents.delete(id)
    elif kind == "expire" and document is not None:
        documents.replace({**document, "ttl": 1})
        clock.advance(1)


# --- tokens -----------------------------------------------------------------------------------------------------------


def token_of(collection: Collection, *query: Any, **options: Any) -> str:
    token = collection.query_page(*query, size=2, **options).token
    assert token is not None
    return token


def test_a_token_of_another_query_is_refused(store: Store, orders: Collection) -> None:
    text = "SELECT * FROM c WHERE c.total >= @least"
    token = token_of(orders, text, {"least": 0})
    other = store.create_collection("other")
    for collection, asked, least, partition in (
        (orders, text.replace(" ", "  "), 0, UNSET),
        (orders, text, 1, UNSET),
        (orders, text, "0", UNSET),
        (orders, text, 0, "1"),
        (other, text, 0, UNSET),
    ):
        with pytest.raises(QueryError, match="belongs to another query"):
            collection.query_page(asked, {"least": least}, token=token, partition=partition)
    assert len(orders.query_page(text, {"least": 0}, token=token).items) == 8


def test_a_token_that_was_changed_is_refused(orders: Collection) -> None:
    text = "SELECT * FROM c"
    token = token_of(orders, text)
    for position in range(len(token)):
        another = "A" if token[position] != "A" else "B"
        damaged = (
            token[:position] + another + token[position + 1 :],
            token[:position],
            f"{token[:position]} {token[position:]}",
        )
        for changed in damaged:
            with pytest.raises(QueryError, match="is damaged"):
                orders.query_page(text, token=changed)


@pytest.mark.parametrize("token", ["", "x", "é", "=" * 50, 5, b"abc", "A" * 100, "\0"])
def test_what_is_no_token_is_refused(orders: Collection, token: Any) -> None:
    with pytest.raises(QueryError, match="the token"):
        orders.query_page("SELECT * FROM c", token=token)


@pytest.mark.parametrize(
    "position",
    [
        Position((1, 2), 0, 0, None),
        Position((), 0, 0, None),
        Position((None,), 0, 0, None),  # type: ignore[arg-type]  # what a token could say
        Position((True,), 0, 0, None),
        Position((1,), -1, 0, None),
        Position((1,), 0, "0", None),  # type: ignore[arg-type]
        Position((1,), 0, 0, 1.5),  # type: ignore[arg-type]
        Position(({},), 0, 0, None),  # type: ignore[arg-type]
        Position((["x"],), 0, 0, None),  # type: ignore[arg-type]
        Position((["1", "2", "3"],), 0, 0, None),  # type: ignore[arg-type]
    ],
)
def test_a_token_made_up_by_somebody_who_knows_how_is_checked_too(orders: Collection, position: Position) -> None:
    text = "SELECT * FROM c"
    token = Tokens(orders._id, orders.name, text, {}).token(position)
    with pytest.raises(QueryError, match="the token"):
        orders.query_page(text, token=token)


def test_a_token_is_made_of_characters_that_a_url_can_have(orders: Collection) -> None:
    orders.upsert({"id": "0", "total": "ä\0/?&"})
    token = token_of(orders, "SELECT * FROM c ORDER BY c.total DESC")
    assert token.replace("-", "").replace("_", "").replace("=", "").isalnum()
    assert len(orders.query_page("SELECT * FROM c ORDER BY c.total DESC", token=token).items) == 8
