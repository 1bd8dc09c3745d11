"""Moving a store by the command line."""

import json
import os
from collections.abc import Callable

import pytest

from tests.cli.conftest import Run, named
from tests.kinds import on_a_file, on_postgres
from ttlstore import copying
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
    assert ", 0 of them new or changed" in run("copy", db, postgres_url).stdout
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
    assert "copied 1 document in 1 collection, 1 of them new" in run("copy", db, elsewhere).stdout
    assert run("get", elsewhere, "carts", "a").stdout == run("get", db, "carts", "a").stdout
    clock.advance(3000)
    run("get", elsewhere, "carts", "a", code=1)
