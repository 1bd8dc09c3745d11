"""Patches: operations on parts of a document, all of them or none."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ttlstore import (
    Collection,
    DocumentNotFound,
    InvalidDocument,
    InvalidPatch,
    InvalidTtl,
    PreconditionFailed,
    Store,
)
from ttlstore.testing import FakeClock

DOCUMENT: dict[str, Any] = {
    "id": "a",
    "n": 1,
    "text": "x",
    "nothing": None,
    "inner": {"b": 2, "c": {"d": 3}},
    "list": [10, 20, 30],
    "": {"": "empty"},
    "a/b": 1,
    "m~n": 2,
    "0": "zero",
}


@pytest.fixture
def collection(archive: Collection) -> Collection:
    archive.create(DOCUMENT)
    return archive


def op(op: str, path: str, *value: Any, source: str | None = None) -> dict[str, Any]:
    operation: dict[str, Any] = {"op": op, "path": path}
    if value:
        operation["value"] = value[0]
    if source is not None:
        operation["from"] = source
    return operation


def expected(**changes: Any) -> dict[str, Any]:
    return {**DOCUMENT, **changes}


def without(*names: str) -> dict[str, Any]:
    return {name: value for name, value in DOCUMENT.items() if name not in names}


APPLIES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (op("set", "/n", 5), expected(n=5)),
    (op("set", "/new", [1]), expected(new=[1])),
    (op("set", "/inner/c/d", "deep"), expected(inner={"b": 2, "c": {"d": "deep"}})),
    (op("set", "/list/0", 11), expected(list=[11, 20, 30])),
    (op("set", "/list/2", 33), expected(list=[10, 20, 33])),
    (op("set", "/list/3", 40), expected(list=[10, 20, 30, 40])),
    (op("set", "/list/-", 40), expected(list=[10, 20, 30, 40])),
    (op("set", "/n", None), expected(n=None)),
    (op("set", "/a~1b", 2), {**DOCUMENT, "a/b": 2}),
    (op("set", "/m~0n", 3), {**DOCUMENT, "m~n": 3}),
    (op("set", "/~01", 1), {**DOCUMENT, "~1": 1}),
    (op("set", "//", "x"), {**DOCUMENT, "": {"": "x"}}),
    (op("set", "/0", 1), {**DOCUMENT, "0": 1}),
    (op("set", "/-", 1), {**DOCUMENT, "-": 1}),
    (op("add", "/new", 1), expected(new=1)),
    (op("add", "/n", 2), expected(n=2)),
    (op("add", "/list/0", 5), expected(list=[5, 10, 20, 30])),
    (op("add", "/list/1", 15), expected(list=[10, 15, 20, 30])),
    (op("add", "/list/3", 40), expected(list=[10, 20, 30, 40])),
    (op("add", "/list/-", 40), expected(list=[10, 20, 30, 40])),
    (op("replace", "/n", {"x": 1}), expected(n={"x": 1})),
    (op("replace", "/nothing", 1), expected(nothing=1)),
    (op("replace", "/list/1", 21), expected(list=[10, 21, 30])),
    (op("remove", "/n"), without("n")),
    (op("remove", "/inner/c"), expected(inner={"b": 2})),
    (op("remove", "/list/1"), expected(list=[10, 30])),
    (op("incr", "/n", 4), expected(n=5)),
    (op("incr", "/n", -4), expected(n=-3)),
    (op("incr", "/n", 0.5), expected(n=1.5)),
    (op("incr", "/new", 3), expected(new=3)),
    (op("incr", "/list/0", 1), expected(list=[11, 20, 30])),
    (op("move", "/moved", source="/n"), {**without("n"), "moved": 1}),
    (op("move", "/list/0", source="/list/2"), expected(list=[30, 10, 20])),
    (op("move", "/list/-", source="/n"), {**without("n"), "list": [10, 20, 30, 1]}),
    (op("move", "/inner", source="/inner/c"), expected(inner={"d": 3})),
    (op("move", "/n", source="/n"), expected()),
    (op("set", "/ttl", 60), expected(ttl=60)),
    (op("incr", "/ttl", 60), expected(ttl=60)),
]

REFUSED: list[tuple[Any, str]] = [
    (op("replace", "/missing", 1), "there is no /missing"),
    (op("remove", "/missing"), "there is no /missing"),
    (op("remove", "/list/3"), "out of range"),
    (op("remove", "/list/-"), "index"),
    (op("replace", "/list/3", 1), "out of range"),
    (op("set", "/list/4", 1), "out of range"),
    (op("add", "/list/4", 1), "out of range"),
    (op("add", "/list/-1", 1), "index"),
    (op("add", "/list/01", 1), "index"),
    (op("add", "/list/1.0", 1), "index"),
    (op("add", "/list/\u0661", 1), "index"),
    (op("add", "/list/" + "9" * 5000, 1), "index"),
    (op("set", "/missing/x", 1), "there is no /missing"),
    (op("set", "/list/" + "9" * 5000 + "/x", 1), "there is no /list/9"),
    (op("set", "/text/x", 1), "/text is neither an object nor an array"),
    (op("set", "/nothing/x", 1), "/nothing is neither"),
    (op("incr", "/text", 1), "/text is not a number"),
    (op("incr", "/nothing", 1), "/nothing is not a number"),
    (op("incr", "/n", "1"), "incr takes a number"),
    (op("incr", "/n", True), "incr takes a number"),
    (op("incr", "/list/9", 1), "out of range"),
    (op("move", "/x", source="/missing"), "there is no /missing"),
    (op("move", "/inner/c/x", source="/inner"), "cannot be moved into itself"),
    (op("move", "/nowhere/x", source="/n"), "there is no /nowhere"),
    (op("set", "n", 1), "must start with '/'"),
    (op("set", "", 1), "must start with '/'"),
    (op("set", "/n"), "set takes"),
    (op("remove", "/n", 1), "remove takes"),
    (op("move", "/n", 1), "move takes"),
    ({"op": "set", "path": 1, "value": 1}, "a path is a string"),
    ({"op": "set", "path": None, "value": 1}, "a path is a string"),
    ({"op": "test", "path": "/n", "value": 1}, "op must be one of"),
    ({"op": ["set"], "path": "/n", "value": 1}, "op must be one of"),
    ({"path": "/n", "value": 1}, "op must be one of"),
    ({"op": "set", "path": "/n", "value": 1, "extra": 1}, "set takes"),
    ({"op": "set", "path": "/n", "value": 1, 5: 1}, "set takes"),
    ("set", "an operation is a dict"),
    (None, "an operation is a dict"),
    *(
        (op(verb, path, 1), "cannot be patched")
        for verb in ("set", "add", "replace", "incr")
        for path in ("/id", "/_ts")
    ),
    (op("set", "/_etag", "mine"), "cannot be patched"),
    (op("set", "/id/x", 1), "cannot be patched"),
    (op("remove", "/id"), "cannot be patched"),
    (op("remove", "/_etag"), "cannot be patched"),
    (op("move", "/id", source="/text"), "cannot be patched"),
    (op("move", "/other", source="/id"), "cannot be patched"),
    (op("move", "/other", source="/_ts"), "cannot be patched"),
]


@pytest.mark.parametrize(("operation", "after"), APPLIES, ids=[str(operation) for operation, _ in APPLIES])
def test_an_operation_applies(
    collection: Collection, clock: FakeClock, operation: dict[str, Any], after: dict[str, Any]
) -> None:
    before = collection.read("a")
    clock.advance(1)
    returned = collection.patch("a", [operation])
    assert returned == collection.read("a")
    assert returned.pop("_etag") != before["_etag"]
    assert returned.pop("_ts") == before["_ts"] + 1
    assert returned == after


@pytest.mark.parametrize(("operation", "message"), REFUSED, ids=[str(operation)[:60] for operation, _ in REFUSED])
def test_a_refused_operation_takes_all_others_back(
    collection: Collection, clock: FakeClock, operation: Any, message: str
) -> None:
    before = collection.read("a")
    clock.advance(1)
    with pytest.raises(InvalidPatch) as refused:
        collection.patch("a", [op("set", "/text", "changed"), operation, op("set", "/new", 1)])
    assert message in str(refused.value)
    assert "operation 1" in str(refused.value)
    assert "nothing was changed" in str(refused.value)
    assert collection.read("a") == before


@pytest.mark.parametrize(
    "operations", [None, "set", {}, {"op": "set"}, 5, pytest.param(iter([]), id="iterator")], ids=repr
)
def test_a_patch_is_a_list(collection: Collection, operations: Any) -> None:
    with pytest.raises(InvalidPatch, match="a patch is a list"):
        collection.patch("a", operations)


def test_operations_apply_one_after_the_other(collection: Collection) -> None:
    patched = collection.patch(
        "a",
        [
            op("set", "/basket", {"items": []}),
            op("add", "/basket/items/-", {"n": 1}),
            op("incr", "/basket/items/0/n", 4),
            op("move", "/first", source="/basket/items/0"),
            op("remove", "/basket"),
        ],
    )
    assert patched["first"] == {"n": 5}
    assert "basket" not in patched


def test_the_callers_operations_are_not_changed(collection: Collection) -> None:
    value: dict[str, Any] = {"items": []}
    operations = [op("set", "/basket", value), op("add", "/basket/items/-", 1)]
    collection.patch("a", operations)
    assert value == {"items": []}
    assert collection.patch("a", operations)["basket"] == {"items": [1]}


@pytest.mark.parametrize(
    "value", [float("nan"), pytest.param(object(), id="object"), b"x", {1: 2}, "\ud800", 2**63, (1,), 2**64], ids=repr
)
@pytest.mark.parametrize("verb", ["set", "add", "replace"])
def test_a_value_that_is_not_json_is_refused(collection: Collection, verb: str, value: Any) -> None:
    before = collection.read("a")
    with pytest.raises(InvalidDocument):
        collection.patch("a", [op("set", "/text", "changed"), op(verb, "/n", value)])
    assert collection.read("a") == before


@pytest.mark.parametrize(("present", "by"), [(2**63 - 1, 1), (-(2**63), -1), (1.7e308, 1.7e308)])
def test_a_sum_that_is_not_json_is_refused(collection: Collection, present: float, by: float) -> None:
    before = collection.patch("a", [op("set", "/n", present)])
    with pytest.raises(InvalidDocument, match="/n is"):
        collection.patch("a", [op("incr", "/n", by)])
    assert collection.read("a") == before


def test_a_patch_cannot_nest_a_document_too_deep(collection: Collection) -> None:
    deepen = [op("set", "/n", {"a": {}}), *(op("set", "/n" + "/a" * level, {"a": {}}) for level in range(1, 300))]
    with pytest.raises(InvalidDocument, match="levels deep"):
        collection.patch("a", deepen)
    assert collection.read("a")["n"] == 1


def test_a_path_with_a_lone_surrogate_is_refused(collection: Collection) -> None:
    with pytest.raises((InvalidPatch, InvalidDocument)):
        collection.patch("a", [op("set", "/\ud800", 1)])
    with pytest.raises((InvalidPatch, InvalidDocument)):
        collection.patch("a", [op("move", "/\ud800", source="/n")])
    assert collection.read("a")["n"] == 1


def test_the_ttl_can_be_patched(notes: Collection, clock: FakeClock) -> None:
    notes.create({"id": "a"})
    clock.advance(5)
    notes.patch("a", [op("set", "/ttl", 10)])
    assert notes.expiry("a").seconds_left == 10
    notes.patch("a", [op("incr", "/ttl", 5)])
    assert notes.expiry("a").ttl == 15
    notes.patch("a", [op("remove", "/ttl")])
    assert notes.expiry("a").ttl == -1
    assert notes.expiry("a").source == "collection"


@pytest.mark.parametrize(
    "operation",
    [
        op("set", "/ttl", 0),
        op("set", "/ttl", "10"),
        op("incr", "/ttl", 0.5),
        op("incr", "/ttl", 2**31),
        op("set", "/ttl", {}),
    ],
)
def test_the_ttl_cannot_be_patched_to_what_is_not_valid(notes: Collection, operation: dict[str, Any]) -> None:
    before = notes.create({"id": "a", "ttl": 5})
    with pytest.raises(InvalidTtl):
        notes.patch("a", [operation])
    assert notes.read("a") == before


@pytest.mark.parametrize("path", ["/address/city", "/address", "/address/city/x"])
def test_the_partition_key_cannot_be_patched(store: Store, path: str) -> None:
    people = store.create_collection("people", partition_key="/address/city")
    people.create({"id": "a", "address": {"city": "Rome", "street": "x"}})
    for operation in (op("set", path, "Oslo"), op("remove", path), op("move", path, source="/address/street")):
        with pytest.raises(InvalidPatch, match="/address/city cannot be patched"):
            people.patch("a", [operation], partition="Rome")
    patched = people.patch("a", [op("set", "/address/street", "y"), op("set", "/city", "z")], partition="Rome")
    assert patched["address"] == {"city": "Rome", "street": "y"}


def test_a_patch_needs_a_document_and_obeys_its_etag(collection: Collection) -> None:
    with pytest.raises(DocumentNotFound):
        collection.patch("nobody", [op("set", "/n", 1)])
    before = collection.read("a")
    with pytest.raises(PreconditionFailed):
        collection.patch("a", [op("set", "/n", 2)], if_match="another")
    assert collection.read("a") == before
    assert collection.patch("a", [op("set", "/n", 2)], if_match=before["_etag"])["n"] == 2


paths = st.lists(st.sampled_from(["a", "b", "0", "1", "-", "", "ttl", "id", "~0", "~1"]), max_size=3).map(
    lambda parts: "".join(f"/{part}" for part in parts)
)
small = st.recursive(
    st.none() | st.integers(-2, 2) | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "0", ""]), inner),
    max_leaves=6,
)


@given(
    start=st.dictionaries(st.sampled_from(["a", "b", ""]), small),
    operations=st.lists(
        st.fixed_dictionaries({"op": st.sampled_from(["set", "add", "replace", "incr"]), "path": paths, "value": small})
        | st.fixed_dictionaries({"op": st.just("remove"), "path": paths})
        | st.fixed_dictionaries({"op": st.just("move"), "path": paths, "from": paths}),
        max_size=4,
    ),
)
def test_any_patch_applies_whole_or_not_at_all(
    archive: Collection, start: dict[str, Any], operations: list[dict[str, Any]]
) -> None:
    before = archive.upsert({**start, "id": "a"})
    try:
        after = archive.patch("a", operations)
    except (InvalidPatch, InvalidTtl):
        assert archive.read("a") == before
    else:
        assert archive.read("a") == after
        assert after["_etag"] != before["_etag"]
        assert after["id"] == "a"
