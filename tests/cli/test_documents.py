import json
from pathlib import Path

import pytest

import ttlstore
from tests.cli.conftest import Run

CART = '{"id": "c1", "items": ["tea"]}'


def test_put_prints_the_document_as_stored(db: str, run: Run) -> None:
    stored = json.loads(run("put", db, "carts", CART).stdout)
    assert stored["items"] == ["tea"]
    assert stored["_etag"]


def test_get_prints_the_document_that_put_stored(db: str, run: Run) -> None:
    stored = run("put", db, "carts", CART).stdout
    assert run("get", db, "carts", "c1").stdout == stored


def test_put_reads_a_file(db: str, run: Run) -> None:
    Path("cart.json").write_text(CART)
    assert json.loads(run("put", db, "carts", "cart.json").stdout)["id"] == "c1"


def test_put_reads_stdin(db: str, run: Run) -> None:
    for given in ([], ["-"]):
        assert json.loads(run("put", db, "carts", *given, stdin=CART).stdout)["id"] == "c1"


def test_put_sets_a_ttl_that_is_written_as_people_do(db: str, run: Run) -> None:
    assert json.loads(run("put", db, "carts", CART, "--ttl", "1h30m").stdout)["ttl"] == 5400
    assert json.loads(run("put", db, "carts", CART, "--ttl", "never").stdout)["ttl"] == -1


def test_put_of_something_that_is_neither_json_nor_a_file_says_so(db: str, run: Run) -> None:
    assert (
        "missing.json cannot be read (No such file or directory)"
        in run("put", db, "carts", "missing.json", code=1).stderr
    )
    assert run("put", db, "carts", "{broken", code=1).stderr.startswith("Error: the argument is not JSON: ")
    assert run("put", db, "carts", stdin="[", code=1).stderr.startswith("Error: stdin is not JSON: ")


def test_put_of_an_invalid_document_names_the_value_and_the_rule(db: str, run: Run) -> None:
    assert run("put", db, "carts", '{"id": ""}', code=1).stderr == "Error: id must not be empty\n"
    assert "got 0" in run("put", db, "carts", '{"id": "c1", "ttl": 0}', code=1).stderr


def test_get_of_a_document_that_is_not_there_is_exit_code_1(db: str, run: Run) -> None:
    assert run("get", db, "carts", "c9", code=1).stderr == "Error: there is no document 'c9' in 'carts'\n"


def test_get_expiry_shows_why_and_when(db: str, run: Run) -> None:
    run("put", db, "carts", CART)
    shown = run("get", db, "carts", "c1", "--expiry").stdout
    assert "expires 1h after its last write, by its collection's default" in shown
    assert "59m 59s" in shown


def test_get_expiry_of_a_document_that_never_expires_shows_no_time(db: str, run: Run) -> None:
    run("put", db, "carts", CART, "--ttl", "never")
    assert run("get", db, "carts", "c1", "--expiry").stdout == "why  never expires, by its own ttl\n"


def test_get_at_a_time_to_come_finds_what_will_be_live_then(db: str, run: Run) -> None:
    run("put", db, "carts", CART)
    run("get", db, "carts", "c1", "--at", "+59m")
    run("get", db, "carts", "c1", "--at", "+1h1s", code=1)
    run("get", db, "carts", "c1")  # and looking ahead changed nothing


def test_the_past_cannot_be_shown(db: str, run: Run) -> None:
    assert "2020-01-01 is in the past" in run("get", db, "carts", "c1", "--at", "2020-01-01", code=2).stderr


def test_patch_changes_parts_of_a_document(db: str, run: Run) -> None:
    run("put", db, "carts", CART)
    patch = '[{"op": "add", "path": "/items/-", "value": "milk"}]'
    assert json.loads(run("patch", db, "carts", "c1", patch).stdout)["items"] == ["tea", "milk"]
    assert json.loads(run("patch", db, "carts", "c1", stdin=patch).stdout)["items"] == ["tea", "milk", "milk"]


def test_a_patch_that_does_not_apply_is_refused(db: str, run: Run) -> None:
    run("put", db, "carts", CART)
    assert "there is no /nope" in run("patch", db, "carts", "c1", '[{"op": "remove", "path": "/nope"}]', code=1).stderr


def test_touch_says_how_long_the_document_lives_now(db: str, run: Run) -> None:
    run("put", db, "carts", CART)
    assert run("touch", db, "carts", "c1").stdout.startswith("touched 'c1': it expires 1h after its last write")
    run("touch", db, "carts", "c9", code=1)


def test_delete_deletes_once(db: str, run: Run) -> None:
    run("put", db, "carts", CART)
    assert run("delete", db, "carts", "c1").stdout == "deleted 'c1' from 'carts'\n"
    run("delete", db, "carts", "c1", code=1)


def test_a_partition_is_read_as_json_or_else_as_text(db: str, run: Run) -> None:
    with ttlstore.open(db) as store:
        orders = store.create_collection("orders", partition_key="/customer")
        for customer in ("anna", 5, None):
            orders.create({"id": "o1", "customer": customer})
    for text, customer in (("anna", "anna"), ("5", 5), ("null", None)):
        assert json.loads(run("get", db, "orders", "o1", "--partition", text).stdout)["customer"] == customer
    assert "partitioned by /customer" in run("get", db, "orders", "o1", code=1).stderr


def test_a_document_without_an_id_is_refused_as_such(db: str, run: Run) -> None:
    assert "the document has no id: it needs one" in run("put", db, "carts", '{"n": 1}', code=1).stderr
    assert "record 1: the document has no id" in run("import", db, "carts", stdin='{"n": 1}\n', code=1).stderr


@pytest.mark.parametrize(
    ("command", "given", "expected"),
    [
        ("put", "[1]", "a document is a JSON object such as "),
        ("put", '"c1"', "a document is a JSON object such as "),
        ("patch", '{"op": "remove", "path": "/a"}', "a patch is a JSON list such as "),
    ],
)
def test_json_of_another_kind_is_not_taken_for_a_file(
    db: str, run: Run, command: str, given: str, expected: str
) -> None:
    id = ("c1",) if command == "patch" else ()
    refused = run(command, db, "carts", *id, given, code=1).stderr
    assert expected in refused
    assert "and the argument is something else" in refused
    assert "and stdin is something else" in run(command, db, "carts", *id, "-", stdin=given, code=1).stderr


@pytest.mark.parametrize("ttl", ["0", "bad"])
def test_a_ttl_that_is_none_is_wrong_usage_and_says_what_there_is(db: str, run: Run, ttl: str) -> None:
    refused = run("put", db, "carts", '{"id": "c1"}', "--ttl", ttl, code=2).stderr
    assert "a ttl is never or a duration" in " ".join(refused.split())


def test_a_partition_that_is_missing_is_asked_for_by_its_option(db: str, run: Run) -> None:
    run("create", db, "orders", "--partition-key", "/customer")
    assert run("get", db, "orders", "1", code=1).stderr.endswith("pass --partition\n")
