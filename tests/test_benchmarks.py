"""The benchmarks themselves, in small: that they measure everybody, and tell it right."""

from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.__main__ import SUITES, main
from benchmarks.documents import document
from benchmarks.expiry import EXPIRY
from benchmarks.figures import cost_ratio, rows, shown
from benchmarks.goals import goals
from benchmarks.peers import FLOOR, OURS, PEERS, NotOfferedError, Peer, peer_class
from benchmarks.record import ALL_WORK, Cell, Run
from benchmarks.side_by_side import IN_ORDER, Options, SideBySide
from benchmarks.work import Plan, in_threads

PLAN = Plan(size=40, round=0)


@pytest.fixture
def run() -> Run:
    """Ours reads in 2 µs, the floor in 1, LMDB in 0.5; each in two rounds. TinyDB has no index."""
    figures = {OURS: 2e-6, FLOOR: 1e-6, "lmdb": 0.5e-6}
    cells = [Cell("read", peer, 100, [value * 0.9, value * 1.1]) for peer, value in figures.items()]
    cells += [Cell("read in processes", OURS, count, [rate]) for count, rate in ((1, 100.0), (4, 150.0))]
    cells.append(Cell("query", "tinydb", 100, empty="no index on a property"))
    return Run(
        "python -m benchmarks peers",
        "normal",
        {"processor": "abacus", "cores": "2"},
        {OURS: "1", FLOOR: "", "tinydb": "4", "lmdb": "1"},
        cells,
    )


@pytest.mark.parametrize("name", [OURS, FLOOR])
def test_a_peer_gives_back_what_it_was_given(name: str, tmp_path: Path) -> None:
    peer = peer_class(name)(tmp_path, "normal")
    peer.load([PLAN.document(number) for number in range(PLAN.size)])
    peer.upsert({**PLAN.document(0), "note": "other"})
    first = peer.read(PLAN.document(0)["id"])
    assert first is not None
    assert first["note"] == "other"
    assert peer.read("nobody") is None
    assert peer.count() == len(list(peer.all())) == PLAN.size
    peer.index()
    found = peer.of_customer(PLAN.document(0)["customerId"])
    assert sorted(each["id"] for each in found) == [PLAN.document(number)["id"] for number in range(0, PLAN.size, 4)]
    assert peer.size() > 0
    assert in_threads(peer, PLAN, "mixed", 2) > 0
    peer.close()


@pytest.mark.parametrize("name", PEERS)
def test_every_peer_has_its_module(name: str) -> None:
    try:
        assert issubclass(peer_class(name), Peer)
    except ImportError as error:
        pytest.skip(f"not installed: {error}")


def test_what_a_peer_does_not_offer_it_refuses(tmp_path: Path) -> None:
    with pytest.raises(NotOfferedError, match="no index"):
        Peer(tmp_path, "normal").of_customer("C-1")


def test_the_store_and_the_floor_run_side_by_side() -> None:
    options = Options((OURS, FLOOR), (60,), (), "normal", 1, (1,), 0, 0, 10.0, 10.0)
    told: list[str] = []
    [run] = SideBySide(options, "python -m benchmarks peers", told.append).parts()
    for work in ("load", *IN_ORDER):
        for peer in (OURS, FLOOR):
            cell = run.cell(work, peer, 60)
            assert cell is not None
            assert cell.rounds or cell.empty, told
    assert run.figure("read", OURS, 60)


def test_documents_of_a_customer_are_ten_at_every_size() -> None:
    for size in (100, 1000):
        owners = [Plan(size, 0).document(number)["customerId"] for number in range(size)]
        assert owners.count(owners[7]) == 10
    assert document(1)["customerId"] == document(1001)["customerId"]


def test_a_record_is_read_back_as_it_was_saved(run: Run, tmp_path: Path) -> None:
    run.save(tmp_path / "run.json")
    assert Run.read(tmp_path / "run.json") == run
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(ValueError, match=r"other\.json is not the record"):
        Run.read(tmp_path / "other.json")


def test_costs_are_told_as_ratios_to_the_store_and_to_the_floor(run: Run) -> None:
    assert cost_ratio(run, "read", "lmdb", OURS, 100) == pytest.approx(0.25)
    assert cost_ratio(run, "read", OURS, FLOOR, 100) == pytest.approx(2.0)
    assert rows(run, "read")[0] == [OURS, "2.00 µs ±10%", "1.00 x", "2.00 x"]
    assert rows(run, "query") == [["tinydb", "— (no index on a property)", "", ""]]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(0.0, "s", "0 ms"), (1.5e-6, "s", "1.50 µs"), (0.25, "s", "250 ms"), (3 * 2**20, "bytes", "3.00 MiB")],
)
def test_figures_are_shown_in_a_fitting_unit(value: float, unit: str, text: str) -> None:
    assert shown(value, unit) == text  # type: ignore[arg-type]  # one of its literals


def test_goals_tell_what_was_missed_and_by_how_much(run: Run) -> None:
    verdicts = {goal.text: (goal.verdict, goal.measured) for goal in goals(run)}
    assert verdicts["read one, 100 documents: ahead of every peer"] == ("MISSED", "takes 4.00 x lmdb")
    assert verdicts["read one, 100 documents: within 1.25 x of the floor"] == ("MISSED", "2.00 x")
    assert verdicts["4 processes read at least 1.7 x as much as one (2 cores)"] == ("MISSED", "1.50 x")


def test_growth_is_told_beside_that_of_the_floor(run: Run) -> None:
    run.cells += [Cell("read", peer, 10_000_000, [3e-6]) for peer in (OURS, FLOOR)]
    growth = next(goal for goal in goals(run) if "10,000,000 documents: within 1.5 x of one of" in goal.text)
    assert (growth.verdict, growth.measured) == ("reached", "1.50 x; the floor's 3.00 x")


def test_two_records_show_what_a_change_did(run: Run, tmp_path: Path) -> None:
    run.save(tmp_path / "before.json")
    run.cells[0].rounds = [1e-6, 1e-6]
    run.save(tmp_path / "after.json")
    result = CliRunner().invoke(main, ["compare", str(tmp_path / "before.json"), str(tmp_path / "after.json")])
    assert result.exit_code == 0, result.output
    assert "-50%" in result.output
    assert "2.00 x → 1.00 x" in result.output


def test_the_page_is_made_from_a_record(run: Run, tmp_path: Path) -> None:
    run.cells += [Cell("read", peer, 1000, [3e-6]) for peer in (OURS, FLOOR)]
    run.save(tmp_path / "run.json")
    target = tmp_path / "benchmarks.md"
    result = CliRunner().invoke(main, ["page", "--record", str(tmp_path / "run.json"), str(target)])
    assert result.exit_code == 0, result.output
    text = target.read_text()
    assert "| ttlstore | 2.00 µs ±10% | 1.00 x | 2.00 x | 3.00 µs | 1.00 x | 1.00 x |" in text
    assert "— (no index on a property)" in text
    assert "| lmdb | 0.50 µs ±10% | 0.25 x | 0.50 x | — (not measured) |" in text
    assert "python -m benchmarks peers" in text
    for picture in ("run-side-by-side", "run-growth", "run-many-at-once"):
        assert f"(benchmarks/{picture}.svg)" in text
        assert (tmp_path / "benchmarks" / f"{picture}.png").stat().st_size > 1000
        assert (tmp_path / "benchmarks" / f"{picture}.svg").stat().st_size > 1000


def test_every_suite_and_kind_of_work_has_a_name() -> None:
    assert all(ALL_WORK[work].title for work in (*IN_ORDER, *EXPIRY))
    for name in SUITES:
        try:
            assert callable(import_module(f"benchmarks.{name}").run)
        except ModuleNotFoundError as missing:
            pytest.skip(f"{missing.name} is not installed")
