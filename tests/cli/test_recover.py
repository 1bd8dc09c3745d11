import json

import pytest

from tests.cli.conftest import Run
from ttlstore.testing import FakeClock


@pytest.fixture
def expired(db: str, run: Run, clock: FakeClock) -> str:
    """Three carts that have expired and are not deleted yet, and one that is live."""
    for id in ("a", "b", "c"):
        run("put", db, "carts", json.dumps({"id": id, "items": [id]}))
    clock.advance(3600)
    run("put", db, "carts", '{"id": "live"}')
    return db


def test_recover_lists_what_has_expired_and_can_be_brought_back(expired: str, run: Run) -> None:
    lines = run("recover", expired, "carts").stdout.splitlines()[2:]
    assert [line.split()[0] for line in lines] == ["a", "b", "c"]
    assert '{"items":["a"]}' in lines[0]
    records = [json.loads(line) for line in run("recover", expired, "carts", "--format", "jsonl").stdout.splitlines()]
    assert [record["document"]["id"] for record in records] == ["a", "b", "c"]
    assert records[0]["seconds_left"] == 0


def test_the_list_stops_at_its_limit_and_says_so(expired: str, run: Run) -> None:
    listed = run("recover", expired, "carts", "--limit", "2")
    assert len(listed.stdout.splitlines()) == 2 + 2
    assert listed.stderr == "these are 2, and there are more: see --limit\n"
    assert run("recover", expired, "carts", "--limit", "3").stderr == ""


def test_what_is_brought_back_starts_a_new_life(expired: str, run: Run) -> None:
    back = run("recover", expired, "carts", "a", "b")
    assert back.stdout.splitlines()[0] == (
        "recovered 'a': it expires 1h after its last write, by its collection's default"
    )
    assert json.loads(run("get", expired, "carts", "a").stdout)["items"] == ["a"]
    assert "1h 0m" in run("get", expired, "carts", "b", "--expiry").stdout
    run("get", expired, "carts", "c", code=1)


def test_all_are_brought_back_or_none(expired: str, run: Run) -> None:
    refused = run("recover", expired, "carts", "a", "nope", code=1)
    assert refused.stderr == "Error: there is no document 'nope' in 'carts'\n"
    run("get", expired, "carts", "a", code=1)


def test_a_live_document_needs_no_recovery(expired: str, run: Run) -> None:
    assert "is live: nothing to recover" in run("recover", expired, "carts", "live", code=1).stderr


def test_nothing_to_recover_is_said(db: str, run: Run) -> None:
    assert run("recover", db, "carts").stderr == "no expired documents wait in 'carts'\n"


def test_recovery_takes_the_partition(db: str, run: Run, clock: FakeClock) -> None:
    run("create", db, "orders", "--ttl", "1m", "--partition-key", "/customer")
    run("put", db, "orders", '{"id": "o1", "customer": 5}')
    clock.advance(60)
    assert "partitioned by /customer" in run("recover", db, "orders", "o1", code=1).stderr
    run("recover", db, "orders", "o1", "--partition", "5")
    run("get", db, "orders", "o1", "--partition", "5")
