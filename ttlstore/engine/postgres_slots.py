"""How many of something may be in use at a time, as a queue of slots: who takes one gives it back.

Not a semaphore: it is Python, which makes taking and giving slow, and what a signal's handler raises on the way may
leave it locked. A slot that such an exception drops, before anybody can be made to give it back, comes back by itself.
"""

import weakref
from queue import SimpleQueue


class Slot:
    """The right to use one. It is put back by whoever has it, or else when nobody has it any more."""

    __slots__ = ("_free",)

    def __init__(self, free: SimpleQueue["Slot"]) -> None:
        self._free = weakref.ref(free)

    def __del__(self) -> None:
        free = self._free()
        if free is not None:
            free.put(Slot(free))


def slots(number: int) -> SimpleQueue[Slot]:
    """So many, of which none is taken."""
    free: SimpleQueue[Slot] = SimpleQueue()
    for _ in range(number):
        free.put(Slot(free))
    return free
