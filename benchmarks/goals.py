"""What is aimed for, and whether a run reached it."""

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.figures import cost_ratio, ratio_shown, shown
from benchmarks.peers import FLOOR, OURS
from benchmarks.record import ALL_WORK, Run

AHEAD = ("read", "miss", "upsert", "load", "iterate", "query")  # of every peer, the floor apart
NEAR_FLOOR = ("read", "miss", "upsert")
FLOOR_FACTOR = 1.25
GROWTH_FACTOR = 1.5  # a read of the most documents, to one of the fewest
GROWTH_DOCUMENTS = 10_000_000
READERS = 4
READERS_FACTOR = 1.7


@dataclass(frozen=True)
class Goal:
    """One aim, and how far a run got."""

    text: str
    measured: str
    met: bool

    @property
    def verdict(self) -> str:
        return "reached" if self.met else "MISSED"


def goals(run: Run) -> Iterator[Goal]:
    """Those that the run has figures for."""
    for work in AHEAD:
        for at in run.axis(work):
            yield from _ahead(run, work, at)
    for work in NEAR_FLOOR:
        for at in run.axis(work):
            ratio = cost_ratio(run, work, OURS, FLOOR, at)
            if ratio is not None:
                text = f"{ALL_WORK[work].title}, {at:,} documents: within {FLOOR_FACTOR} x of the floor"
                yield Goal(text, ratio_shown(ratio), ratio <= FLOOR_FACTOR)
    yield from _growth(run)
    yield from _readers(run)
    for at in run.axis("visible"):
        visible = run.figure("visible", OURS, at)
        if visible is not None:
            yield Goal("expired documents are visible for 0 ms", shown(visible, "s"), visible == 0)


def _ahead(run: Run, work: str, at: int) -> Iterator[Goal]:
    """Of all that offer the same: those that do not keep up with the durability are not in the run."""
    others = {
        peer: ratio
        for peer in run.peers(work)
        if peer not in (OURS, FLOOR) and (ratio := cost_ratio(run, work, OURS, peer, at)) is not None
    }
    if not others:
        return
    faster = {peer: ratio for peer, ratio in others.items() if ratio > 1}
    behind = ", ".join(
        f"{ratio_shown(ratio)} {peer}" for peer, ratio in sorted(faster.items(), key=lambda item: -item[1])
    )
    nearest = min(others, key=lambda peer: 1 / others[peer])
    measured = f"takes {behind}" if faster else f"takes {ratio_shown(others[nearest])} {nearest}, the nearest"
    yield Goal(f"{ALL_WORK[work].title}, {at:,} documents: ahead of every peer", measured, not faster)


def _growth(run: Run) -> Iterator[Goal]:
    sizes = [at for at in run.axis("read") if run.figure("read", OURS, at)]
    if sizes and sizes[-1] >= GROWTH_DOCUMENTS:
        ours, floor = (_grown(run, peer, sizes[0], sizes[-1]) for peer in (OURS, FLOOR))
        text = f"a read of {sizes[-1]:,} documents: within {GROWTH_FACTOR} x of one of {sizes[0]:,}"
        measured = f"{ratio_shown(ours)}; the floor's {ratio_shown(floor)}" if floor else ratio_shown(ours)
        yield Goal(text, measured, ours is not None and ours <= GROWTH_FACTOR)


def _grown(run: Run, peer: str, few: int, many: int) -> float | None:
    """How many times as long a read takes among many."""
    before, after = (run.figure("read", peer, at) for at in (few, many))
    return after / before if before and after else None


def _readers(run: Run) -> Iterator[Goal]:
    one, many = (run.figure("read in processes", OURS, at) for at in (1, READERS))
    if one and many:
        text = f"{READERS} processes read at least {READERS_FACTOR} x as much as one ({run.machine['cores']} cores)"
        yield Goal(text, ratio_shown(many / one), many / one >= READERS_FACTOR)
