"""A run as pictures: PNG for reading anywhere, SVG for the page."""

from pathlib import Path

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.figures import shown
from benchmarks.peers import FLOOR, OURS
from benchmarks.record import ALL_WORK, Run

OURS_COLOUR, FLOOR_COLOUR, OTHER_COLOUR = "#0b6e4f", "#555555", "#b8c4ce"
BARS = ("read", "miss", "upsert", "mixed", "load", "iterate", "query", "open", "size")
GROWTH = ("read", "upsert", "load", "iterate")
SHARED = ("read in threads", "read in processes", "mixed in threads", "mixed in processes")


def draw(run: Run, folder: Path, name: str) -> list[str]:
    """Write the pictures of a run, and tell their names without endings; the same run gives the same files."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    with rc_context({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "ttlstore"}):
        for kind, figure in (("side-by-side", bars(run)), ("growth", growth(run)), ("many-at-once", many_at_once(run))):
            if figure is None:
                continue
            figure.savefig(folder / f"{name}-{kind}.png", dpi=140)
            figure.savefig(folder / f"{name}-{kind}.svg", metadata={"Date": None})
            drawn.append(f"{name}-{kind}")
    return drawn


def grid(works: list[str], columns: int) -> tuple[Figure, list[Axes]]:
    lines = -(-len(works) // columns)
    figure = Figure(figsize=(3.6 * columns, 2.7 * lines), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False)
    flat = [axis for line in axes for axis in line]
    for unused in flat[len(works) :]:
        unused.set_visible(False)
    return figure, flat


def colour(peer: str) -> str:
    return {OURS: OURS_COLOUR, FLOOR: FLOOR_COLOUR}.get(peer, OTHER_COLOUR)


def bars(run: Run) -> Figure | None:
    """Every peer at the size that most of them have figures for."""
    works = [work for work in BARS if work in run.works()]
    if not works:
        return None
    figure, axes = grid(works, 3)
    for work, axis in zip(works, axes, strict=False):
        at = max(run.axis(work), key=lambda at: sum(run.figure(work, peer, at) is not None for peer in run.peers(work)))
        found = {peer: value for peer in run.peers(work) if (value := run.figure(work, peer, at)) is not None}
        names = sorted(found, key=lambda peer: -found[peer])
        drawn = axis.barh(names, [found[name] for name in names], color=[colour(name) for name in names])
        axis.bar_label(drawn, [shown(found[name], ALL_WORK[work].unit) for name in names], padding=2, fontsize=7)
        axis.set_xscale("log")
        axis.margins(x=0.25)
        axis.set_xticks([])
        axis.minorticks_off()
        axis.set_title(f"{ALL_WORK[work].title}\n{at:,} documents", fontsize=8)
    return figure


def growth(run: Run) -> Figure | None:
    """How the cost grows with the number of documents."""
    works = [work for work in GROWTH if len(run.axis(work)) > 1]
    if not works:
        return None
    figure, axes = grid(works, 2)
    for work, axis in zip(works, axes, strict=False):
        lines(run, work, axis, 1e6)
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_title(f"{ALL_WORK[work].title}, µs", fontsize=8)
        axis.set_xlabel("documents")
    axes[0].legend(fontsize=6)
    return figure


def many_at_once(run: Run) -> Figure | None:
    works = [work for work in SHARED if len(run.axis(work)) > 1]
    if not works:
        return None
    figure, axes = grid(works, 2)
    for work, axis in zip(works, axes, strict=False):
        lines(run, work, axis, 1.0)
        axis.set_yscale("log")
        axis.set_xticks(run.axis(work))
        axis.set_title(ALL_WORK[work].title, fontsize=8)
        axis.set_xlabel(ALL_WORK[work].axis)
    axes[0].legend(fontsize=6)
    return figure


def lines(run: Run, work: str, axis: Axes, factor: float) -> None:
    for peer in run.peers(work):
        points = [(at, value * factor) for at in run.axis(work) if (value := run.figure(work, peer, at)) is not None]
        if points:
            ours = peer in (OURS, FLOOR)
            axis.plot(
                *zip(*points, strict=True),
                **{"color": colour(peer), "linewidth": 2.0, "zorder": 3} if ours else {"linewidth": 1.0},
                marker="o",
                markersize=3,
                label=peer,
            )
