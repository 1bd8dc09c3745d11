"""Tokens: they fit the query they came from, and nothing else is taken for one."""

import base64
from typing import Any

import pytest

from ttlstore import Collection, IndexingPolicy, QueryError, Store
from ttlstore.query.pages import Position, Tokens
from ttlstore.unset import UNSET


@pytest.fixture
def orders(store: Store) -> Collection:
    orders = store.create_collection("orders", indexing=IndexingPolicy(paths=("/total",)))
    orders.create_many({"id": str(number), "total": number} for number in range(10))
    return orders


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
        Position((None,), 0, 0, None),
        Position((True,), 0, 0, None),
        Position((1,), -1, 0, None),
        Position((1,), 0, "0", None),  # type: ignore[arg-type]  # what a token could say
        Position((1,), 0, 0, 1.5),  # type: ignore[arg-type]
        Position(({},), 0, 0, None),
        Position(({"decimal": "x"},), 0, 0, None),
        Position((["x"],), 0, 0, None),
        Position((["1", "2", "3"],), 0, 0, None),
    ],
)
def test_a_token_made_up_by_somebody_who_knows_how_is_checked_too(orders: Collection, position: Position) -> None:
    text = "SELECT * FROM c"
    token = Tokens(orders._id, orders.name, text, {}).token(position)
    with pytest.raises(QueryError, match="the token"):
        orders.query_page(text, token=token)


@pytest.mark.parametrize(
    "keys",
    [
        None,
        (),
        (1,),
        ((4, 1),),
        ((4, 1), (5, "a"), 1),
        ((4, "x"), (5, "a")),
        ((4, True), (5, "a")),
        ((4, 1), (5, 1)),
        ((4, 1), 5),
        ((4, 1), ("5", "a")),
        ((4, 1), ()),
        ((4, 1), (6, ("a",))),
        ((4, 1), (6, (), 1)),
        ((4, 1), (7, (("a", 1),))),
        ((4, 1), (7, ((1, (4, 1)),))),
        ((4, 1), (7, (), "digest", 1)),
        ((4, 1), (5, "a", "digest", 1)),
    ],
)
def test_a_place_made_up_by_somebody_who_knows_how_is_checked_too(orders: Collection, keys: Any) -> None:
    text = "SELECT c.total, c.id FROM c GROUP BY c.total, c.id"
    tokens = Tokens(orders._id, orders.name, text, {})
    with pytest.raises(QueryError, match="the token"):
        orders.query_page(text, token=tokens.token(Position(keys, 0, 0, None)))
    deep = base64.urlsafe_b64encode(tokens._digest(b"[" * 100_000) + b"[" * 100_000).decode()
    with pytest.raises(QueryError, match="the token"):
        orders.query_page(text, token=deep)
    for last in ((5, "a"), (5, "a", "digest"), (0,), (6, ((4, 1), (5, "a"))), (6, (), "digest"), (7, (("a", (4, 1)),))):
        place = Position(((4, 0), last), 0, 0, None)
        assert orders.query_page(text, token=tokens.token(place)).items


def test_a_token_is_made_of_characters_that_a_url_can_have(orders: Collection) -> None:
    orders.upsert({"id": "0", "total": "ä\0/?&"})
    token = token_of(orders, "SELECT * FROM c ORDER BY c.total DESC")
    assert token.replace("-", "").replace("_", "").replace("=", "").isalnum()
    assert len(orders.query_page("SELECT * FROM c ORDER BY c.total DESC", token=token).items) == 8
