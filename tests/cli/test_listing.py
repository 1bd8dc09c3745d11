import json

import pytest

import ttlstore
from tests.cli.conftest import Run, named


@pytest.fixture
def filled(db: str) -> str:
    with ttlstore.open(db) as store:
        carts = store.collection("carts")
        for id, ttl in (("a", None), ("b", 60), ("c", -1)):
            carts.create({"id": id, "ttl": ttl, "items": [id]})
    return db


def ids(output: str) -> list[str]:
    return [json.loads(line)["document"]["id"] for line in output.splitlines()]


def test_ls_shows_the_newest_first_with_the_time_left(filled: str, run: Run) -> None:
    first, second, third = run("ls", filled, "carts").stdout.splitlines()[2:]
    assert first.split()[0] == "c"
    assert "never" in first
    assert '{"items":["c"]}' in first
    assert second.split()[0] == "b"
    assert "59s" in second
    assert third.split()[0] == "a"
    assert "59m 59s" in third


def test_ls_stops_at_its_limit(filled: str, run: Run) -> None:
    assert ids(run("ls", filled, "carts", "--limit", "2", "--format", "jsonl").stdout) == ["c", "b"]


def test_ls_tells_what_expires_within_a_time(filled: str, run: Run) -> None:
    assert ids(run("ls", filled, "carts", "--expiring-within", "2m", "--format", "jsonl").stdout) == ["b"]


def test_ls_at_a_time_to_come_leaves_out_what_will_be_gone(filled: str, run: Run) -> None:
    assert ids(run("ls", filled, "carts", "--at", "+2m", "--format", "jsonl").stdout) == ["c", "a"]


def test_ls_of_a_partition_leaves_the_others_out(db: str, run: Run) -> None:
    with ttlstore.open(db) as store:
        orders = store.create_collection("orders", partition_key="/customer")
        orders.create_many([{"id": "1", "customer": "anna"}, {"id": "2", "customer": "ben"}])
    assert ids(run("ls", db, "orders", "--partition", "anna", "--format", "jsonl").stdout) == ["1"]


def test_ls_of_nothing_says_so(db: str, run: Run) -> None:
    assert run("ls", db, "carts").stderr == "no documents in 'carts'\n"
    assert "there is no collection 'nope'" in run("ls", db, "nope", code=1).stderr


def test_what_a_document_contains_cannot_control_the_terminal(db: str, run: Run) -> None:
    with ttlstore.open(db) as store:
        store.collection("carts").create({"id": "\x1b[31mred\x9b", "markup": "[bold]"})
    shown = run("ls", db, "carts").stdout
    assert r"\x1b[31mred\x9b" in shown
    assert "[bold]" in shown
    assert "\x1b" not in shown


def test_a_collection_that_is_not_there_is_answered_with_those_that_are(db: str, run: Run) -> None:
    refused = f"Error: there is no collection 'cart' in {named(db)}"
    assert run("ls", db, "cart", code=1).stderr == f"{refused}: it has 'carts'\n"
    for number in range(10):
        run("create", db, f"c{number}")
    assert run("ls", db, "cart", code=1).stderr == f"{refused}\n"
