"""Etags: a new one for every write, and conditions on them."""

from collections.abc import Callable
from typing import Any

import pytest

import ttlstore
from ttlstore import Collection, DocumentNotFound, PreconditionFailed, Store
from ttlstore.testing import FakeClock

CONDITIONAL: dict[str, Callable[[Collection, Any], Any]] = {
    "upsert": lambda it, etag: it.upsert({"id": "a", "by": "me"}, if_match=etag),
    "replace": lambda it, etag: it.replace({"id": "a", "by": "me"}, if_match=etag),
    "patch": lambda it, etag: it.patch("a", [{"op": "set", "path": "/by", "value": "me"}], if_match=etag),
    "delete": lambda it, etag: it.delete("a", if_match=etag),
}
verbs = pytest.mark.parametrize("verb", CONDITIONAL.values(), ids=CONDITIONAL.keys())


def test_every_write_makes_an_etag_that_was_never_there(archive: Collection) -> None:
    seen = []
    for _ in range(3):  # also after delete and create
        seen.append(archive.create({"id": "a"})["_etag"])
        seen.append(archive.upsert({"id": "a"})["_etag"])
        seen.append(archive.replace({"id": "a"})["_etag"])
        seen.append(archive.patch("a", [])["_etag"])
        seen.append(archive.touch("a")["_etag"])
        archive.upsert_many([{"id": "a"}, {"id": "a"}, {"id": "b"}])
        seen += [archive.read("a")["_etag"], archive.read("b")["_etag"]]
        archive.delete("a")
    assert len(set(seen)) == len(seen)
    assert all(isinstance(etag, str) and etag for etag in seen)


def test_an_etag_is_not_used_again_by_a_store_that_is_opened_again(tmp_path: object, path: str) -> None:
    seen = set()
    for _ in range(3):
        with ttlstore.open(path) as store:
            seen.add(store.ensure_collection("c").upsert({"id": "a"})["_etag"])
    assert len(seen) == 3


def test_reading_does_not_change_the_etag(archive: Collection) -> None:
    etag = archive.create({"id": "a"})["_etag"]
    assert archive.read("a")["_etag"] == archive.read("a")["_etag"] == next(iter(archive))["_etag"] == etag


@verbs
def test_the_present_version_is_changed(archive: Collection, verb: Callable[[Collection, Any], Any]) -> None:
    etag = archive.create({"id": "a", "by": "another"})["_etag"]
    changed = verb(archive, etag)
    if changed is None:
        assert "a" not in archive
    else:
        assert archive.read("a") == changed
        assert changed["by"] == "me"
        assert changed["_etag"] != etag


@verbs
@pytest.mark.parametrize("etag", ["", "another", "*", 5, b"etag", 1.5, "\ud800", {}, "é\0", "a\0b"], ids=repr)
def test_no_other_version_is_changed(
    archive: Collection, clock: FakeClock, verb: Callable[[Collection, Any], Any], etag: Any
) -> None:
    before = archive.create({"id": "a"})
    clock.advance(1)
    with pytest.raises(PreconditionFailed, match="read it again"):
        verb(archive, etag)
    assert archive.read("a") == before


@verbs
def test_an_older_version_is_not_enough(archive: Collection, verb: Callable[[Collection, Any], Any]) -> None:
    old = archive.create({"id": "a"})["_etag"]
    new = archive.touch("a")
    with pytest.raises(PreconditionFailed):
        verb(archive, old)
    assert archive.read("a") == new


@verbs
def test_the_etag_of_a_deleted_document_matches_nothing(
    archive: Collection, verb: Callable[[Collection, Any], Any]
) -> None:
    etag = archive.create({"id": "a"})["_etag"]
    archive.delete("a")
    with pytest.raises((DocumentNotFound, PreconditionFailed)):
        verb(archive, etag)
    again = archive.create({"id": "a"})
    with pytest.raises(PreconditionFailed):
        verb(archive, etag)
    assert list(archive) == [again]


@verbs
def test_the_etag_of_an_expired_document_matches_nothing(
    sessions: Collection, clock: FakeClock, verb: Callable[[Collection, Any], Any]
) -> None:
    etag = sessions.create({"id": "a"})["_etag"]
    clock.advance(10)
    with pytest.raises((DocumentNotFound, PreconditionFailed)):
        verb(sessions, etag)
    assert list(sessions) == []
    sessions.configure(default_ttl=11)
    assert sessions.read("a")["_etag"] == etag, "it was not touched"


def test_of_two_that_read_the_same_version_one_writes(store: Store) -> None:
    counter = store.create_collection("c")
    counter.create({"id": "n", "value": 0})
    mine, yours = counter.read("n"), counter.read("n")
    counter.replace({**mine, "value": 1}, if_match=mine["_etag"])
    with pytest.raises(PreconditionFailed):
        counter.replace({**yours, "value": 1}, if_match=yours["_etag"])
    assert counter.read("n")["value"] == 1
