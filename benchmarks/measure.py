"""Fair comparison on a noisy machine: interleaved rounds, medians, ratios within one run."""

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

ROUNDS = 9


@dataclass(frozen=True)
class Bar:
    """A promise: ours takes at most `factor` times as long as the other."""

    other: str
    factor: float


@dataclass(frozen=True)
class Comparison:
    """Seconds per unit of work of each contender, the median of all rounds."""

    title: str
    seconds: Mapping[str, float]
    spread: Mapping[str, float]
    bars: tuple[Bar, ...]

    def ratio(self, other: str) -> float:
        return self.seconds["ttlstore"] / self.seconds[other]

    def lines(self) -> list[str]:
        lines = [self.title]
        for name, seconds in self.seconds.items():
            ratio = "" if name == "ttlstore" else f"   ttlstore takes {self.ratio(name):5.2f} x"
            lines.append(f"  {name:<12} {seconds * 1e6:10.2f} µs  ±{self.spread[name]:4.0%}{ratio}")
        for bar in self.bars:
            verdict = "met" if self.ratio(bar.other) <= bar.factor else "MISSED"
            lines.append(f"  bar: at most {bar.factor:.2f} x {bar.other}: {self.ratio(bar.other):.2f} x, {verdict}")
        return lines


@dataclass(frozen=True)
class Promise:
    """A figure that must not be above its limit, or, where more is better, not below it."""

    title: str
    measured: float
    limit: float
    unit: str
    more_is_better: bool = False

    def lines(self) -> list[str]:
        met = self.measured >= self.limit if self.more_is_better else self.measured <= self.limit
        bound = "at least" if self.more_is_better else "at most"
        verdict = "met" if met else "MISSED"
        return [f"{self.title}: {self.measured:.2f} {self.unit}  (bar: {bound} {self.limit:g}, {verdict})"]


def percentile(times: list[float], share: float) -> float:
    return sorted(times)[min(int(len(times) * share), len(times) - 1)]


def each(work: Callable[[Any], Any], over: list[Any]) -> Callable[[], None]:
    def run() -> None:
        for item in over:
            work(item)

    return run


def compare(
    title: str,
    contenders: Mapping[str, Callable[[], object]],
    *bars: Bar,
    units: int = 1,
    rounds: int = ROUNDS,
    before: Callable[[], None] = lambda: None,
) -> Comparison:
    """Run every contender once a round, in turn; each call does `units` units of work."""
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, work in contenders.items():
            before()
            gc.collect()
            gc.disable()
            try:
                start = time.perf_counter()
                work()
                taken[name].append((time.perf_counter() - start) / units)
            finally:
                gc.enable()
    medians = {name: statistics.median(times) for name, times in taken.items()}
    spread = {name: (max(times) - min(times)) / 2 / medians[name] for name, times in taken.items()}
    return Comparison(title, medians, spread, bars)
