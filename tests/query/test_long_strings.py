"""Strings longer than an entry of an index: indexed or not, on every engine, what is found is the same."""

import operator
import random
from collections.abc import Callable
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
    for sign in ("x", "\U0001f600", "\x01"):
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
