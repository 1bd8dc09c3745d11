"""What happens around a fork, in order: first the threads leave the engines, then the engines close their connections.

Hooks of the interpreter's own run in the order in which modules happened to be imported. Here the order is said.
"""

import os
import threading
import weakref
from collections.abc import Callable
from typing import Protocol

PATIENCE_SECONDS = 5.0  # for the calls and transactions of other threads, before a fork goes ahead without


class Forkable(Protocol):
    """Something that must not be in the middle of its work when the process forks."""

    def before_fork(self) -> None: ...

    def after_fork_in_parent(self) -> None: ...

    def after_fork_in_child(self) -> None: ...


threads: weakref.WeakSet[Forkable] = weakref.WeakSet()
engines: weakref.WeakSet[Forkable] = weakref.WeakSet()

_stopped: list[Forkable] = []  # between the two sides of a fork: the same ones afterwards
_forking = threading.RLock()  # held between the two sides: two threads may fork at once


def _before() -> None:
    _forking.acquire()
    _stopped.extend([*threads, *engines])
    _tell(_stopped, lambda each: each.before_fork())


def _after_in_parent() -> None:
    stopped = _stopped[::-1]
    _stopped.clear()
    try:
        _tell(stopped, lambda each: each.after_fork_in_parent())
    finally:
        _forking.release()


def _after_in_child() -> None:
    global _forking
    _forking = threading.RLock()
    stopped = _stopped[::-1]
    _stopped.clear()
    _tell(stopped, lambda each: each.after_fork_in_child())


def _tell(all: list[Forkable], tell: Callable[[Forkable], None]) -> None:
    """Everyone, also if one of them fails: the others must not go into a fork unprepared, or stay stopped after it."""
    errors: list[BaseException] = []
    for each in all:
        try:
            tell(each)
        except BaseException as error:
            errors.append(error)
    if errors:
        raise errors[0]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
