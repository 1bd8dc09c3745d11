"""What a run measured, and on what: as JSON, without anything that tells whose machine it was."""

import dataclasses
import json
import os
import platform
import sqlite3
import statistics
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.expiry import EXPIRY
from benchmarks.work import SHARED, WORK, Work

FORMAT = 1


@dataclass
class Cell:
    """The figures of all rounds of one peer at one kind of work; or why there are none."""

    work: str
    peer: str
    at: int
    """How many documents, threads or processes: the axis of its work."""
    rounds: list[float] = field(default_factory=list)
    empty: str | None = None

    @property
    def median(self) -> float:
        return statistics.median(self.rounds)

    @property
    def spread(self) -> float:
        """Half of the range of all rounds, as a share of the median."""
        return (max(self.rounds) - min(self.rounds)) / 2 / self.median if self.median else 0.0


@dataclass
class Run:
    """Everything that one run measured."""

    command: str
    durability: str
    machine: dict[str, str]
    versions: dict[str, str]
    cells: list[Cell] = field(default_factory=list)

    def cell(self, work: str, peer: str, at: int) -> Cell | None:
        found = (cell for cell in self.cells if (cell.work, cell.peer, cell.at) == (work, peer, at))
        return next(found, None)

    def figure(self, work: str, peer: str, at: int) -> float | None:
        cell = self.cell(work, peer, at)
        return cell.median if cell and cell.rounds else None

    def works(self) -> list[str]:
        present = {cell.work for cell in self.cells}
        return [work for work in ALL_WORK if work in present]

    def axis(self, work: str) -> list[int]:
        return sorted({cell.at for cell in self.cells if cell.work == work})

    def peers(self, work: str | None = None) -> list[str]:
        present = {cell.peer for cell in self.cells if work in (None, cell.work)}
        return [peer for peer in self.versions if peer in present]

    def save(self, path: Path) -> None:
        path.write_text(json.dumps({"format": FORMAT, **dataclasses.asdict(self)}, indent=1) + "\n")

    @classmethod
    def read(cls, path: Path) -> "Run":
        content: dict[str, Any] = json.loads(path.read_text())
        if content.pop("format", None) != FORMAT:
            raise ValueError(f"{path.name} is not the record of a benchmark, or one of another format")
        return cls(**{**content, "cells": [Cell(**cell) for cell in content["cells"]]})


ALL_WORK: dict[str, Work] = {**WORK, **SHARED, **EXPIRY}
"""By what cells call it, in the order in which it is shown."""


def describe_machine() -> dict[str, str]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "memory": f"{memory / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
