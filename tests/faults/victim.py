"""Processes that are killed, and the recorder outside of them that knows what they had been told was done."""

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from ttlstore import CannotOpen, ConnectionLost

# A server without threads or stores of its own forks them: a process like any other, in 10 ms instead of 600.
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["tests.faults.works"])

PATIENCE_SECONDS = 60.0  # with a process that should have answered long ago

_ENDED = (EOFError, OSError)  # OSError: in the middle of a word

LOST = (ConnectionLost, CannotOpen)  # by the end of a server
BEREAVED = 3  # the status of a process that ended by it

Tell = Callable[[object], None]


def _run(work: Callable[..., None], recorder: Connection, arguments: tuple[Any, ...]) -> None:
    try:
        work(recorder.send, *arguments)
    except LOST:
        sys.exit(BEREAVED)
    finally:
        recorder.close()


class Victim:
    """A process at work on a store. What it tells is in the pipe before its next step: no kill can take it back."""

    def __init__(self, work: Callable[..., None], *arguments: Any) -> None:
        self._recorder, its_end = _processes.Pipe(duplex=False)
        self._process = _processes.Process(target=_run, args=(work, its_end, arguments))
        self._process.start()
        its_end.close()
        self.told: list[Any] = []

    def hears(self) -> Any:
        """What it tells next, however long that takes."""
        assert self._recorder.poll(PATIENCE_SECONDS), "it says nothing"
        self.told.append(self._recorder.recv())
        return self.told[-1]

    def listens(self, seconds: float) -> None:
        """To what it tells for so long, from its first word on."""
        if not self.told:
            self.hears()
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and self._recorder.poll(left):
            self.told.append(self._recorder.recv())

    def killed_after(self, seconds: float) -> list[Any]:
        """Listen for so long, then kill -9, unless it has ended by then. All that it told."""
        with suppress(*_ENDED):
            self.listens(seconds)
        self._kill()
        return self._buried(0, -signal.SIGKILL)

    def bereaved_after(self, seconds: float, crash: Callable[[], None]) -> list[Any]:
        """As `killed_after`, but before it is killed, so is the server that it talks to."""
        with suppress(*_ENDED):
            self.listens(seconds)
        crash()
        self._kill()
        return self._buried(0, -signal.SIGKILL, BEREAVED)

    def _kill(self) -> None:
        with suppress(ProcessLookupError):  # it has ended by itself
            os.kill(self._pid(), signal.SIGKILL)
        self._drain()

    def ended(self) -> list[Any]:
        """Wait for its end, which must be a good one. All that it told."""
        self._drain()
        return self._buried(0)

    def suspend(self) -> None:
        os.kill(self._pid(), signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self._pid(), signal.SIGCONT)

    def _pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def _drain(self) -> None:
        try:
            while self._recorder.poll(PATIENCE_SECONDS):
                self.told.append(self._recorder.recv())
        except _ENDED:
            return
        raise AssertionError("it does not end")

    def _buried(self, *statuses: int) -> list[Any]:
        self._process.join(PATIENCE_SECONDS)
        assert self._process.exitcode in statuses, self._process.exitcode
        self._process.close()
        self._recorder.close()
        return self.told
