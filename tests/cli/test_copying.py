"""Moving a store by the command line."""

import json
import os
from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.conftest import Run, named
from tests.kinds import on_a_file, on_postgres
from ttlstore import copying, mirroring
from ttlstore.engine import Progress
from ttlstore.testing import FakeClock


@on_a_file
def test_a_store_moves_to_postgresql_and_back_with_the_life_of_its_documents(
    db: str, postgres_url: str, run: Run, clock: FakeClock
) -> None:
    run("create", db, "moving", "--ttl", "1h")
    run("put", db, "moving", '{"id": "a", "n": 1}')
    clock.advance(600)
    assert "copied" in run("copy", db, postgres_url).stdout
    assert "copied 0 of " in run("copy", db, postgres_url).stdout
    assert "copied" in run("copy", postgres_url, "back.db").stdout
    for store in (db, postgres_url, "back.db"):
        assert json.loads(run("get", store, "moving", "a").stdout)["n"] == 1
    clock.advance(3000)
    for store in (db, postgres_url, "back.db"):
        run("get", store, "moving", "a", code=1)


def test_an_interrupted_copy_says_that_it_can_go_on(db: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, progress: Progress, **__: object) -> None:
        progress(3, 5)
        raise KeyboardInterrupt

    monkeypatch.setattr(copying, "copy", interrupted)
    assert "3 documents in the target; start it again" in run("copy", db, "copy.db", code=130).stderr


def test_deletes_are_carried_over_where_that_is_asked_for(db: str, elsewhere: str, run: Run, clock: FakeClock) -> None:
    for id in "abc":
        run("put", db, "carts", f'{{"id": "{id}"}}')
    assert "more than the source" not in run("copy", db, elsewhere).stdout
    clock.advance(1)
    run("delete", db, "carts", "a")
    run("delete", db, "carts", "b")
    assert run("copy", db, elsewhere).stdout.splitlines() == [
        "copied 0 of 1 document in 1 collection; the target has the others",
        "the target has 2 documents more than the source: deletes are carried over by --mirror alone",
    ]
    refused = run("copy", db, elsewhere, "--mirror", stdin="n\n", code=1)
    assert "Delete 2 documents from the target, which the source does not have? [y/N]" in refused.stderr
    run("get", elsewhere, "carts", "a")
    done = run("copy", db, elsewhere, "--mirror", stdin="y\n").stdout
    assert "deleted 2 documents that the source does not have\n" in done
    run("get", elsewhere, "carts", "a", code=1)
    assert run("get", elsewhere, "carts", "c").stdout == run("get", db, "carts", "c").stdout
    assert "deleted 0 documents" in run("copy", db, elsewhere, "--mirror").stdout, "nothing to ask"


def test_a_mirror_says_what_it_left(
    db: str, elsewhere: str, run: Run, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("put", db, "carts", '{"id": "a"}')
    run("copy", db, elsewhere)
    clock.advance(1)
    run("delete", db, "carts", "a")
    copy = copying.copy

    def written_meanwhile(*arguments: Any, **options: Any) -> copying.Copied:
        run("put", elsewhere, "carts", '{"id": "new"}')
        return copy(*arguments, **options)

    monkeypatch.setattr(copying, "copy", written_meanwhile)
    done = run("copy", db, elsewhere, "--mirror", "--yes").stdout
    assert "deleted 1 document that the source does not have, and left 1 that was written since the copy began" in done
    run("get", elsewhere, "carts", "new")


def test_a_mirror_that_is_interrupted_says_where_it_is(
    db: str, elsewhere: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(mirroring.Mirror, "survey", interrupted)
    run("put", db, "carts", '{"id": "a"}')
    assert "interrupted: all is copied" in run("copy", db, elsewhere, "--mirror", code=130).stderr


@on_a_file
@pytest.mark.parametrize("target", ["app.db", "./app.db", "sqlite:///app.db", "link.db"])
def test_a_store_is_not_copied_onto_itself(db: str, run: Run, target: str) -> None:
    os.symlink(db, "link.db")
    assert "is the store itself: name another place" in run("copy", db, target, code=1).stderr


SPELLINGS: list[Callable[[str], str]] = [
    lambda url: url,
    lambda url: url.replace("postgresql:", "postgresql+psycopg:"),
    lambda url: f"{url}&application_name=another",
    lambda url: url.replace("&schema=", "/&schema="),  # of the folder of its socket
]


@on_postgres
@pytest.mark.parametrize("spell", SPELLINGS, ids=["the same", "a driver", "an option", "a folder"])
def test_a_store_on_a_server_is_not_copied_onto_itself(db: str, run: Run, spell: Callable[[str], str]) -> None:
    refused = run("copy", db, spell(db), code=1).stderr
    assert refused == f"Error: {named(spell(db))} is the store itself: name another place to copy it to\n"


def test_a_store_is_copied_to_another_of_its_kind(db: str, elsewhere: str, run: Run, clock: FakeClock) -> None:
    run("put", db, "carts", '{"id": "a"}')
    clock.advance(600)
    assert run("copy", db, elsewhere).stdout == "copied 1 document in 1 collection\n"
    assert run("get", elsewhere, "carts", "a").stdout == run("get", db, "carts", "a").stdout
    clock.advance(3000)
    run("get", elsewhere, "carts", "a", code=1)
