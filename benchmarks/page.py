"""docs/benchmarks.md, made from the records of runs."""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures import header, rows
from benchmarks.goals import goals
from benchmarks.record import ALL_WORK, Run

INTRODUCTION = """# Benchmarks

This page is made by `python -m benchmarks page` from the records of runs, which lie beside its pictures. A run is one
machine, the same documents of some 300 bytes and the same durability for everybody. Every peer is used as its own
documentation recommends, in a process of its own. The peers take turns, round after round; a figure is the median of
its rounds, and ± is half of the range between the fastest and the slowest.

- **The floor** is `sqlite3`: the store's own tables, SQL and JSON decoder on Python's `sqlite3`, and nothing around
  them. Its index for the query is the plain one that one would make by hand.
- *to ttlstore* and *to floor* are costs: 2.00 x is twice as expensive, and less than 1 x is cheaper.
- A dash is what a peer cannot do, or not within its budget, and why. A peer that is over its budget once is left out
  of what follows at that size, and of larger sizes if that was the bulk load.
- Durability `normal` is a write that survives a crash of the process, `full` one that survives a loss of power. A peer
  that does not offer it is not in the run.
- They do not all do the same for it. LMDB and RocksDB keep bytes: nothing expires, nothing is queried, damage is not
  noticed. Mongita reads from memory. TinyDB and MontyDB look at every document. Redis and PostgreSQL are servers, whose
  memory and processor time are their own. Redis counts what expired until it comes across it.
- Among few documents a read finds its pages in the connection's own cache. Among a million it takes 1.7 pages from the
  system, the store's as the floor's: so a read grows. Mapping the file would save a fifth of it, and is not done: where
  a file is cut off or a disk fails, an error is raised now, and the process would be killed then.
- Expired documents are *visible* as long as a read or a count still sees one. Where nothing deletes them by itself, the
  job that a user would write for it starts at the moment they expire. Their *space is back* when the files are within
  10 % of their size before. *Meanwhile* is the five seconds from then on, in which one thread reads and writes.
"""


def write(path: Path, runs: list[tuple[Run, list[str]]], pictures: str) -> None:
    """The page from runs, each with the names of its pictures, which are in the folder `pictures` beside the page."""
    parts = [INTRODUCTION]
    for run, drawn in runs:
        parts.extend(section(run, [f"{pictures}/{name}" for name in drawn]))
    path.write_text("\n".join(parts))


def section(run: Run, pictures: list[str]) -> Iterator[str]:
    sizes = " and ".join(f"{size:,}" for size in run.axis("read"))
    yield f"## {sizes} documents, durability `{run.durability}`\n"
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
