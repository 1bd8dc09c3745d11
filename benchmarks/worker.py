"""A process for each peer, so that none disturbs another, its memory can be told, and one that takes too long ended."""

import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks import work
from benchmarks.expiry import expire
from benchmarks.peers import Durability, NotOfferedError, Peer, peer_class
from benchmarks.work import Plan

_processes = multiprocessing.get_context("spawn")  # a forked child would bring along what others imported

ANSWER_SECONDS = 5.0  # that a worker has to end by itself


class OverBudgetError(Exception):
    """A peer took longer than it may."""


class FailedError(Exception):
    """A peer raised an error."""


class Worker:
    """A peer in a process of its own, which is started when it is first asked for something."""

    def __init__(self, name: str, folder: Path, durability: Durability) -> None:
        self._arguments = (name, folder, durability)
        self._process: Any = None

    def start(self) -> None:
        self._connection, theirs = _processes.Pipe()
        self._process = _processes.Process(target=serve, args=(theirs, *self._arguments), daemon=True)
        self._process.start()
        theirs.close()

    def begin(self, request: str, plan: Plan, *arguments: Any) -> None:
        if self._process is None:
            self.start()
        self._connection.send((request, plan, arguments))

    def answer(self, seconds: float) -> Any:
        """What the request came to. Raises NotOfferedError, OverBudgetError or FailedError."""
        if not self._connection.poll(seconds):
            self.stop(kill=True)
            raise OverBudgetError(f"over {seconds:.0f} s")
        try:
            outcome, value = self._connection.recv()
        except EOFError:
            self.stop(kill=True)
            raise FailedError("the process ended") from None
        if outcome != "value":
            raise {"empty": NotOfferedError, "failed": FailedError}[outcome](value)
        return value

    def ask(self, seconds: float, request: str, plan: Plan, *arguments: Any) -> Any:
        self.begin(request, plan, *arguments)
        return self.answer(seconds)

    def stop(self, *, kill: bool = False) -> None:
        if self._process is None:
            return
        if not kill:
            self._connection.send(None)
            self._process.join(ANSWER_SECONDS)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._connection.close()
        self._process = None


# --- in the process -------------------------------------------------------------------------------------------------


def serve(connection: Connection, name: str, folder: Path, durability: Durability) -> None:
    opened = Opened(name, folder, durability)
    while (request := connection.recv()) is not None:
        try:
            connection.send(("value", opened.do(*request)))
        except NotOfferedError as reason:
            connection.send(("empty", str(reason)))
        except Exception as error:  # whatever a peer raises: it is a cell of the table, and not the end of the run
            connection.send(("failed", f"{type(error).__name__}: {error}"))
    opened.close()


class Opened:
    """The peer of this process, opened by the first request."""

    def __init__(self, name: str, folder: Path, durability: Durability) -> None:
        self.make: Callable[[], Peer] = lambda: peer_class(name)(folder, durability)
        peer_class(name)  # imported
        self.peer: Peer | None = None

    def do(self, request: str, plan: Plan, arguments: tuple[Any, ...]) -> Any:
        if self.peer is None:
            plan.chosen()  # of the memory that this takes, everybody takes the same
            self.peer = self.make()
            self.memory = work.highest_memory()
        match request:
            case "open":
                return self.reopen(self.peer, plan)
            case "memory":
                if self.peer.in_a_server:
                    raise NotOfferedError("in the server's process")
                return work.highest_memory() - self.memory
            case "expire":
                return expire(self.peer, plan.size)
            case "threads":
                return work.in_threads(self.peer, plan, *arguments)
            case "calls":
                return work.calls_in_time(self.peer, plan, *arguments)
        return getattr(work, request)(self.peer, plan)

    def reopen(self, peer: Peer, plan: Plan) -> float:
        peer.close()
        id = plan.chosen(1)[0]["id"]
        start = time.perf_counter()
        self.peer = self.make()
        self.peer.read(id)
        return time.perf_counter() - start

    def close(self) -> None:
        if self.peer is not None:
            self.peer.close()
