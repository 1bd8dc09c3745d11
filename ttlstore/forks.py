"""What happens around a fork, in order: first the threads leave the engines, then the engines close their connections.

Hooks of the interpreter's own run in the order in which modules happened to be imported. Here the order is said.
"""

import os
import weakref
from typing import Protocol


class Forkable(Protocol):
    """Something that must not be in the middle of its work when the process forks."""

    def before_fork(self) -> None: ...

    def after_fork_in_parent(self) -> None: ...

    def after_fork_in_child(self) -> None: ...


threads: weakref.WeakSet[Forkable] = weakref.WeakSet()
engines: weakref.WeakSet[Forkable] = weakref.WeakSet()

_stopped: list[Forkable] = []  # between the two sides of a fork: the same ones afterwards


def _before() -> None:
    for group in (threads, engines):
        for each in list(group):
            _stopped.append(each)
            each.before_fork()


def _after_in_parent() -> None:
    while _stopped:
        _stopped.pop().after_fork_in_parent()


def _after_in_child() -> None:
    while _stopped:
        _stopped.pop().after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
