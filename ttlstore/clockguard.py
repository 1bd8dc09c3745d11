"""Tells a clock that was set from one that runs, so that a wrong clock destroys nothing."""

import time

from ttlstore.ttl import Clock

TOLERANCE_SECONDS = 10.0  # of a step: time servers correct less than that all the time
TOLERANCE_RATE = 0.001  # of the time passed: twice what a clock is slewed by at most


def boot_clock() -> float:
    """Seconds that nobody sets, and that go on while the machine sleeps: a suspended laptop is not a jump."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()  # counts sleep where there is no boot-time clock


class ClockGuard:
    """Compares the wall clock with one that cannot be set, from when it is made."""

    def __init__(self, wall: Clock, steady: Clock = boot_clock) -> None:
        self._wall = wall
        self._steady = steady
        self.trust()

    def trust(self) -> None:
        """Take the wall clock to be right as it is."""
        self._checked = self._steady()
        self._difference = self._wall() - self._checked

    def jump(self) -> float:
        """By how many seconds the wall clock was set forward; 0.0 while it runs.

        It may drift: what is tolerated becomes the new measure. It may be set back, and then forward to where it was.
        """
        steady = self._steady()
        ahead = self._wall() - steady - self._difference
        tolerated = TOLERANCE_SECONDS + TOLERANCE_RATE * (steady - self._checked)
        if ahead > tolerated:
            return ahead
        if ahead >= -tolerated:
            self._checked = steady
            self._difference += ahead
        return 0.0
