"""docs/benchmarks.md, made from the records of runs."""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures import header, rows
from benchmarks.goals import goals
from benchmarks.record import ALL_WORK, Run

INTRODUCTION = """# Benchmarks

This page is made by `python -m benchmarks page` from the records of runs: nothing on it was written by hand. Each run
is one machine, the same documents of some 300 bytes, the same durability for everybody, and every peer used as its own
documentation recommends, in a process of its own. The peers take turns, round after round; a figure is the median of
its rounds, and ± half of the range between the fastest and the slowest.

- **The floor** is `sqlite3`: the store's own tables, SQL and JSON decoder on Python's `sqlite3`, and nothing around it.
- *to ttlstore* and *to floor* are costs: 2.00 x is twice as expensive, less than 1 x is cheaper.
- A dash is what a peer cannot do, or not within its budget, with the reason. Durability `normal` is a write that
  survives a crash of the process, `full` one that survives a loss of power; a peer without it is not in the run.
- Not everybody does the same work for its figure. LMDB and RocksDB hold bytes: no expiry, no index, no query, no
  document that another process damaged noticed. Mongita reads from memory. Redis and PostgreSQL are servers.
"""


def write(path: Path, runs: list[tuple[Run, list[str]]], pictures: str) -> None:
    """The page from runs, each with the names of its pictures, which are in the folder `pictures` beside the page."""
    parts = [INTRODUCTION]
    for run, drawn in runs:
        parts.extend(section(run, [f"{pictures}/{name}" for name in drawn]))
    path.write_text("\n".join(parts))


def section(run: Run, pictures: list[str]) -> Iterator[str]:
    yield f"## Durability `{run.durability}`\n"
    yield f"```bash\n{run.command}\n```\n"
    yield "; ".join(f"{name} {value}" for name, value in run.machine.items()) + ".\n"
    yield "Versions: " + ", ".join(f"{name} {version}".strip() for name, version in run.versions.items()) + ".\n"
    yield "### What is aimed for\n"
    yield table(
        ["", "measured", ""],
        [
            [goal.text, goal.measured, goal.verdict if goal.met else f"**{goal.verdict.lower()}**"]
            for goal in goals(run)
        ],
    )
    for picture in pictures:
        yield f"![{Path(picture).name.replace('-', ' ')}]({picture}.svg)\n"
    for work in run.works():
        better = "more" if ALL_WORK[work].more_is_better else "less"
        yield f"### {ALL_WORK[work].title[0].upper()}{ALL_WORK[work].title[1:]}\n\n{better.capitalize()} is better.\n"
        yield table(header(run, work), rows(run, work))


def table(titles: list[str], content: list[list[str]]) -> str:
    lines = [titles, ["---"] + ["---:"] * (len(titles) - 1), *content]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
