"""Pages: whatever happens between them, nothing comes twice and nothing that stays is left out."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, NamedTuple
from weakref import WeakSet

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ttlstore import Collection, IndexingPolicy, Page, QueryError, Store
from ttlstore.query.pages import MAX_SIZE
from ttlstore.query.places import Part, Placed, first_after
from ttlstore.query.values import identity
from ttlstore.testing import FakeClock

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
        "SELECT VALUE SUM(c.total) FROM c",
        "SELECT COUNT(1) AS n FROM c OFFSET 1 LIMIT 1",
        "SELECT VALUE c.missing FROM c ORDER BY c.total * 2",
        "SELECT VALUE c.total > 0 ? c.id : undefined FROM c ORDER BY c.total * 2 DESC",
        "SELECT c.id, t FROM c JOIN t IN c.tags ORDER BY t DESC, c.total",
        "SELECT TOP 7 VALUE c.id FROM c ORDER BY c.total * 2 DESC",
        "SELECT VALUE c.id FROM c ORDER BY -c.total OFFSET 2 LIMIT 5",
        "SELECT DISTINCT VALUE c.total FROM c ORDER BY c.total DESC",
        "SELECT DISTINCT TOP 2 VALUE c.total FROM c ORDER BY c.total DESC",
        "SELECT DISTINCT VALUE c.total FROM c ORDER BY c.id DESC",
        "SELECT DISTINCT c.total, t FROM c JOIN t IN c.tags ORDER BY t, c.total DESC OFFSET 1 LIMIT 4",
        "SELECT c.total, COUNT(1) AS n FROM c GROUP BY c.total ORDER BY COUNT(1) DESC",
        "SELECT c.total, COUNT(1) AS n FROM c GROUP BY c.total OFFSET 1 LIMIT 1",
        "SELECT DISTINCT VALUE COUNT(1) FROM c GROUP BY c.total ORDER BY COUNT(1)",
        "SELECT VALUE x.id FROM (SELECT * FROM c) AS x",
        "SELECT VALUE x.id FROM (SELECT TOP 6 * FROM c ORDER BY c.total DESC) AS x WHERE x.total > 0",
        "SELECT VALUE x.id FROM (SELECT * FROM c ORDER BY c.total DESC) AS x ORDER BY x.total = 0 DESC",
        "SELECT VALUE t FROM t IN (SELECT VALUE c.tags FROM c)",
        "SELECT x.total, t FROM (SELECT DISTINCT c.total, c.tags FROM c) AS x JOIN t IN x.tags",
        "SELECT VALUE g.n FROM (SELECT c.total, COUNT(1) AS n FROM c GROUP BY c.total) AS g ORDER BY g.n DESC",
        "SELECT VALUE SUM(g.n) FROM (SELECT c.total, COUNT(1) AS n FROM c GROUP BY c.total) AS g",
        "SELECT VALUE x FROM (SELECT VALUE 1) AS x",
        "SELECT VALUE 1",
        "SELECT TOP 0 VALUE c.id FROM c ORDER BY c.total * 2",
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


def ten_more(orders: Collection, text: str, token: str | None) -> list[Any]:
    return orders.query_page(text, size=10, token=token).items


def test_a_value_of_distinct_comes_once_whichever_documents_have_it(orders: Collection, clock: FakeClock) -> None:
    text = "SELECT DISTINCT VALUE c.total FROM c"
    first = orders.query_page(text, size=2)
    assert first.items == [0, 1]
    orders.delete("0")  # the first with 0, which others still have
    orders.create({"id": "again", "total": 0})
    orders.replace({"id": "1", "total": 2})  # the first with 2, before the place where the page ended
    orders.create({"id": "new", "total": 1.5})
    orders.create({"id": "string", "total": "x"})
    assert ten_more(orders, text, first.token) == [1.5, 2, "x"]
    clock.advance(100)
    assert ten_more(orders, text, first.token) == []


def test_a_value_of_distinct_that_is_sorted_by_something_else_stays_at_its_first_place(orders: Collection) -> None:
    text = "SELECT DISTINCT VALUE c.total FROM c ORDER BY c.id DESC"
    first = orders.query_page(text, size=1)
    assert first.items == [0]  # of 9; it has a place at 6, 3 and 0 too
    assert ten_more(orders, text, first.token) == [2, 1]


def test_a_group_comes_once_as_it_is_when_its_page_is_made(orders: Collection) -> None:
    text = "SELECT c.total, COUNT(1) AS n FROM c GROUP BY c.total"
    first = orders.query_page(text, size=1)
    assert first.items == [{"total": 0, "n": 4}]
    for id in ("0", "1", "3"):
        orders.delete(id)
    orders.create({"id": "new", "total": 0})
    orders.create({"id": "between", "total": 0.5})
    assert ten_more(orders, text, first.token) == [{"total": 0.5, "n": 1}, {"total": 1, "n": 2}, {"total": 2, "n": 3}]


def test_a_group_that_is_sorted_by_what_changes_is_where_it_is_when_the_page_is_made(orders: Collection) -> None:
    text = "SELECT VALUE c.total FROM c GROUP BY c.total ORDER BY COUNT(1) DESC"
    first = orders.query_page(text, size=1)
    assert first.items == [0]
    orders.create_many({"id": f"more {number}", "total": 1} for number in range(5))  # now before 0
    assert ten_more(orders, text, first.token) == [2]


def test_documents_sorted_by_an_expression_keep_their_places(orders: Collection, clock: FakeClock) -> None:
    text = "SELECT VALUE c.id FROM c ORDER BY -c.total, LENGTH(c.id) DESC"
    first = orders.query_page(text, size=4)
    assert first.items == ["8", "5", "2", "7"]
    orders.delete("7")  # the one that the token names
    orders.delete("8")
    orders.create({"id": "before", "total": 1})  # what was written last comes first here, and this is longer
    orders.create({"id": "x", "total": 0.5})
    clock.advance(50)
    for id in ("4", "0", "3", "x"):
        orders.touch(id)
    clock.advance(50)  # the others expire
    assert ten_more(orders, text, first.token) == ["4", "x", "3", "0"]


def test_limits_count_what_the_pages_before_gave(orders: Collection) -> None:
    text = "SELECT DISTINCT VALUE c.total FROM c ORDER BY c.total OFFSET 1 LIMIT 3"
    orders.create({"id": "a", "total": 3})
    first = orders.query_page(text, size=1)
    assert first.items == [1]
    orders.delete("a")
    orders.create_many({"id": f"b{number}", "total": number} for number in (5, 6, 7))
    assert ten_more(orders, text, first.token) == [2, 5]


class Asked(NamedTuple):
    text: str
    results: Callable[[dict[str, Any]], list[Any]]
    """What has to come for a document that is there all the time."""
    once: bool = True
    """Whether nothing at all may come twice, however the documents change."""


ASKED = [
    Asked("SELECT VALUE c.id FROM c", lambda c: [c["id"]], once=False),
    *(
        Asked(f"SELECT VALUE c.id FROM c ORDER BY {order}", lambda c: [c["id"]], once=False)
        for order in (
            "c.v",
            "c.v DESC",
            "c.v, c.w DESC",
            "c.v ?? 0 DESC",
            "c.w * 2, IS_STRING(c.v) DESC",
            "LENGTH(c.v)",
        )
    ),
    Asked(
        "SELECT VALUE [c.id, t] FROM c JOIN t IN c.tags ORDER BY t DESC",
        lambda c: [[c["id"], t] for t in c["tags"]],
        once=False,
    ),
    Asked("SELECT VALUE x.id FROM (SELECT * FROM c ORDER BY c.v DESC) AS x", lambda c: [c["id"]], once=False),
    Asked("SELECT DISTINCT VALUE c.v FROM c", lambda c: [c["v"]]),
    Asked("SELECT DISTINCT VALUE c.v FROM c ORDER BY c.v DESC", lambda c: [c["v"]]),
    Asked("SELECT DISTINCT c.v, c.w FROM c ORDER BY c.w DESC", lambda c: [{"v": c["v"], "w": c["w"]}]),
    Asked("SELECT DISTINCT VALUE t FROM c JOIN t IN c.tags", lambda c: c["tags"]),
    Asked("SELECT VALUE c.v FROM c GROUP BY c.v", lambda c: [c["v"]]),
    Asked("SELECT VALUE [c.v, c.w] FROM c GROUP BY c.v, c.w ORDER BY c.w DESC", lambda c: [[c["v"], c["w"]]]),
    Asked("SELECT VALUE x.v FROM (SELECT DISTINCT c.v FROM c) AS x", lambda c: [c["v"]]),
    Asked("SELECT VALUE x.w FROM (SELECT c.w, COUNT(1) AS n FROM c GROUP BY c.w) AS x", lambda c: [c["w"]]),
]

long = "long" * 100
values = st.none() | st.booleans() | st.integers(-2, 2)
values |= st.sampled_from([0.5, "", "a", "b\0", "b\x01", [1], {"a": 1}, f"{long}a", f"{long}b", [long], [long, 1], {}])
changes = st.lists(
    st.tuples(st.sampled_from(["create", "delete", "expire", "update"]), st.integers(0, 14), values), max_size=3
)


@settings(max_examples=100)
@given(
    present=st.lists(values, min_size=5, max_size=15),
    changed=st.lists(changes, min_size=1, max_size=6),
    asked=st.sampled_from(ASKED),
    indexed=st.booleans(),
    size=st.integers(1, 4),
)
def test_what_stays_as_it_is_comes_exactly_once(
    store: Store,
    clock: FakeClock,
    present: list[Any],
    changed: list[list[tuple[str, int, Any]]],
    asked: Asked,
    indexed: bool,
    size: int,
) -> None:
    policy = IndexingPolicy(paths=("/v", ("/v", "/w")) if indexed else ())
    documents = store.create_collection(f"c{next(names)}", default_ttl=-1, indexing=policy)
    bodies = [
        {"id": str(number), "v": value, "w": number % 2, "tags": [number % 3, number % 2, "t"]}
        for number, value in enumerate(present)
    ]
    documents.create_many(bodies)
    touched: dict[str, set[str]] = {}
    found: list[Any] = []
    token = None
    rounds = iter(changed)
    while True:
        page = documents.query_page(asked.text, size=size, token=token)
        found += page.items
        token = page.token
        if token is None:
            break
        for kind, number, value in next(rounds, []):
            change(documents, clock, kind, str(number), value)
            touched.setdefault(str(number), set()).add(kind)
    staying = [body for body in bodies if body["id"] not in touched]
    expected = {identity(result) for body in staying for result in asked.results(body)}
    given = list(map(identity, found))
    assert expected <= set(given)
    if asked.once:
        assert len(set(given)) == len(given)
    else:
        results = [identity(result) for body in staying for result in asked.results(body)]
        assert len([result for result in given if result in expected]) == len(results)
    if asked.text == "SELECT VALUE c.id FROM c":  # there, a document that is only changed keeps its place
        assert all(found.count(id) <= 1 for id, kinds in touched.items() if kinds == {"update"})
    store.delete_collection(documents.name)


def change(documents: Collection, clock: FakeClock, kind: str, id: str, value: Any) -> None:
    document = documents.get(id)
    if kind == "create" and document is None:
        documents.create({"id": id, "v": value, "w": 2, "tags": ["t", value]})
    elif kind == "update" and document is not None:
        documents.replace({**document, "v": value})
    elif kind == "delete" and document is not None:
        documents.delete(id)
    elif kind == "expire" and document is not None:
        documents.replace({**document, "ttl": 1})
        clock.advance(1)


# --- what a page costs ------------------------------------------------------------------------------------------------


class Result:
    pass


@pytest.mark.parametrize("descending", [False, True])
def test_a_page_holds_about_as_many_results_as_it_gives(descending: bool) -> None:
    alive: WeakSet[Result] = WeakSet()
    most = 0

    def results() -> Iterator[Placed]:
        nonlocal most
        for number in range(20_000):
            result = Result()
            alive.add(result)
            yield Placed((number * 7919 % 20_000,), result)
            most = max(most, len(alive))

    found = first_after(results(), (Part(counted=True, descending=descending),), (10_000,), 10)
    expected = range(9_999, 9_989, -1) if descending else range(10_001, 10_011)
    assert [place for place, _ in found] == [(number,) for number in expected]
    assert most < 1100


def test_distinct_values_in_the_order_of_an_index_are_read_as_far_as_the_page_goes(
    store: Store, orders: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.create_many({"id": f"n{number}", "total": number} for number in range(100))
    read = 0
    stream = store._engine.stream

    def counted(*asked: Any) -> Iterator[Any]:
        nonlocal read
        for row in stream(*asked):
            read += 1
            yield row

    monkeypatch.setattr(store._engine, "stream", counted)
    text = "SELECT DISTINCT VALUE c.total FROM c ORDER BY c.total"
    assert orders.query_page(text, size=5).items == [0, 1, 2, 3, 4]
    assert read < 25


@pytest.mark.parametrize("text", ["SELECT DISTINCT VALUE c.v FROM c", "SELECT VALUE c.v FROM c GROUP BY c.v"])
def test_a_token_is_short_however_long_the_values_are(notes: Collection, text: str) -> None:
    values = [letter * 1_000_000 for letter in "cba"] + ["a" * 1_000_000 + "b", ["a" * 1_000_000], {"x": ["b"] * 1000}]
    notes.create_many({"id": str(number), "v": value} for number, value in enumerate(values))
    found, token = [], None
    for _ in values:
        page = notes.query_page(text, size=1, token=token)
        found += page.items
        token = page.token
        assert token is None or len(token) < 1000
    assert token is None
    assert sorted(map(str, found)) == sorted(map(str, values))


def test_a_token_holds_what_the_order_goes_by_whole(notes: Collection) -> None:
    long = "x" * 10_000
    notes.create_many({"id": id, "v": long + id} for id in "bca")
    text = "SELECT VALUE c.id FROM c ORDER BY CONCAT(c.v, '')"
    assert all_pages(notes, text, size=1) == [["a"], ["b"], ["c"]]


def test_a_place_may_be_as_deep_as_documents_are(notes: Collection) -> None:
    depths = [1, 100, 128, 129, 250]
    notes.create_many({"id": str(depth), "v": nested(depth)} for depth in depths)
    found = [value for page in all_pages(notes, "SELECT DISTINCT VALUE c.v FROM c", size=1) for value in page]
    assert sorted(map(str, found)) == sorted(str(nested(depth)) for depth in depths)


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value
