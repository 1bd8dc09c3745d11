"""All peers at the same work: the same documents, in turn, on one machine."""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.expiry import EXPIRY
from benchmarks.peers import FLOOR, OURS, Durability, NotOfferedError, Peer, package_version, peer_class
from benchmarks.record import Cell, Run, describe_machine
from benchmarks.work import SCALE_SECONDS, Plan
from benchmarks.worker import FailedError, OverBudgetError, Worker

# In this order: the size as the bulk load left it, and no index to be kept by the writes of those who have one.
IN_ORDER = ("size", "read", "miss", "upsert", "mixed", "count", "open", "iterate", "index", "query", "memory")
ONCE = ("size", "index", "memory")
LOADS = 3  # rounds of the bulk load
LARGEST_LOADED_OFTEN = 100_000  # documents; above that they are loaded once
WARM_BYTES = 4 * 1024 * 1024  # at a time
EXPIRY_SECONDS = 300.0  # that a peer may take for all of that experiment


@dataclass(frozen=True)
class Options:
    """What to measure. What a peer cannot do within its budget is an empty cell."""

    peers: Sequence[str]
    sizes: Sequence[int]
    """Numbers of documents."""
    big_sizes: Sequence[int]
    """More of them, for the store and the floor alone."""
    durability: Durability
    rounds: int
    at_once: Sequence[int]
    """Numbers of threads, and of processes."""
    shared_size: int
    """Documents that they share; 0: not measured."""
    expiring: int
    """Documents that expire at once; 0: not measured."""
    budget: float
    """Seconds for all rounds of a cell, and 10 more for each million documents."""
    load_budget: float
    """Microseconds for each document of a bulk load, and 10 seconds."""

    def seconds(self, request: str, size: int) -> float:
        """That a peer may take for one request."""
        if request in ("load", "index"):
            return 10.0 + size * self.load_budget / 1e6
        return self.budget + size * 10e-6


class Entry:
    """A peer with its documents in a folder, and the process that works on them."""

    def __init__(self, name: str, durability: Durability) -> None:
        self.name = name
        self.peer: type[Peer] = peer_class(name)
        self.out: str | None = None
        """Why it takes no further part."""
        self.crew: list[Worker] = []
        """For many processes at once."""
        self._durability = durability
        self._cleanup = ExitStack()

    def begin(self) -> None:
        """In a new folder."""
        self.end()
        self.folder = Path(tempfile.mkdtemp(prefix="bench-"))
        self._cleanup.callback(shutil.rmtree, self.folder)
        self._cleanup.enter_context(self.peer.serving(self.folder, self._durability))
        self.worker = self.another_worker()

    def another_worker(self) -> Worker:
        worker = Worker(self.name, self.folder, self._durability)
        self._cleanup.callback(worker.stop)
        return worker

    def warm(self) -> None:
        """Have its files in the system's cache, wherever others have pushed them out while it waited for its turn."""
        for path in self.folder.rglob("*"):
            with suppress(OSError), path.open("rb") as file:
                while file.read(WARM_BYTES):
                    pass

    def end(self) -> None:
        self._cleanup.close()


Figure = Callable[[Entry, Plan], float]


class SideBySide:
    """One run over all peers."""

    def __init__(self, options: Options, command: str, tell: Callable[[str], None]) -> None:
        self.options, self.tell = options, tell
        self.run = Run(command, options.durability, describe_machine(), {})
        for name in options.peers:
            try:
                peer = peer_class(name)
            except ImportError as error:
                tell(f"without {name}: {error}")
                continue
            if options.durability in peer.durabilities:
                self.run.versions[name] = package_version(peer)
            else:
                tell(f"without {name}: it has no durability {options.durability!r}")

    def parts(self) -> Iterator[Run]:
        """The run as it grows, after each of its parts: what an hour measured is not lost by its last minute."""
        peers = tuple(self.run.versions)
        slow: dict[str, str] = {}
        for size in self.options.sizes:
            self.at_size(size, peers, slow)
            yield self.run
        for size in self.options.big_sizes:
            self.at_size(size, tuple(name for name in peers if name in (OURS, FLOOR)), slow)
            yield self.run
        if self.options.shared_size:
            self.many_at_once(peers)
            yield self.run
        if self.options.expiring:
            self.expiry(peers)
            yield self.run

    # --- the parts of a run -----------------------------------------------------------------------------------------

    def at_size(self, size: int, peers: Sequence[str], slow: dict[str, str]) -> None:
        """`slow`: those that could not load a smaller size within the budget, and why."""
        with self.entries(peers) as entries:
            for entry in entries:
                entry.out = slow.get(entry.name)
            self.load(entries, size, LOADS if size <= LARGEST_LOADED_OFTEN else 1, "load")
            slow.update({entry.name: entry.out for entry in entries if entry.out})
            for work in IN_ORDER:
                for entry in entries:
                    if not entry.out:
                        entry.warm()
                rounds = 1 if work in ONCE else self.options.rounds
                self.in_turn(entries, work, size, rounds, self.asking(work))

    def load(self, entries: list[Entry], size: int, rounds: int, work: str | None) -> None:
        def new_and_loaded(entry: Entry, plan: Plan) -> float:
            entry.begin()
            taken: float = entry.worker.ask(self.options.seconds("load", size), "load", plan)
            entry.worker.stop()  # so that the next is a fresh one, whose memory is its own
            return taken

        self.in_turn(entries, work, size, min(rounds, self.options.rounds), new_and_loaded)

    def many_at_once(self, peers: Sequence[str]) -> None:
        size, rounds = self.options.shared_size, self.options.rounds
        with self.entries(peers) as entries:
            self.load(entries, size, 1, None)
            for kind in ("read", "mixed"):
                for threads in self.options.at_once:
                    figure = self.asking("threads", kind, threads)
                    self.in_turn(entries, f"{kind} in threads", threads, rounds, figure, size)
            for entry in entries:
                entry.worker.stop()
                entry.crew = [entry.another_worker() for _ in range(max(self.options.at_once))]
            for kind in ("read", "mixed"):
                for processes in self.options.at_once:
                    figure = partial(self.together, kind, processes)
                    self.in_turn(entries, f"{kind} in processes", processes, rounds, figure, size)

    def together(self, kind: str, processes: int, entry: Entry, plan: Plan) -> float:
        if not entry.peer.many_processes:
            raise NotOfferedError("not for many processes")
        crew = entry.crew[:processes]
        seconds = self.options.seconds("calls", plan.size)
        plans = [Plan(plan.size, plan.round * 100 + number) for number in range(processes)]
        for worker, own in zip(crew, plans, strict=True):
            worker.ask(seconds, "calls", own, "read", 0.0)  # has it open
        for worker, own in zip(crew, plans, strict=True):
            worker.begin("calls", own, kind)
        return float(sum(worker.answer(seconds) for worker in crew) / SCALE_SECONDS)

    def expiry(self, peers: Sequence[str]) -> None:
        size = self.options.expiring
        with self.entries(peers) as entries:
            for entry in entries:
                entry.begin()
                outcome: dict[str, Any] = {}
                try:
                    outcome = entry.worker.ask(EXPIRY_SECONDS, "expire", Plan(size, 0))
                except (NotOfferedError, OverBudgetError, FailedError) as error:
                    outcome = dict.fromkeys(EXPIRY, str(error))
                for work, figure in outcome.items():
                    found = ([], figure) if isinstance(figure, str) else ([figure], None)
                    self.run.cells.append(Cell(work, entry.name, size, *found))
                self.tell(f"expiry of {size:,}: {entry.name}")
                entry.end()

    # --- rounds -----------------------------------------------------------------------------------------------------

    @contextmanager
    def entries(self, peers: Sequence[str]) -> Iterator[list[Entry]]:
        with ExitStack() as stack:
            entries = [Entry(name, self.options.durability) for name in peers]
            for entry in entries:
                stack.callback(entry.end)
            yield entries

    def asking(self, request: str, *arguments: Any) -> Figure:
        def figure(entry: Entry, plan: Plan) -> float:
            return float(entry.worker.ask(self.options.seconds(request, plan.size), request, plan, *arguments))

        return figure

    def in_turn(
        self, entries: list[Entry], work: str | None, at: int, rounds: int, figure: Figure, size: int | None = None
    ) -> None:
        """Every peer once a round, on so many documents; a cell for each, unless there is no name for the work."""
        cells = {entry.name: Cell(work or "", entry.name, at, [], entry.out) for entry in entries}
        spent = dict.fromkeys(cells, 0.0)
        for number in range(rounds):
            for entry in entries:
                cell = cells[entry.name]
                if cell.empty is None and spent[entry.name] <= self.options.budget:
                    start = time.monotonic()
                    self.fill(cell, entry, figure, Plan(size or at, number))
                    spent[entry.name] += time.monotonic() - start
        if work:
            self.run.cells.extend(cells.values())
            self.tell(f"{work}, {at:,}")

    def fill(self, cell: Cell, entry: Entry, figure: Figure, plan: Plan) -> None:
        try:
            cell.rounds.append(figure(entry, plan))
        except NotOfferedError as reason:
            cell.empty = str(reason)
        except OverBudgetError as reason:
            cell.empty = entry.out = str(reason)
        except FailedError as error:
            cell.empty = f"failed: {error}"
            self.tell(f"{cell.peer} failed at {cell.work}, {cell.at:,}: {error}")
