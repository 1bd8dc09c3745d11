"""Strings longer than an entry of an index: indexed or not, on every engine, what is found is the same."""

import operator
import random
from collections.abc import Callable
from itertools import chain, repeat
from typing import Any

import pytest

from ttlstore import Collection, IndexingPolicy, Store
from ttlstore.engine.json import KEY_CHARACTERS, is_long

OPERATORS: dict[str, Callable[[str, str], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def strings() -> list[str]:
    """Around the length where it matters, some alike up to there; and some that no compression makes short enough."""
    chosen = random.Random(1)
    noise = "".join(chosen.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=50_000))
    found = ["", "a"]
    for sign in ("x", "\U0001f600", "\x01", '"', "\\", "\n"):
        for length in (KEY_CHARACTERS // 2, KEY_CHARACTERS - 1, KEY_CHARACTERS):
            found += [sign * length + end for end in ("", "\x01", "y", "\U0010ffff")]
    found += [noise[:KEY_CHARACTERS] + end for end in ("", "a", "b", "\0", noise, noise + "a", noise[::-1])]
    return sorted(set(found))


STRINGS = strings()
ASKED = [text for text in STRINGS[::4] + STRINGS[-1:] if "\0" not in text]


@pytest.fixture(params=[(), ("/s",), (("/n", "/s"),), (("/s", "/n", "/s2", "/s3", "/s4", "/s5"),)])
def texts(store: Store, request: pytest.FixtureRequest) -> Collection:
    collection = store.create_collection("texts", indexing=IndexingPolicy(paths=request.param))
    collection.create_many(document(number) for number in range(len(STRINGS)))
    return collection


def document(number: int) -> dict[str, Any]:
    long = chr(0x1F600) * 200 + str(number)
    return {"id": str(number), "n": 1, "s": STRINGS[number], "s2": long, "s3": long, "s4": long, "s5": long}


def numbers(collection: Collection, text: str, **parameters: Any) -> list[int]:
    return [int(id) for id in collection.query(f"SELECT VALUE c.id FROM c WHERE {text}", parameters)]


def test_they_compare_as_a_whole(texts: Collection) -> None:
    for asked in ASKED:
        for sign, holds in OPERATORS.items():
            expected = [number for number, text in enumerate(STRINGS) if holds(text, asked)]
            assert numbers(texts, f"c.n = 1 AND c.s {sign} @asked", asked=asked) == expected, (sign, asked[:200])


def test_they_are_found_among_others_and_by_how_they_start(texts: Collection) -> None:
    for first, second in zip(ASKED, ASKED[3:], strict=False):
        expected = [number for number, text in enumerate(STRINGS) if text in (first, second, "a")]
        assert numbers(texts, "c.s IN (@first, 'a', @second)", first=first, second=second) == expected
        assert numbers(texts, "c.s = @first OR c.s = 'a' OR c.s = @second", first=first, second=second) == expected
        others = [number for number in range(len(STRINGS)) if number not in expected]
        assert numbers(texts, "c.s NOT IN (@first, 'a', @second)", first=first, second=second) == others
        start = [number for number, text in enumerate(STRINGS) if text.startswith(first)]
        assert numbers(texts, "STARTSWITH(c.s, @first)", first=first) == start


@pytest.mark.parametrize("direction", ["ASC", "DESC"])
def test_they_are_sorted_as_a_whole_also_page_by_page(texts: Collection, direction: str) -> None:
    query = f"SELECT VALUE c.id FROM c WHERE c.n = 1 ORDER BY c.s {direction}"
    expected = [str(number) for number in range(len(STRINGS))]
    if direction == "DESC":
        expected.reverse()
    assert list(texts.query(query)) == expected
    assert list(texts.query(f"{query} OFFSET 3 LIMIT 4")) == expected[3:7]
    found: list[str] = []
    page = texts.query_page(query, size=7)
    while True:
        found += page.items
        if page.token is None:
            break
        page = texts.query_page(query, size=7, token=page.token)
    assert found == expected


@pytest.mark.parametrize("direction", ["ASC", "DESC"])
@pytest.mark.parametrize("where", ["", "WHERE c.n = 1", "WHERE c.s >= 'x'"])
@pytest.mark.parametrize("indexed", ["/s", ("/n", "/s"), ("/s", "/n"), None])
def test_what_is_equal_comes_in_the_order_of_writing_beside_what_is_only_alike(
    store: Store, indexed: Any, where: str, direction: str
) -> None:
    chosen = random.Random(3)
    policy = IndexingPolicy(paths=() if indexed is None else (indexed,))
    collection = store.create_collection("alike", indexing=policy)
    start = "x" * (KEY_CHARACTERS - 1)
    quotes = '"' * (KEY_CHARACTERS // 2)
    values = [
        "",
        quotes,
        quotes + "a",
        "x",
        start,
        start + "x",
        start + "xa",
        start + "xb",
        start + "y",
        start + "y" * 900,
        5,
        None,
    ]
    documents = [{"id": str(number), "n": 1, "s": chosen.choice(values)} for number in range(120)]
    collection.create_many(documents)
    found = [one for one in documents if ">" not in where or (isinstance(one["s"], str) and one["s"] >= "x")]
    found.sort(key=lambda one: values.index(one["s"]) if one["s"] not in (5, None) else -1 - values.index(one["s"]))
    expected = [one["id"] for one in found]
    if direction == "DESC":
        expected.reverse()
    query = f"SELECT VALUE c.id FROM c {where} ORDER BY c.s {direction}"
    assert list(collection.query(query)) == expected
    for skip in (0, 20, 60):
        assert list(collection.query(f"{query} OFFSET {skip} LIMIT 25")) == expected[skip : skip + 25]
    assert in_pages(collection, query, 7) == expected
    equal = "SELECT VALUE c.id FROM c WHERE c.n = 1 AND c.s = @value"
    for value in values:
        same = [one["id"] for one in documents if one["s"] == value]
        assert list(collection.query(equal, {"value": value})) == same
        if value in ("x", quotes + "a", start + "x"):  # a short one, and two that have others of their kind
            assert in_pages(collection, equal, 3, value=value) == same


def in_pages(collection: Collection, query: str, size: int, **parameters: Any) -> list[Any]:
    """The results of all pages; an index that is there is gone after the first, and comes back after the second."""
    indexing, found = collection.indexing, list[Any]()
    page = collection.query_page(query, parameters, size=size)
    for policy in chain((IndexingPolicy(), indexing), repeat(None)):
        found += page.items
        if page.token is None:
            collection.configure(indexing=indexing)
            return found
        if policy is not None:
            collection.configure(indexing=policy)
        page = collection.query_page(query, parameters, size=size, token=page.token)
    raise AssertionError


def test_they_are_partition_keys(store: Store) -> None:
    texts = store.create_collection("texts", partition_key="/s", indexing=IndexingPolicy(paths=("/s",)))
    keys = [text for text in ASKED if len(text.encode()) < 1000]
    texts.create_many({"id": "a", "s": text} for text in keys)
    assert any(map(is_long, keys))
    for text in keys:
        assert [found["s"] for found in texts.query("SELECT * FROM c", partition=text)] == [text]


def test_a_document_with_one_can_be_written_and_indexed_later(store: Store) -> None:
    texts = store.create_collection("texts", indexing=IndexingPolicy(paths=("/s",)))
    text = STRINGS[-1] + "".join(random.Random(2).choices("abcdefgh", k=20_000))
    assert texts.upsert({"id": "a", "s": text})["s"] == text
    texts.configure(indexing=IndexingPolicy(paths=("/s", ("/s", "/n"))))
    assert [found["id"] for found in texts.query("c.s = @text", {"text": text})] == ["a"]
