"""How figures read, and the rows of the tables: the same in the terminal and on the page."""

from benchmarks.peers import FLOOR, OURS
from benchmarks.record import ALL_WORK, Cell, Run
from benchmarks.work import Unit

NOTHING = "—"


def shown(value: float, unit: Unit) -> str:
    match unit:
        case "s":
            return _scaled(value, ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))) if value else "0 ms"
        case "bytes":
            return _scaled(value, ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B")))
        case "1/s":
            return f"{value:,.0f}/s"
        case "x":
            return f"{value:.2f} x"


def _scaled(value: float, scales: tuple[tuple[float, str], ...]) -> str:
    scale, name = next((each for each in scales if abs(value) >= each[0]), scales[-1])
    figure = value / scale
    return f"{figure:.{0 if figure >= 100 else 1 if figure >= 10 else 2}f} {name}"


def cost_ratio(run: Run, work: str, peer: str, other: str, at: int) -> float | None:
    """How many times as expensive a peer is as the other: more than 1 is worse, whatever is measured."""
    ours, theirs = run.figure(work, peer, at), run.figure(work, other, at)
    if not ours or not theirs or ALL_WORK[work].unit == "x":
        return None
    return theirs / ours if ALL_WORK[work].more_is_better else ours / theirs


def ratio_shown(ratio: float | None) -> str:
    if ratio is None:
        return ""
    return f"{ratio:,.0f} x" if ratio >= 100 else f"{ratio:.1f} x" if ratio >= 10 else f"{ratio:.2f} x"


def cell_shown(cell: Cell | None) -> str:
    if cell is None:
        return f"{NOTHING} (not measured)"
    if not cell.rounds:
        return f"{NOTHING} ({cell.empty})"
    spread = f" ±{cell.spread:.0%}" if len(cell.rounds) > 1 else ""
    return shown(cell.median, ALL_WORK[cell.work].unit) + spread


def header(run: Run, work: str) -> list[str]:
    axis = ALL_WORK[work].axis
    columns = [[f"{at:,} {axis}", "to ttlstore", "to floor"] for at in run.axis(work)]
    return ["", *(title for column in columns for title in column)]


def rows(run: Run, work: str) -> list[list[str]]:
    """A row for each peer: for each number on the axis its figure, and its cost by ours and by the floor."""
    table = []
    for peer in run.peers(work):
        row = [peer]
        for at in run.axis(work):
            row.append(cell_shown(run.cell(work, peer, at)))
            row.extend(ratio_shown(cost_ratio(run, work, peer, other, at)) for other in (OURS, FLOOR))
        table.append(row)
    return table
