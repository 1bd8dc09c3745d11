import json

import pytest

from tests.cli.conftest import Run
from ttlstore.testing import FakeClock


@pytest.fixture
def filled(db: str, run: Run, clock: FakeClock) -> str:
    """Two carts that are half an hour old, and a fresh one."""
    for id in ("a", "b"):
        run("put", db, "carts", json.dumps({"id": id}))
    clock.advance(1800)
    run("put", db, "carts", '{"id": "c"}')
    return db


def live(db: str, run: Run) -> int:
    count: int = json.loads(run("stats", db, "carts", "--format", "json").stdout)["live_documents"]
    return count


@pytest.mark.parametrize(
    ("setting", "shown"),
    [
        ("off", "off: nothing expires, whatever ttl a document has\n"),
        ("on", "on, no default: only a document with a ttl of its own expires\n"),
        ("90d", "90d: a document expires 90d after its last write, unless it has a ttl of its own\n"),
    ],
)
def test_ttl_says_the_setting_in_words(db: str, run: Run, setting: str, shown: str) -> None:
    run("ttl", db, "carts", setting, "--yes")
    assert run("ttl", db, "carts").stdout == shown


def test_a_change_says_what_it_hides_and_asks_first(filled: str, run: Run) -> None:
    refused = run("ttl", filled, "carts", "10m", stdin="n\n", code=1)
    assert "TTL 1h -> 10m hides 2 documents (20 B) now, revives 0; 1 live afterwards\n" in refused.stderr
    assert "Change the TTL of 'carts'?" in refused.stderr
    assert live(filled, run) == 3
    changed = run("ttl", filled, "carts", "10m", stdin="y\n")
    assert changed.stdout == "'carts': TTL 10m\n"
    assert live(filled, run) == 1


def test_a_change_says_what_it_revives(filled: str, run: Run) -> None:
    run("ttl", filled, "carts", "10m", "--yes")
    assert "hides 0 documents now, revives 2 (20 B); 3 live" in run("ttl", filled, "carts", "off", "--yes").stderr
    assert live(filled, run) == 3


def test_a_dry_run_changes_nothing_and_asks_nothing(filled: str, run: Run) -> None:
    shown = run("ttl", filled, "carts", "10m", "--dry-run")
    assert shown.stdout.startswith("TTL 1h -> 10m hides 2 documents")
    assert shown.stderr == ""
    assert live(filled, run) == 3


def test_a_change_without_anyone_to_ask_is_not_made(filled: str, run: Run) -> None:
    run("ttl", filled, "carts", "10m", stdin="", code=1)
    assert run("ttl", filled, "carts").stdout.startswith("1h:")


def test_a_setting_that_is_none_is_refused(db: str, run: Run) -> None:
    assert "off, on (no default) or a duration" in run("ttl", db, "carts", "soon", code=2).stderr
    run("ttl", db, "carts", "0", "--dry-run", code=2)


def test_a_collection_without_an_index_refuses_a_ttl_even_to_try(db: str, run: Run) -> None:
    run("ttl", db, "carts", "off", "--yes")
    run("index", "mode", db, "carts", "none")
    for option in ("--dry-run", "--yes"):
        assert "needs an index" in run("ttl", db, "carts", "1h", option, code=1).stderr


def test_ttl_of_a_collection_that_is_not_there_is_refused(db: str, run: Run) -> None:
    assert "there is no collection 'nope'" in run("ttl", db, "nope", code=1).stderr


def test_the_store_may_be_left_out(db: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TTLSTORE_DB", db)
    assert run("ttl", "carts").stdout.startswith("1h:")
    run("ttl", "carts", "2h", "--yes")
    assert run("ttl", db, "carts").stdout.startswith("2h:")


def test_a_change_to_what_is_set_already_is_none(db: str, run: Run) -> None:
    assert run("ttl", db, "carts", "1h").stdout == "'carts': TTL 1h as before, so nothing changes\n"
