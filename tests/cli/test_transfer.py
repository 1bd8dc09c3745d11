import gzip
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import ttlstore
from tests.cli.conftest import Run
from ttlstore.testing import FakeClock

LINES = '{"id": "a", "n": 1}\n{"id": "b", "n": 2}\n'


def contents(db: str) -> dict[str, int]:
    with ttlstore.open(db) as store:
        return {document["id"]: document["n"] for document in store.collection("carts")}


def test_import_reads_json_lines_from_a_pipe(db: str, run: Run) -> None:
    assert run("import", db, "carts", stdin=LINES).stderr.startswith("imported 2 documents into 'carts' in ")
    assert contents(db) == {"a": 1, "b": 2}


def test_import_is_silent_on_stdout_and_draws_no_bar_where_nobody_watches(db: str, run: Run) -> None:
    done = run("import", db, "carts", stdin=LINES)
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["carts.jsonl", "carts.json", "carts.jsonl.gz", "carts.json.gz"])
def test_what_is_exported_can_be_imported(db: str, run: Run, name: str) -> None:
    run("import", db, "carts", stdin=LINES)
    assert run("export", db, "carts", name).stderr == "exported 2 documents of 'carts'\n"
    run("create", db, "copy")
    run("import", db, "copy", name)
    with ttlstore.open(db) as store:
        assert [document["n"] for document in store.collection("copy")] == [1, 2]


def test_the_name_of_an_export_says_how_it_is_written(db: str, run: Run) -> None:
    run("import", db, "carts", stdin=LINES)
    run("export", db, "carts", "carts.json")
    assert [document["id"] for document in json.loads(Path("carts.json").read_text())] == ["a", "b"]
    run("export", db, "carts", "carts.jsonl.gz")
    with gzip.open("carts.jsonl.gz") as lines:
        assert [json.loads(line)["id"] for line in lines] == ["a", "b"]


def test_export_to_a_pipe_is_json_lines(db: str, run: Run) -> None:
    run("import", db, "carts", stdin=LINES)
    exported = [json.loads(line) for line in run("export", db, "carts").stdout.splitlines()]
    assert [document["n"] for document in exported] == [1, 2]
    assert all(document["_ts"] and document["_etag"] for document in exported)


def test_an_empty_collection_is_exported_as_nothing(db: str, run: Run) -> None:
    assert run("export", db, "carts").stdout == ""
    run("export", db, "carts", "empty.json")
    assert json.loads(Path("empty.json").read_text()) == []
    run("import", db, "carts", "empty.json")


def test_export_leaves_out_what_has_expired(db: str, run: Run) -> None:
    with ttlstore.open(db, clock=lambda: 1_700_000_000.0) as store:
        store.collection("carts").create({"id": "gone"})
    assert run("export", db, "carts").stdout == ""


def test_an_export_that_cannot_be_written_is_refused_and_leaves_nothing(db: str, run: Run) -> None:
    refused = run("export", db, "carts", "nowhere/carts.jsonl", code=1)
    assert refused.stderr == "Error: nowhere/carts.jsonl cannot be written: No such file or directory\n"


def test_an_import_starts_every_countdown_anew(db: str, run: Run, clock: FakeClock) -> None:
    run("import", db, "carts", stdin=f'{{"id": "a", "_ts": {int(clock()) - 1800}, "_etag": "x"}}\n')
    clock.advance(1)
    assert "59m 59s" in run("get", db, "carts", "a", "--expiry").stdout


def test_an_import_can_be_repeated(db: str, run: Run) -> None:
    run("import", db, "carts", stdin=LINES)
    run("import", db, "carts", stdin=LINES)
    assert contents(db) == {"a": 1, "b": 2}


def test_an_import_stops_at_a_bad_line_and_says_how_to_go_on(db: str, run: Run) -> None:
    stopped = run("import", db, "carts", stdin=LINES + "\n{broken\n" + '{"id": "c", "n": 3}\n', code=1)
    assert stopped.stderr.startswith("Error: record 4: not JSON: ")
    assert "--errors FILE" in stopped.stderr
    assert "2 documents stored; continue with --skip 3" in stopped.stderr
    assert contents(db) == {"a": 1, "b": 2}


def test_an_import_goes_past_bad_lines_and_tells_which(db: str, run: Run) -> None:
    bad = ["{broken", '{"id": 5}', '{"id": "x", "ttl": 0}', "[1]", '{"n": 1}']
    mixed = "\n".join(["{}", LINES.strip(), *bad, '{"id": "c", "n": 3}'])
    done = run("import", db, "carts", "--errors", "refused.jsonl", stdin=mixed, code=1)
    assert "imported 3 documents" in done.stderr
    assert "Error: 6 records refused: see refused.jsonl\n" in done.stderr
    refused = [json.loads(line) for line in Path("refused.jsonl").read_text().splitlines()]
    assert [record["record"] for record in refused] == [1, 4, 5, 6, 7, 8]
    assert [record["content"] for record in refused] == ["{}", *bad]
    assert refused[2]["error"] == "id must be a string, got 5"
    assert contents(db) == {"a": 1, "b": 2, "c": 3}


def test_an_import_that_was_stopped_continues_where_it_was(db: str, run: Run) -> None:
    many = "".join(f'{{"id": "{n}", "n": {n}}}\n' for n in range(2500))
    assert (
        "2,500 documents stored; continue with --skip 2500"
        in run("import", db, "carts", stdin=many + "broken\n", code=1).stderr
    )
    with ttlstore.open(db) as store:
        store.collection("carts").delete("0")
    run("import", db, "carts", "--skip", "2500", stdin=many + '{"id": "last", "n": 0}\n')
    assert len(contents(db)) == 2500
    assert "0" not in contents(db)


def test_refused_records_of_an_import_that_continues_are_added(db: str, run: Run) -> None:
    run("import", db, "carts", "--errors", "refused.jsonl", stdin="broken\n", code=1)
    run("import", db, "carts", "--errors", "refused.jsonl", "--skip", "1", stdin="broken\nworse\n", code=1)
    assert len(Path("refused.jsonl").read_text().splitlines()) == 2


def test_an_array_that_is_not_json_is_refused_as_a_whole(db: str, run: Run) -> None:
    assert "the array is not JSON" in run("import", db, "carts", stdin='[{"id": "a"},', code=1).stderr


def test_an_element_of_an_array_may_be_refused(db: str, run: Run) -> None:
    run("import", db, "carts", "--errors", "refused.jsonl", stdin='[{"id": "a", "n": 1}, 5]', code=1)
    assert json.loads(Path("refused.jsonl").read_text())["content"] == "5"
    assert contents(db) == {"a": 1}


def test_an_import_of_a_file_that_is_not_there_is_refused(db: str, run: Run) -> None:
    refused = run("import", db, "carts", "missing.jsonl", code=1)
    assert refused.stderr == "Error: missing.jsonl cannot be opened: No such file or directory\n"
    refused = run("import", db, "carts", "--errors", "nowhere/refused.jsonl", code=1)
    assert refused.stderr.startswith("Error: nowhere/refused.jsonl cannot be opened: ")


def test_a_packed_file_that_is_damaged_stops_the_import_on_one_line(db: str, run: Run) -> None:
    Path("cut.jsonl.gz").write_bytes(gzip.compress(LINES.encode())[:-12])
    stopped = run("import", db, "carts", "cut.jsonl.gz", code=1)
    assert stopped.stderr.count("\n") == 1
    assert "continue with --skip" in stopped.stderr


@pytest.fixture
def kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A store in a file, other names for it, and files that SQLite has beside it; it holds the same afterwards."""
    monkeypatch.chdir(path.parent)
    with ttlstore.open(path, vacuum=False) as store:
        store.create_collection("carts").create({"id": "a", "n": 1})
        os.symlink("store.db", "linked.db")
        os.link("store.db", "store.db.unfinished")
        yield "store.db"
    assert contents("store.db") == {"a": 1}


OF_THE_STORE = ["store.db", "./store.db", "linked.db", "store.db-wal", "store.db-shm", "store.db-journal"]


@pytest.mark.parametrize("file", [*OF_THE_STORE, "store.db.unfinished"])
def test_no_file_of_the_store_is_overwritten_by_an_export(kept: str, run: Run, file: str) -> None:
    for target in (kept, "linked.db", f"sqlite:///{kept}"):
        refused = run("export", target, "carts", file, code=2)
        assert f"{file} is a file of the store " in refused.stderr
        assert "name another file" in refused.stderr


@pytest.mark.parametrize("file", OF_THE_STORE)
def test_no_file_of_the_store_is_overwritten_by_the_records_that_an_import_refuses(
    kept: str, run: Run, file: str
) -> None:
    for target in (kept, "linked.db"):
        refused = run("import", target, "carts", "--errors", file, stdin=LINES, code=2)
        assert f"{file} is a file of the store {target}" in refused.stderr


def test_an_export_is_not_completed_under_the_name_of_the_store(kept: str, run: Run) -> None:
    os.link(kept, "carts.jsonl.unfinished")
    assert "carts.jsonl.unfinished is a file of the store" in run("export", kept, "carts", "carts.jsonl", code=2).stderr


def test_what_is_imported_is_not_overwritten_by_the_records_that_are_refused(db: str, run: Run) -> None:
    Path("in.jsonl").write_text(LINES)
    refused = run("import", db, "carts", "in.jsonl", "--errors", "./in.jsonl", code=2)
    assert "./in.jsonl is what is imported" in refused.stderr
    assert Path("in.jsonl").read_text() == LINES
    assert contents(db) == {}


def test_another_database_is_not_overwritten(db: str, run: Run) -> None:
    with ttlstore.open("another.db") as another:
        another.create_collection("carts").create({"id": "b", "n": 2})
    for refused in (
        run("export", db, "carts", "another.db", code=2),
        run("import", db, "carts", "--errors", "another.db", stdin=LINES, code=2),
    ):
        assert "another.db is a database, and would be overwritten: name another file" in refused.stderr
    assert contents("another.db") == {"b": 2}
    assert contents(db) == {}


def test_an_export_takes_the_place_of_an_earlier_one(db: str, run: Run) -> None:
    run("export", db, "carts", "carts.jsonl")
    run("import", db, "carts", stdin=LINES)
    run("export", db, "carts", "carts.jsonl")
    assert len(Path("carts.jsonl").read_text().splitlines()) == 2


BROKEN = {70, 73, 500, 1002}
TOO_LONG_FOR_A_SERVER = {71, 72, 1000, 1001, 1004, 2100}


@pytest.fixture
def parts(db: str, run: Run) -> str:
    """2,100 records for a collection that is partitioned by /p. The 80th is a blank line."""
    run("create", db, "parts", "--partition-key", "/p")
    noise = random.Random(1).randbytes(4500).hex()  # which cannot be packed
    lines = [f'{{"id": "{n}", "p": "{noise if n in TOO_LONG_FOR_A_SERVER else n}"}}' for n in range(1, 2101)]
    for number in BROKEN:
        lines[number - 1] = "broken"
    lines[79] = ""
    return "\n".join(lines)


def parts_of(db: str) -> set[int]:
    with ttlstore.open(db) as store:
        return {int(document["id"]) for document in store.collection("parts")}


def test_an_import_goes_past_what_the_server_refuses_and_stores_all_else(
    db: str, kind: str, run: Run, parts: str
) -> None:
    bad = BROKEN | (TOO_LONG_FOR_A_SERVER if kind == "postgres" else set())
    done = run("import", db, "parts", "--errors", "refused.jsonl", stdin=parts, code=1)
    assert f"imported {2099 - len(bad):,} documents into 'parts'" in done.stderr
    assert f"Error: {len(bad)} records refused: see refused.jsonl\n" in done.stderr
    refused = [json.loads(line) for line in Path("refused.jsonl").read_text().splitlines()]
    assert [record["record"] for record in refused] == sorted(bad)
    assert [record["content"] for record in refused] == [parts.splitlines()[number - 1] for number in sorted(bad)]
    assert {record["record"] for record in refused if "too long" in record["error"]} == bad - BROKEN
    assert parts_of(db) == set(range(1, 2101)) - bad - {80}


def test_an_import_stops_at_what_the_server_refuses_and_continues_after_it(
    db: str, kind: str, run: Run, parts: str
) -> None:
    bad = BROKEN | (TOO_LONG_FOR_A_SERVER if kind == "postgres" else set())
    skip = 0
    for number in sorted(bad):
        stopped = run("import", db, "parts", "--skip", str(skip), stdin=parts, code=1).stderr
        assert stopped.startswith(f"Error: record {number}: ")
        new = set(range(skip + 1, number)) - {80}
        assert f"; {len(new):,} document{'' if len(new) == 1 else 's'} stored; " in stopped
        assert stopped.endswith(f"; continue with --skip {number - 1}\n")
        assert parts_of(db) == set(range(1, number)) - bad - {80}
        skip = number
    run("import", db, "parts", "--skip", str(skip), stdin=parts)
    assert parts_of(db) == set(range(1, 2101)) - bad - {80}
