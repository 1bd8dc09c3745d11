"""What a change did: two records of the same benchmark, before and after."""

from rich.console import Console
from rich.table import Table

from benchmarks.figures import shown
from benchmarks.peers import FLOOR, OURS
from benchmarks.record import ALL_WORK, Cell, Run


def show(before: Run, after: Run, console: Console) -> None:
    """Only what moved by more than both runs' spread is coloured. The floor shows what the machine did meanwhile."""
    if before.machine != after.machine or before.durability != after.durability:
        console.print("[yellow]the runs differ in their machine or durability: compare them with care[/]")
    table = Table()
    for title in ("", "peer", "at"):
        table.add_column(title)
    for title in ("before", "after", "change", "to the floor"):
        table.add_column(title, justify="right")
    for cell in after.cells:
        old = before.cell(cell.work, cell.peer, cell.at)
        if old and old.rounds and cell.rounds and cell.peer in (OURS, FLOOR):
            table.add_row(*row(before, after, old, cell))
    console.print(table)


def row(before: Run, after: Run, old: Cell, new: Cell) -> list[str]:
    work = ALL_WORK[new.work]
    change = new.median / old.median - 1 if old.median else 0.0
    better = change > 0 if work.more_is_better else change < 0
    colour = ("green" if better else "red") if abs(change) > old.spread + new.spread else "dim"
    then, now = (run.figure(new.work, FLOOR, new.at) for run in (before, after))
    relative = f"{old.median / then:.2f} x → {new.median / now:.2f} x" if then and now and new.peer == OURS else ""
    figures = (f"{shown(cell.median, work.unit)} ±{cell.spread:.0%}" for cell in (old, new))
    return [work.title, new.peer, f"{new.at:,}", *figures, f"[{colour}]{change:+.0%}[/]", relative]
