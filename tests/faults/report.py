"""docs/reliability.md, from the figures of a long run."""

import os
import platform
import sqlite3
from collections import Counter
from datetime import date

from tests.faults.trial import SQLITE, Outcome, Soak

FIRST = (
    "Killed at any moment",
    "Power that fails at any moment",
    "Servers that crash",
    "Many at once",
    "The vacuum among processes",
)

HEAD = """\
# What you can rely on

Each promise below has a test that tries to break it, against real files and in real processes. `make test` runs all of
them in a short form. `make soak MINUTES=5` runs them for as long as you like, by another chance each time, and writes
this page from what it counted.

The figures are of a run of {minutes:.0f} minutes on {when}, with Python {python} and SQLite {sqlite}, {cores} cores,
{system}. In it stores survived {kills:,} kills and {outages:,} losses of power, {operations:,} operations were checked,
{inputs:,} inputs tried and {damaged:,} files damaged.

A loss of power is simulated: a recorder between SQLite and its files keeps every write, sync and name. For any moment
of the record, files are made as a disk may hold them: with all that it was told to keep, and of the rest any part: some
writes, in any order, and some sectors of others.

On {postgres} clients are killed as the processes on a file are, and the server too: it crashed {crashes:,}
times, by a kill of its main process or of one that worked for a client. What is told of it is marked; what has no such
mark was tried on SQLite.

These are the faults. What holds without them is tested by the rest of the suite: every verb against a model in
`tests/test_state_machine.py`, forks and pools of processes in `tests/test_processes.py`, threads in
`tests/test_threads.py`, the vacuum in `tests/test_vacuum.py` and `tests/test_background_vacuum.py`.
"""

TAIL = """\
## What is not promised

- **A disk that does not keep what it says it keeps.** With `durability="full"` SQLite waits for the disk before a
  write returns; whether the disk tells the truth is up to the disk. With `"normal"` the last writes may be lost with
  the power, never the store. A disk is taken to write a sector of 512 bytes as a whole or not at all.
- **Network file systems.** The write-ahead log needs memory that the processes share: one machine, a local disk.
- **A log that is taken away.** `app.db-wal` is part of the store. Without it, a store that was not closed is as it was
  when the log was last folded in. Copy stores by `backup`, not by copying a file of several.
- **A file put in a store's place.** Close the store everywhere before its file is replaced, and take the old log away
  with the old file: SQLite cannot know that it is not the new file's.
- **A document that an index has lost.** Damage to an index may hide a document from a read until `check` has found it;
  what is read is what was written.
- **A clock that is wrong when the store is opened.** The guard compares the clock with the machine's own from then on;
  it has no means to know that it was wrong before. Documents that were deleted in time do not come back when the clock
  is set back.
- **The machine's own clock, really set.** The tests give the store a clock that jumps in the place of the machine's:
  to set that one takes privileges, and would harm whoever else relies on it. What guards against it is the same code.
- **A damaged value that nobody reads.** Damage is noticed when a document is read, by `check` and by `backup`; there
  is no scrubbing in the background.
- **Space in the file for damage to hide in.** A flipped bit in an unused page harms nobody and is not told.
- **A fork inside a transaction**, or while a query or a snapshot is read. The child cannot use the store: it says so.
- **The last second before a file is taken away.** That is how long it may take an open store to notice.
- **Small steps of the clock.** Those of less than ten seconds are taken for a time server's, and gone by.
- **SQLite's own connections to the file in the same process.** Closing the file by other means than SQLite's, as
  Python's `open()` does, drops the locks of the whole process: do not read a store's file while it is open.
- **Writing beside a process that is suspended in a transaction.** It has the write lock until it is resumed or killed;
  others read, and are told `StoreBusy`. While one is suspended that reads, the log cannot be folded in, and grows.
- **Fairness between writers.** Who waits longer than `busy_timeout` is told `StoreBusy`, and nothing was written.
"""


def page(soak: Soak, *, minutes: float) -> str:
    """The whole page."""
    totals = sum((outcome.figures for outcome in soak.outcomes.values()), Counter[str]())
    engines = {engine for outcome in soak.outcomes.values() for engine in outcome.by_engine}
    head = HEAD.format(
        minutes=minutes,
        when=date.today().isoformat(),
        python=platform.python_version(),
        sqlite=sqlite3.sqlite_version,
        cores=os.cpu_count(),
        system=platform.system(),
        kills=totals["kills"],
        outages=totals["power_cuts"],
        postgres=" and ".join(sorted(engines - {SQLITE})),
        crashes=totals["crashes_of_the_server"],
        operations=totals["operations_checked"] + totals["acknowledged_changes"],
        inputs=totals["inputs_tried"],
        damaged=totals["damaged_files"],
    )
    return "\n".join([head, *_chapters(soak), TAIL])


def summary(soak: Soak) -> str:
    """For the terminal."""
    return "\n".join(
        f"{outcome.test.rpartition('::')[2]:60} {_by_engine(outcome)}" for outcome in soak.outcomes.values()
    )


def _chapters(soak: Soak) -> list[str]:
    chapters: dict[str, list[Outcome]] = {}
    for outcome in sorted(soak.outcomes.values(), key=lambda outcome: outcome.chapter not in FIRST):
        chapters.setdefault(outcome.chapter, []).append(outcome)
    return [
        "\n".join(
            [
                f"## {chapter}\n",
                "| the promise | the test that tries to break it | in the last long run |",
                "|---|---|---|",
                *(_line(outcome) for outcome in outcomes),
                "",
            ]
        )
        for chapter, outcomes in chapters.items()
    ]


def _line(outcome: Outcome) -> str:
    file, _, name = outcome.test.partition("::")
    return f"| {outcome.sentence} | [`{name}`](../{file}) | {_by_engine(outcome) or 'held'} |"


def _by_engine(outcome: Outcome) -> str:
    told = {engine: _in_words(figures) for engine, figures in outcome.by_engine.items()}
    return "; ".join(words if engine == SQLITE else f"on {engine}: {words}" for engine, words in told.items() if words)


def _in_words(figures: Counter[str]) -> str:
    return ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in figures.items() if count)
