import csv
import io
import json

import ttlstore
from tests.cli.conftest import Run, named


def test_collections_says_the_settings_in_words(db: str, run: Run) -> None:
    run("create", db, "archive")
    run("create", db, "sessions", "--ttl", "on")
    run("create", db, "orders", "--ttl", "90d", "--partition-key", "/customerId")
    shown = {line.split()[0]: " ".join(line.split()) for line in run("collections", db).stdout.splitlines()[2:]}
    assert shown["archive"].startswith("archive off /id")
    assert shown["carts"].startswith("carts 1h /id")
    assert shown["orders"].startswith("orders 90d /customerId")
    assert shown["sessions"].startswith("sessions on, no default /id")


def test_collections_counts_live_documents_only(db: str, run: Run) -> None:
    with ttlstore.open(db, clock=lambda: 1_700_000_000.0) as store:
        store.collection("carts").create({"id": "long gone"})
    run("put", db, "carts", '{"id": "c1"}')
    assert json.loads(run("collections", db, "--format", "json").stdout)[0]["live_documents"] == 1


def test_every_format_tells_the_same(db: str, run: Run) -> None:
    from_json = json.loads(run("collections", db, "--format", "json").stdout)
    from_lines = [json.loads(line) for line in run("collections", db, "--format", "jsonl").stdout.splitlines()]
    from_csv = list(csv.DictReader(io.StringIO(run("collections", db, "--format", "csv").stdout)))
    assert from_json == from_lines
    assert from_csv[0].keys() == from_json[0].keys()
    assert from_csv[0]["default_ttl"] == "3600"
    assert from_csv[0]["indexed_paths"] == "[]"


def test_no_collections_is_an_empty_list_for_programs_and_a_word_for_people(db: str, run: Run) -> None:
    run("drop", db, "carts", "--yes")
    assert json.loads(run("collections", db, "--format", "json").stdout) == []
    listed = run("collections", db)
    assert (listed.stdout, listed.stderr) == ("", f"no collections in {named(db)}\n")


def test_create_of_a_collection_that_is_there_is_refused(db: str, run: Run) -> None:
    refused = run("create", db, "carts", code=1).stderr
    assert refused == f"Error: there is a collection 'carts' in {named(db)} already\n"


def test_a_life_of_no_time_is_no_setting(db: str, run: Run) -> None:
    refused = run("create", db, "x", "--ttl", "0", code=2).stderr
    assert "a document lives for 1 second at least" in " ".join(refused.split())
    run("ttl", db, "carts", "0s", code=2)


def test_an_index_that_is_there_is_not_added_again(db: str, run: Run) -> None:
    run("index", "add", db, "carts", "/n")
    refused = run("index", "add", db, "carts", "/n", code=1).stderr
    assert refused == "Error: there is an index on /n in 'carts' already\n"


def test_the_mode_without_indexes_asks_to_remove_them_first(db: str, run: Run) -> None:
    run("create", db, "notes")
    run("index", "add", db, "notes", "/n")
    refused = run("index", "mode", db, "notes", "none", code=1).stderr
    assert refused == "Error: mode none has no indexes: remove those of 'notes' first, /n\n"


def test_create_refuses_what_is_no_setting(db: str, run: Run) -> None:
    assert "off, on (no default) or a duration" in run("create", db, "x", "--ttl", "maybe", code=2).stderr


def test_drop_asks_first_and_says_how_much_there_is(db: str, run: Run) -> None:
    run("put", db, "carts", '{"id": "c1"}')
    refused = run("drop", db, "carts", stdin="n\n", code=1)
    assert "Drop 'carts' and its 1 document?" in refused.stderr
    run("get", db, "carts", "c1")
    assert run("drop", db, "carts", stdin="y\n").stdout == "dropped 'carts' with 1 document\n"
    run("get", db, "carts", "c1", code=1)


def test_drop_without_anyone_to_ask_drops_nothing(db: str, run: Run) -> None:
    refused = run("drop", db, "carts", stdin="", code=1).stderr
    assert refused.endswith("\nError: nobody is there to answer: pass --yes to do it unasked\n")
    run("ls", db, "carts")


def test_drop_of_a_collection_that_is_not_there_is_refused(db: str, run: Run) -> None:
    assert "there is no collection 'nope'" in run("drop", db, "nope", "--yes", code=1).stderr


def test_indexes_are_added_listed_and_removed(db: str, run: Run) -> None:
    run("index", "add", db, "carts", "/status")
    run("index", "add", db, "carts", "/address/city", "/total")
    assert run("index", "list", db, "carts").stdout == "mode consistent\n/status\n/address/city /total\n"
    assert "/status, (/address/city /total)" in run("collections", db).stdout
    run("index", "remove", db, "carts", "/address/city", "/total")
    assert run("index", "list", db, "carts").stdout == "mode consistent\n/status\n"


def test_an_index_that_is_not_there_cannot_be_removed(db: str, run: Run) -> None:
    assert "there is no index on /status in 'carts'" in run("index", "remove", db, "carts", "/status", code=1).stderr


def test_an_index_on_something_else_than_a_path_is_refused(db: str, run: Run) -> None:
    assert "got 'status'" in run("index", "add", db, "carts", "status", code=1).stderr


def test_the_indexing_mode_can_be_set(db: str, run: Run) -> None:
    assert "indexing lazy" in run("index", "mode", db, "carts", "lazy").stdout
    assert run("index", "list", db, "carts").stdout == "mode lazy\n"
    assert "TTL must be off" in run("index", "mode", db, "carts", "none", code=1).stderr
