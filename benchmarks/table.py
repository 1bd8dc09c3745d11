"""The tables in the terminal."""

from rich.console import Console
from rich.table import Table

from benchmarks.figures import header, rows
from benchmarks.goals import goals
from benchmarks.peers import OURS
from benchmarks.record import ALL_WORK, Run


def show(run: Run, console: Console) -> None:
    console.print(", ".join(run.machine.values()), f"· durability {run.durability}")
    for work in run.works():
        title = f"{ALL_WORK[work].title} ({'more' if ALL_WORK[work].more_is_better else 'less'} is better)"
        table = Table(title=title, title_justify="left", title_style="bold")
        for number, heading in enumerate(header(run, work)):
            table.add_column(heading, justify="right" if number else "left")
        for row in rows(run, work):
            table.add_row(*row, style="bold" if row[0] == OURS else "")
        console.print(table)
    for goal in goals(run):
        console.print(f"[{'green' if goal.met else 'red'}]{goal.verdict}[/]  {goal.text}: {goal.measured}")
