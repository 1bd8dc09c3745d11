"""info, stats and forecast."""

import csv
import io
import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import ByHand, Run, named
from ttlstore.schema import HEAD
from ttlstore.testing import FakeClock


def facts(output: str) -> dict[str, str]:
    return {line[:13].strip(): line[13:].strip() for line in output.splitlines()}


@pytest.fixture
def filled(db: str, run: Run, clock: FakeClock) -> str:
    """A cart that expired a minute ago, one that lives for an hour, and one that never expires."""
    run("put", db, "carts", '{"id": "gone"}', "--ttl", "1m")
    clock.advance(120)
    run("put", db, "carts", '{"id": "hour"}')
    run("put", db, "carts", '{"id": "ever"}', "--ttl", "never")
    return db


ENGINE = {
    "file": "SELECT 'SQLite ' || sqlite_version()",
    "postgres": "SELECT 'PostgreSQL ' || current_setting('server_version')",
}
SIZE = "SELECT pg_total_relation_size('documents') + pg_total_relation_size('collections')"


def test_info_says_what_a_store_is(kind: str, filled: str, run: Run, by_hand: ByHand) -> None:
    shown = facts(run("info", filled).stdout)
    assert shown["store"] == named(filled)
    assert [(shown["engine"],)] == by_hand(filled, ENGINE[kind])
    assert shown["schema"] == HEAD
    assert shown["collections"] == "1"
    assert shown["live"] == "2 documents"
    assert shown["waiting"] == "1 document (expired, not deleted yet)"
    assert shown["vacuum"] == "1 document to delete, the first expired 1m 0s ago: see ttlstore vacuum --help"
    run("vacuum", filled)
    assert facts(run("info", filled).stdout)["vacuum"] == "up to date"


def test_the_lag_begins_with_the_moment_of_expiry(db: str, run: Run, clock: FakeClock) -> None:
    run("put", db, "carts", '{"id": "a"}')
    clock.advance(3600)
    info = json.loads(run("info", db, "--format", "json").stdout)
    assert (info["live_documents"], info["waiting_documents"], info["lag_seconds"]) == (0, 1, 0)


def test_info_tells_of_the_rows_of_dropped_collections(filled: str, run: Run) -> None:
    run("vacuum", filled)
    run("drop", filled, "carts", "--yes")
    assert facts(run("info", filled).stdout)["vacuum"] == "2 documents to delete: see ttlstore vacuum --help"


def test_info_for_programs_is_one_record(kind: str, filled: str, run: Run, by_hand: ByHand) -> None:
    info = json.loads(run("info", filled, "--format", "json").stdout)
    assert (info["store"], info["live_documents"], info["waiting_documents"]) == (named(filled), 2, 1)
    assert info["file_bytes"] == (Path(filled).stat().st_size if kind == "file" else by_hand(filled, SIZE)[0][0])
    assert json.loads(run("info", filled, "--format", "jsonl").stdout) == info
    (row,) = csv.DictReader(io.StringIO(run("info", filled, "--format", "csv").stdout))
    assert row["engine"] == info["engine"]


def test_stats_tell_live_and_waiting_and_the_lag(filled: str, run: Run) -> None:
    for of in ([], ["carts"]):
        shown = facts(run("stats", filled, *of).stdout)
        assert shown["live"] == "2 documents, 35 B"
        assert shown["waiting"] == "1 document, 22 B (expired, not deleted yet)"
        assert shown["lag"] == "1m 0s since the first expired"
        assert shown["next expiry"].endswith(", in 1h 0m")
    assert "size" in facts(run("stats", filled).stdout)


def test_stats_at_a_time_to_come_count_what_will_have_expired(filled: str, run: Run) -> None:
    for of in ([], ["carts"]):
        ahead = json.loads(run("stats", filled, *of, "--at", "+2h", "--format", "json").stdout)
        assert (ahead["live_documents"], ahead["waiting_documents"]) == (1, 2)
        assert (ahead["next_expiry"], ahead["next_expiry_seconds"]) == (None, None)
        assert ahead["lag_seconds"] == 60 + 7200
    assert facts(run("stats", filled, "--at", "+2h").stdout)["next expiry"] == "never"


def test_stats_of_nothing_have_no_lag(db: str, run: Run) -> None:
    assert facts(run("stats", db).stdout)["lag"] == "none"
    assert "there is no collection 'nope'" in run("stats", db, "nope", code=1).stderr


def test_collections_show_what_is_live_and_waiting_and_the_next_expiry(filled: str, run: Run) -> None:
    (line,) = run("collections", filled).stdout.splitlines()[2:]
    assert line.split() == ["carts", "1h", "/id", "2", "1", "57", "B", "in", "1h", "0m"]


# --- forecast -------------------------------------------------------------------------------------------------------


@pytest.fixture
def ahead(db: str, run: Run, clock: FakeClock) -> str:
    """Thirty that expire within the hour, one in the next, none in the third."""
    lines = [f'{{"id": "{number}", "ttl": 600}}\n' for number in range(30)]
    run("import", db, "carts", stdin="".join([*lines, '{"id": "later", "ttl": 7200}\n']))
    return db


def test_a_forecast_draws_a_bar_for_each_interval(ahead: str, run: Run) -> None:
    shown = run("forecast", ahead, "carts", "--intervals", "3")
    first, second, third = (line.split()[2:] for line in shown.stdout.splitlines()[2:])
    assert first == ["30", "620", "B", "█" * 30]
    assert second == ["1", "25", "B", "█"]
    assert third == ["0", "0", "B"]
    assert shown.stderr == "31 of 31 live documents would expire within 3h, if nothing is written\n"


def test_a_forecast_that_ends_too_soon_tells_when_the_first_expires(ahead: str, run: Run) -> None:
    shown = run("forecast", ahead, "carts", "--interval", "1m", "--intervals", "5")
    told = "0 of 31 live documents would expire within 5m, the first in 10m 0s, if nothing is written\n"
    assert shown.stderr == told


def test_a_forecast_for_programs_has_the_numbers(ahead: str, run: Run, clock: FakeClock) -> None:
    shown = run("forecast", ahead, "carts", "--interval", "10m", "--intervals", "2", "--format", "jsonl")
    assert [json.loads(line) for line in shown.stdout.splitlines()] == [
        {"start": clock(), "end": clock() + 600, "documents": 30, "bytes": 620},
        {"start": clock() + 600, "end": clock() + 1200, "documents": 0, "bytes": 0},
    ]
    assert shown.stderr == ""


def test_a_forecast_of_nothing_has_no_bars(db: str, run: Run) -> None:
    shown = run("forecast", db, "carts", "--intervals", "2")
    assert "█" not in shown.stdout
    assert shown.stderr.startswith("0 of 0 live documents")


def test_a_forecast_can_be_drawn_into_a_file(ahead: str, run: Run) -> None:
    run("forecast", ahead, "carts", "--png", "carts.png")
    assert Path("carts.png").read_bytes().startswith(b"\x89PNG")
    assert "cannot be written" in run("forecast", ahead, "carts", "--png", "nowhere/carts.png", code=1).stderr


def test_without_matplotlib_the_extra_is_named(ahead: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    refused = run("forecast", ahead, "carts", "--png", "carts.png", code=1)
    assert refused.stderr == "Error: --png needs matplotlib: pip install 'ttlstore[plot]'\n"


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--interval", "0", "interval must be"),
        ("--interval", "soon", "a duration is written like"),
        ("--interval", "24855d", "before the year 10000"),
        ("--intervals", "0", "a number from 1"),
        ("--intervals", "x", "a number from 1"),
        ("--intervals", "10001", "intervals must be from 1 to 10000"),
    ],
)
def test_a_forecast_over_no_time_is_refused(db: str, run: Run, option: str, value: str, told: str) -> None:
    many = [] if option == "--intervals" else ["--intervals", "1000"]
    assert told in run("forecast", db, "carts", option, value, *many, code=2).stderr
