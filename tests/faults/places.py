"""Where the stores are that faults happen to, and what strikes there: a process, a client or the server."""

import itertools
import math
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import psycopg

from tests.faults.trial import Trial
from tests.faults.victim import PATIENCE_SECONDS, Victim

_numbers = itertools.count()


class Place(Protocol):
    """Has room for one store at a time."""

    target: str

    def clear(self) -> None:
        """Take the store away."""

    def strike(self, victim: Victim, seconds: float) -> list[Any]:
        """Let a process work here for so long, until its end comes. All that it told."""

    def rounds(self, short: int) -> Iterator[int]:
        """As those of the trial; fewer in the short form where each takes long."""


class Folder:
    """For a file. The process that works on it is killed."""

    def __init__(self, trial: Trial, folder: Path) -> None:
        folder.mkdir()
        self._trial = trial
        self._folder = folder
        self.target = str(folder / "store.db")

    def clear(self) -> None:
        for file in self._folder.iterdir():
            file.unlink()

    def strike(self, victim: Victim, seconds: float) -> list[Any]:
        self._trial.count(kills=1)
        return victim.killed_after(seconds)

    def rounds(self, short: int) -> Iterator[int]:
        return self._trial.rounds(short)


class Schema:
    """For a store on a server, whose client is killed."""

    _shorter = 3  # the short form

    def __init__(self, trial: Trial, url: str) -> None:
        trial.engine = description(url)
        self._trial = trial
        self._server = url
        self._name = f"fault_{os.getpid()}_{next(_numbers)}"
        self.target = f"{url}{'&' if '?' in url else '?'}schema={self._name}&application_name={self._name}"

    def clear(self) -> None:
        with psycopg.connect(self._server, autocommit=True) as by_hand:
            by_hand.execute(f"DROP SCHEMA IF EXISTS {self._name} CASCADE")

    def strike(self, victim: Victim, seconds: float) -> list[Any]:
        self._trial.count(kills=1)
        return self.settled(victim.killed_after(seconds))

    def rounds(self, short: int) -> Iterator[int]:
        return self._trial.rounds(math.ceil(short / self._shorter))

    def connections(self) -> list[int]:
        """The server's processes that work for this store."""
        found = "SELECT pid FROM pg_stat_activity WHERE application_name = %s"
        with psycopg.connect(self._server) as by_hand:
            return [pid for (pid,) in by_hand.execute(found, (self._name,))]

    def cut_connections(self) -> None:
        cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s"
        with psycopg.connect(self._server) as by_hand:
            by_hand.execute(cut, (self._name,))

    def settled(self, told: list[Any]) -> list[Any]:
        """What a client told, once the server has done what it was told last, without asking who still listens."""
        until(lambda: not self.connections())
        return told


class Doomed(Schema):
    """For a store on a server of our own, which crashes. The client that works meanwhile is killed when it is back."""

    _shorter = 12

    def __init__(self, trial: Trial, server: Any) -> None:
        super().__init__(trial, server.get_uri())
        self._cluster = server
        self._chance = trial.random

    def strike(self, victim: Victim, seconds: float) -> list[Any]:
        return self.settled(victim.bereaved_after(seconds, self.crash))

    def crash(self) -> None:
        """As a server does whose process is killed, or one of those that work for clients; until it is back."""
        self._trial.count(crashes_of_the_server=1)
        whom = self._chance.choice(["server", "server at once", "client's"])
        of_clients = self.connections()
        if whom == "client's" and of_clients:
            with psycopg.connect(self._server) as another:
                os.kill(self._chance.choice(of_clients), signal.SIGKILL)
                until(lambda: not _goes_on(another))  # the server ends all the others, and starts anew
        else:
            pid = self._cluster.get_pid()
            os.kill(pid, signal.SIGKILL if whom == "server at once" else signal.SIGQUIT)
            until(lambda: not _is_running(pid))
            until(self._starts)
        until(self._answers)

    def _starts(self) -> bool:
        try:
            self._cluster.ensure_postgres_running()
        except subprocess.SubprocessError:  # what is left of the old one has not noticed yet
            return False
        return True

    def _answers(self) -> bool:
        try:
            psycopg.connect(self._server).close()
        except psycopg.OperationalError:
            return False
        return True


def _goes_on(connection: psycopg.Connection) -> bool:
    try:
        connection.execute("SELECT 1")
    except psycopg.OperationalError:
        return False
    return True


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def description(url: str) -> str:
    """What a server is, with its version."""
    with psycopg.connect(url) as by_hand:
        return f"PostgreSQL {by_hand.info.parameter_status('server_version')}"


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        threading.Event().wait(0.001)
