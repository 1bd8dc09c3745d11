"""What goes in comes out equal, and what is not JSON does not go in."""

import copy
import math
import uuid
from collections import OrderedDict
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ttlstore import Collection, DocumentExists, DocumentNotFound, InvalidDocument, Store
from ttlstore.document import MAX_DEPTH
from ttlstore.testing import FakeClock

MAX_INT, MIN_INT = 2**63 - 1, -(2**63)

texts = st.text()  # any Unicode but lone surrogates
scalars = (
    st.none() | st.booleans() | st.integers(MIN_INT, MAX_INT) | st.floats(allow_nan=False, allow_infinity=False) | texts
)
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=25)
documents = st.dictionaries(texts.filter(lambda name: name not in ("id", "ttl", "_ts", "_etag")), values)
ids = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=255)


def exactly(value: Any) -> Any:
    """Equal only if the types are too: in Python True == 1 == 1.0, and -0.0 == 0.0."""
    if isinstance(value, dict):
        return {name: exactly(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [exactly(inner) for inner in value]
    return type(value), value, math.copysign(1, value) if isinstance(value, float) else None


def nested(levels: int) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for _ in range(levels - 1):
        document = {"a": document}
    return document


# --- what goes in comes out -------------------------------------------------------------------------------------------


@given(document=documents, verb=st.sampled_from(["create", "upsert", "replace", "create_many", "upsert_many"]))
def test_what_goes_in_comes_out_equal(archive: Collection, document: dict[str, Any], verb: str) -> None:
    document = {**document, "id": str(uuid.uuid4())}
    original = copy.deepcopy(document)
    if verb == "replace":
        archive.create({"id": document["id"], "replaced": True})
    written = getattr(archive, verb)([document] if verb.endswith("many") else document)
    read = archive.read(document["id"])
    assert exactly(document) == exactly(original), "the caller's document was changed"
    if not verb.endswith("many"):
        assert exactly(written) == exactly(read)
    del read["_ts"], read["_etag"]
    assert exactly(read) == exactly(document)


@given(document=documents)
def test_touching_changes_nothing_but_time_and_version(
    archive: Collection, clock: FakeClock, document: dict[str, Any]
) -> None:
    before = archive.create({**document, "id": str(uuid.uuid4())})
    clock.advance(1)
    after = archive.touch(before["id"])
    assert after["_etag"] != before["_etag"]
    assert after["_ts"] == before["_ts"] + 1
    assert exactly({**after, "_ts": 0, "_etag": ""}) == exactly({**before, "_ts": 0, "_etag": ""})


@pytest.mark.parametrize(
    "value",
    [
        *(MAX_INT, MIN_INT, 0, -0.0, 1.0, 1e22, 1e-320, 1.7976931348623157e308, 5e-324, 0.1 + 0.2, 2.0**63, 1e19),
        *("", "\0", "\x7f", "\u2028", "😀", "e\u0301", "\ufeff", "\ufffe", "'; DROP TABLE documents; --", "9" * 40),
        *([], {}, [[]], {"": {"": ""}}, [None], {"a/b~c": 1}, {"__proto__": 1}, None, True, False),
    ],
    ids=repr,
)
def test_values_at_the_edges_come_back_exactly(archive: Collection, value: Any) -> None:
    archive.create({"id": "a", "value": value})
    assert exactly(archive.read("a")["value"]) == exactly(value)


def test_the_order_of_properties_is_kept(archive: Collection) -> None:
    archive.create({"z": 1, "id": "a", "b": 2, "a": 3})
    assert [name for name in archive.read("a") if not name.startswith("_")] == ["z", "id", "b", "a"]


def test_what_a_write_returns_shares_nothing_with_what_it_was_given(archive: Collection) -> None:
    document = {"id": "a", "list": [1]}
    returned = archive.create(document)
    returned["list"].append(2)
    document["list"].append(3)  # type: ignore[attr-defined]
    assert archive.read("a")["list"] == [1]


def test_system_properties_on_the_way_in_are_ignored(archive: Collection, clock: FakeClock) -> None:
    created = archive.create({"id": "a", "_ts": 5, "_etag": "mine"})
    assert created["_ts"] == int(clock())
    assert created["_etag"] != "mine"
    clock.advance(1)
    replaced = archive.replace({**created, "x": 1})
    assert replaced["_ts"] == created["_ts"] + 1
    assert archive.read("a") == replaced


def test_system_properties_may_be_anything_on_the_way_in(archive: Collection) -> None:
    archive.upsert({"id": "a", "_ts": object(), "_etag": float("nan")})
    assert archive.read("a")["_etag"] != "nan"


def test_dictionaries_of_other_kinds_are_stored_as_objects(archive: Collection) -> None:
    archive.create(OrderedDict(id="a", inner=OrderedDict(b=1)))
    assert archive.read("a")["inner"] == {"b": 1}


def test_a_large_document_comes_back(archive: Collection) -> None:
    document = {"id": "a", "text": "ä" * 2_000_000}
    archive.create(document)
    assert archive.read("a")["text"] == document["text"]


# --- what is not JSON -------------------------------------------------------------------------------------------------

cycle: dict[str, Any] = {}
cycle["b"] = [cycle]

REFUSED: list[tuple[Any, str]] = [
    ({"a": float("nan")}, "/a is nan"),
    ({"a": [1, {"b": float("inf")}]}, "/a/1/b is inf"),
    ({"a": -math.inf}, "/a is -inf"),
    ({"a": datetime(2024, 1, 1, tzinfo=UTC)}, "/a is a datetime"),
    ({"a": datetime(2024, 1, 1).date()}, "/a is a date"),
    ({"a": timedelta(1)}, "/a is a timedelta"),
    ({"a": b"bytes"}, "/a is a bytes"),
    ({"a": uuid.UUID(int=1)}, "/a is a UUID"),
    ({"a": Decimal(1)}, "/a is a Decimal"),
    ({"a": (1, 2)}, "/a is a tuple"),
    ({"a": {1, 2}}, "/a is a set"),
    ({"a": 1j}, "/a is a complex"),
    ({"a": object()}, "/a is a object"),
    ({"a": {1: 2}}, "/a has a key that is not a string: 1"),
    ({"a": {None: 2}}, "/a has a key that is not a string: None"),
    ({1: 2}, "the document has a key that is not a string: 1"),
    ({"a": MAX_INT + 1}, "/a is an integer beyond 64 bits"),
    ({"a": [MIN_INT - 1]}, "/a/0 is an integer beyond 64 bits"),
    ({"a": 2**64}, "/a is an integer beyond 64 bits"),
    ({"a": 10**5000}, "/a is an integer beyond 64 bits"),
    ({"a": "\ud800"}, "/a has a lone surrogate"),
    ({"a": {"\udfff": 1}}, "/a has a key with a lone surrogate"),
    ({"a~/b": {"c d": float("nan")}}, "/a~0~1b/c d is nan"),
    ({"a": cycle}, "/a/b/0/… is nested more than 254 levels deep, or contains itself"),
]


@pytest.mark.parametrize(("part", "message"), REFUSED, ids=[message for _, message in REFUSED])
@pytest.mark.parametrize("verb", ["create", "upsert", "replace", "create_many", "upsert_many"])
def test_what_is_not_json_is_refused_by_its_path(
    archive: Collection, verb: str, part: dict[str, Any], message: str
) -> None:
    before = archive.create({"id": "a"})
    document = {"id": "b" if verb.startswith("create") else "a", **part}
    with pytest.raises(InvalidDocument) as refused:
        getattr(archive, verb)([document] if verb.endswith("many") else document)
    assert message in str(refused.value)
    assert list(archive) == [before]


@pytest.mark.parametrize(
    "document", [None, [], "{}", 1, b"{}", [("id", "a")], pytest.param(object(), id="object")], ids=repr
)
def test_a_document_is_a_dict(archive: Collection, document: Any) -> None:
    for verb in (archive.create, archive.upsert, archive.replace):
        with pytest.raises(InvalidDocument, match="must be a dict"):
            verb(document)


def test_nesting_is_refused_from_one_level_too_many(archive: Collection) -> None:
    deepest = {"id": "a", **nested(MAX_DEPTH)}
    archive.create(deepest)
    assert archive.read("a")["a"] == deepest["a"]
    archive.touch("a")
    with pytest.raises(InvalidDocument, match="/a/a/a/… is nested more than 254 levels deep"):
        archive.create({"id": "b", **nested(MAX_DEPTH + 1)})
    with pytest.raises(InvalidDocument, match="levels deep"):
        archive.create({"id": "b", **nested(100_000)})
    assert archive.count() == 1


def test_a_float_of_another_kind_is_refused_by_its_path(archive: Collection) -> None:
    class Degrees(float):
        pass

    with pytest.raises(InvalidDocument, match="/a/0 is a Degrees"):
        archive.create({"id": "a", "a": [Degrees(1.5)]})


# --- ids --------------------------------------------------------------------------------------------------------------


@given(id=ids)
def test_any_text_is_an_id(archive: Collection, id: str) -> None:
    archive.upsert({"id": id, "x": id})
    assert archive.read(id)["id"] == id
    assert id in archive
    assert archive.touch(id)["x"] == id
    archive.delete(id)
    assert id not in archive
    assert archive.get(id) is None


@pytest.mark.parametrize("id", ["a" * 1023, "ä" * 511, "😀" * 255 + "abc"])
def test_the_longest_ids_are_taken(archive: Collection, id: str) -> None:
    assert len(id.encode()) in (1022, 1023)
    archive.create({"id": id})
    assert archive.read(id)["id"] == id


REFUSED_IDS = [
    ("", "empty"),
    ("a" * 1024, "1023 bytes"),
    ("ä" * 512, "1023 bytes"),
    ("😀" * 256, "1023 bytes"),
    ("a\0b", "NUL"),
    ("\0", "NUL"),
    ("ä\0", "NUL"),
    ("\ud800", "surrogate"),
    (None, "must be a string, got None"),
    (1, "must be a string, got 1"),
    (True, "must be a string, got True"),
    (b"a", "must be a string|is a bytes"),
    (["a"], "must be a string"),
]


@pytest.mark.parametrize(("id", "message"), REFUSED_IDS, ids=[repr(id)[:20] for id, _ in REFUSED_IDS])
def test_an_invalid_id_is_refused_by_every_verb(archive: Collection, id: Any, message: str) -> None:
    for verb in (archive.create, archive.upsert, archive.replace):
        with pytest.raises(InvalidDocument, match=message):
            verb({"id": id})
    for verb in (archive.read, archive.get, archive.touch, archive.delete, archive.expiry):  # type: ignore[assignment]
        with pytest.raises(InvalidDocument, match=message):
            verb(id)
    with pytest.raises(InvalidDocument, match=message):
        archive.patch(id, [])
    assert archive.count() == 0


def test_an_id_is_made_up_for_a_new_document_that_has_none(archive: Collection) -> None:
    made_up = [archive.create({"n": n})["id"] for n in range(3)]
    assert len(set(made_up)) == 3
    assert archive.read(made_up[1])["n"] == 1
    assert archive.create_many([{}, {}]) == 2
    assert archive.count() == 5
    with pytest.raises(InvalidDocument, match="id"):
        archive.upsert({})
    with pytest.raises(InvalidDocument, match="id"):
        archive.replace({})


def test_ids_are_told_apart_by_every_code_point(archive: Collection) -> None:
    alike = [
        "a",
        "A",
        "á",
        "a\u0301",
        " a",
        "a ",
        "\u0430",
        "\uff41",
        "1",
        "01",
        "1.0",
        "/a",
        "%61",
        "a%",
        "a_",
        "a'",
        'a"',
    ]
    archive.create_many({"id": id} for id in alike)
    assert archive.count() == len(alike)
    for id in alike:
        assert archive.read(id)["id"] == id


# --- the plain verbs --------------------------------------------------------------------------------------------------


def test_create_refuses_a_document_that_is_there(archive: Collection) -> None:
    before = archive.create({"id": "a", "x": 1})
    with pytest.raises(DocumentExists, match="'a' in 'archive'"):
        archive.create({"id": "a", "x": 2})
    assert archive.read("a") == before


def test_replace_needs_a_document_and_upsert_does_not(archive: Collection) -> None:
    with pytest.raises(DocumentNotFound, match="'a' in 'archive'"):
        archive.replace({"id": "a"})
    archive.upsert({"id": "a", "x": 1, "y": 1})
    archive.upsert({"id": "a", "x": 2})
    assert "y" not in archive.read("a")
    archive.replace({"id": "a", "z": 3})
    assert set(archive.read("a")) == {"id", "z", "_ts", "_etag"}
    assert archive.count() == 1


def test_a_deleted_document_is_gone(archive: Collection) -> None:
    archive.create({"id": "a"})
    archive.delete("a")
    assert archive.get("a") is None
    assert list(archive) == []
    with pytest.raises(DocumentNotFound):
        archive.delete("a")


def test_iteration_comes_in_order_of_the_first_write_and_sees_every_page(archive: Collection) -> None:
    expected = [f"{n * 7919 % 5000:04}" for n in range(2500)]
    archive.create_many({"id": id, "text": "x" * 200} for id in expected)
    archive.upsert({"id": expected[7], "again": True})
    assert [document["id"] for document in archive] == expected


def test_documents_may_be_written_while_iterating(archive: Collection) -> None:
    archive.create_many({"id": str(n)} for n in range(2000))
    seen = []
    for document in archive:
        seen.append(document["id"])
        if len(seen) <= 50:
            archive.upsert({**document, "seen": True})
            archive.delete(str(2000 - len(seen)))
    assert seen == [str(n) for n in range(1950)], "each that was there all the time, once"


def test_an_object_of_another_type_is_in_no_collection(archive: Collection) -> None:
    archive.create({"id": "1"})
    assert 1 not in archive
    assert None not in archive
    assert {"id": "1"} not in archive


def test_collections_do_not_share_documents(store: Store) -> None:
    one, two = store.create_collection("one"), store.create_collection("two")
    one.create({"id": "a", "of": "one"})
    two.create({"id": "a", "of": "two"})
    one.delete("a")
    assert two.read("a")["of"] == "two"
    assert (one.count(), two.count()) == (0, 1)
