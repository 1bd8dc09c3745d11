"""One process at a time: a lock on a file, which the operating system takes back from a process that dies."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

try:
    import fcntl
except ImportError:  # Windows
    import msvcrt

    def _take(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]

else:

    def _take(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


_held: set[int] = set()


@contextmanager
def turn(path: str) -> Iterator[bool]:
    """Yield whether it is this process's turn; its end is the end of the block.

    On a file of its own. On the database, closing the descriptor would drop the locks that SQLite holds there.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except PermissionError:  # another user made it; a lock asks for no more than reading
        descriptor = os.open(path, os.O_RDONLY)
    _held.add(descriptor)
    try:
        try:
            _take(descriptor)
        except OSError:
            yield False
        else:
            yield True
    finally:
        if descriptor in _held:
            _held.discard(descriptor)
            os.close(descriptor)


def _give_up_inherited() -> None:
    """A forked child shares its parent's locks, and would keep them after the parent's end."""
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_give_up_inherited)
