import csv
import io
import itertools
import json

import pytest

from tests.cli.conftest import Run
from ttlstore import Collection
from ttlstore.testing import FakeClock


@pytest.fixture
def orders(db: str, run: Run, clock: FakeClock) -> str:
    run("create", db, "orders", "--ttl", "1h", "--partition-key", "/customer")
    lines = [
        {"id": "1", "customer": "anna", "total": 5, "status": "open"},
        {"id": "2", "customer": "ben", "total": 12.5, "status": "open", "items": ["tea"], "ttl": 60},
        {"id": "3", "customer": "anna", "total": 20, "status": "paid", "note": None},
    ]
    run("import", db, "orders", stdin="".join(json.dumps(line) + "\n" for line in lines))
    return db


def test_a_query_prints_a_table_and_how_many(orders: str, run: Run) -> None:
    found = run("query", orders, "orders", "SELECT c.id, c.total FROM c ORDER BY c.total DESC")
    assert [line.rstrip() for line in found.stdout.splitlines()] == [
        "id  total",
        "─────────",
        "3      20",
        "2    12.5",
        "1       5",
    ]
    assert found.stderr.startswith("3 results in ")


def test_a_table_ends_at_a_thousand_rows_and_says_so(orders: str, run: Run) -> None:
    run("import", orders, "carts", stdin="".join(f'{{"id": "{n}"}}\n' for n in range(1001)))
    found = run("query", orders, "carts", "SELECT * FROM c")
    assert len(found.stdout.splitlines()) == 2 + 1000
    assert found.stderr.startswith("the first 1,000 results in ")
    assert found.stderr.endswith(", and there are more: see --format jsonl\n")
    assert run("query", orders, "carts", "SELECT TOP 1000 * FROM c").stderr.startswith("1,000 results in ")
    assert len(run("query", orders, "carts", "true", "--format", "jsonl").stdout.splitlines()) == 1001


def test_a_table_reads_no_further_than_it_shows(orders: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    endless = itertools.count()
    monkeypatch.setattr(Collection, "query", lambda *_, **__: endless)
    assert "there are more" in run("query", orders, "orders", "SELECT VALUE 1").stderr
    assert next(endless) <= 1002


def test_what_is_undefined_is_empty_and_what_is_null_is_null(orders: str, run: Run) -> None:
    found = run("query", orders, "orders", "SELECT c.id, c.note, c.items FROM c WHERE c.total > 10 ORDER BY c.total")
    rows = [line.split() for line in found.stdout.splitlines()[2:]]
    assert rows == [["2", '["tea"]'], ["3", "null"]]


def test_a_text_that_is_no_select_is_a_condition(orders: str, run: Run) -> None:
    found = run("query", orders, "orders", "c.status = 'paid'", "--format", "jsonl")
    assert json.loads(found.stdout)["id"] == "3"
    assert found.stderr == ""


@pytest.mark.parametrize("given", ["min=12", "@min=12"])
def test_parameters_are_read_as_json_or_else_as_text(orders: str, run: Run, given: str) -> None:
    query = "SELECT VALUE c.id FROM c WHERE c.total > @min AND c.status = @s"
    found = run("query", orders, "orders", query, "--param", given, "--param", "s=open", "--format", "json")
    assert json.loads(found.stdout) == ["2"]


def test_a_parameter_that_is_none_is_refused(orders: str, run: Run) -> None:
    assert "written like name=value" in run("query", orders, "orders", "true", "--param", "x", code=2).stderr
    assert "@x" in run("query", orders, "orders", "c.id = @x", code=1).stderr


def test_values_that_are_no_objects_have_a_column_of_their_own(orders: str, run: Run) -> None:
    query = "SELECT VALUE c.total FROM c ORDER BY c.total"
    assert [line.strip() for line in run("query", orders, "orders", query).stdout.splitlines()] == [
        "value",
        "─────",
        "5",
        "12.5",
        "20",
    ]
    assert json.loads(run("query", orders, "orders", query, "--format", "json").stdout) == [5, 12.5, 20]
    rows = list(csv.reader(io.StringIO(run("query", orders, "orders", query, "--format", "csv").stdout)))
    assert rows == [["value"], ["5"], ["12.5"], ["20"]]


def test_csv_has_a_column_for_every_property(orders: str, run: Run) -> None:
    query = "SELECT c.id, c.items FROM c WHERE c.customer = 'ben'"
    (row,) = csv.DictReader(io.StringIO(run("query", orders, "orders", query, "--format", "csv").stdout))
    assert row == {"id": "2", "items": '["tea"]'}


def test_nothing_found_is_said_and_is_no_error(orders: str, run: Run) -> None:
    nothing = run("query", orders, "orders", "c.total > 100")
    assert nothing.stdout == ""
    assert nothing.stderr.startswith("0 results in ")
    assert run("query", orders, "orders", "c.total > 100", "--format", "json").stdout == "[]\n"


def test_a_query_is_read_from_a_pipe(orders: str, run: Run) -> None:
    found = run(
        "query", orders, "orders", "--format", "jsonl", stdin="SELECT VALUE c.id\nFROM c\nWHERE c.total = 20;\n"
    )
    assert found.stdout == '"3"\n'


def test_a_partition_can_be_asked_alone(orders: str, run: Run) -> None:
    query = "SELECT VALUE COUNT(1) FROM c"
    assert run("query", orders, "orders", query, "--partition", "anna", "--format", "jsonl").stdout == "2\n"


def test_a_query_at_a_time_to_come_leaves_out_what_will_be_gone(orders: str, run: Run) -> None:
    query = "SELECT VALUE c.id FROM c ORDER BY c.id"
    assert json.loads(run("query", orders, "orders", query, "--at", "+1m", "--format", "json").stdout) == ["1", "3"]
    assert json.loads(run("query", orders, "orders", query, "--format", "json").stdout) == ["1", "2", "3"]


def test_explain_tells_how_and_does_not_run_it(orders: str, run: Run) -> None:
    run("index", "add", orders, "orders", "/status")
    told = run("query", orders, "orders", "c.status = @s", "--param", "s=open", "--explain")
    assert "/status" in told.stdout
    assert told.stderr == ""


def test_a_mistake_is_shown_with_a_caret_under_it(orders: str, run: Run) -> None:
    refused = run("query", orders, "orders", "SELECT * FORM c", code=1)
    first, line, caret = refused.stderr.splitlines()
    assert first.startswith("Error: line 1, column 10: ")
    assert line.index("FORM") == caret.index("^")


def test_a_collection_without_indexes_is_searched_only_if_asked_to(db: str, run: Run) -> None:
    run("create", db, "notes")
    run("index", "mode", db, "notes", "none")
    run("put", db, "notes", '{"id": "n1"}')
    assert "pass --scan" in run("query", db, "notes", "SELECT VALUE c.id FROM c", code=1).stderr
    assert run("query", db, "notes", "SELECT VALUE c.id FROM c", "--scan", "--format", "jsonl").stdout == '"n1"\n'


def test_names_of_properties_cannot_control_the_terminal(db: str, run: Run) -> None:
    run("put", db, "carts", json.dumps({"id": "c1", "\x1b[31m": "\x9b"}))
    shown = run("query", db, "carts", "SELECT * FROM c").stdout
    assert r"\x1b[31m" in shown
    assert "\x1b" not in shown
    assert "\x9b" not in shown
