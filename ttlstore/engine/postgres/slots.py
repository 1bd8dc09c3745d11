"""How many of something may be in use at a time, as slots: who takes one gives it back, and whoever waits is next.

Not a semaphore, nor a queue that all wait at: a thread that gives a slot back and at once asks for another is faster
than any that was woken, so of more busy threads than slots the same few got them all. Besides, a semaphore is Python,
and what a signal's handler raises on the way may leave it locked. A slot that such an exception drops, before anybody
can be made to give it back, comes back by itself.
"""

import weakref
from collections import deque
from contextlib import suppress
from queue import Empty, SimpleQueue


class Slot:
    """The right to use one. It is put back by whoever has it, or else when nobody has it any more."""

    __slots__ = ("_slots",)

    def __init__(self, slots: "Slots") -> None:
        self._slots = weakref.ref(slots)

    def __del__(self) -> None:
        slots = self._slots()
        if slots is not None:
            slots.give(Slot(slots))


class Slots:
    """So many, handed on in the order in which they were asked for."""

    def __init__(self, number: int) -> None:
        # Neither is ever locked, and a slot may come back amid anything: every step is one of the interpreter's own.
        self._free: SimpleQueue[Slot] = SimpleQueue()
        self._waiting: deque[SimpleQueue[Slot]] = deque()  # for each who waits, where a slot is laid
        for _ in range(number):
            self._free.put(Slot(self))

    def take(self, seconds: float = 0.0) -> Slot | None:
        """One, as soon as it is this thread's turn; None if that does not come in time."""
        if not self._waiting:
            with suppress(Empty):
                return self._free.get_nowait()
        place: SimpleQueue[Slot] = SimpleQueue()
        try:
            self._waiting.append(place)
            self._serve()  # one may have come back before anybody was seen to wait
            return place.get(timeout=seconds)
        except Empty:
            return None
        finally:
            with suppress(ValueError, IndexError):  # not there any more, or others came and went meanwhile
                self._waiting.remove(place)
            # What is laid there after all comes back. Now, though an exception may keep all that is known here.
            del place

    def give(self, slot: Slot) -> None:
        self._free.put(slot)
        if self._waiting:
            self._serve()

    def _serve(self) -> None:
        """Hand on what is free, as long as somebody waits."""
        while self._waiting:
            try:
                slot = self._free.get_nowait()
            except Empty:
                return
            try:
                self._waiting.popleft().put(slot)
            except IndexError:  # others served them
                self._free.put(slot)
