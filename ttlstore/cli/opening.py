"""Stores as the commands open them: never made by a typing error, never changed behind the operator's back."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ttlstore import Store, VacuumPolicy
    from ttlstore.ttl import Clock

clock: "Clock" = time.time  # of every command

At = Callable[[float], float]
"""A time to come, by the time that it is."""


def opened(target: str, *, at: "At | None" = None, vacuum: "bool | VacuumPolicy" = False) -> "Store":
    """The store that is there, as it is now or as it would be `at` a time to come, where nothing may be written.

    Without a vacuum unless it is asked for: a command must not delete by the way what could still be recovered.
    """
    import ttlstore

    if at is None:
        return ttlstore.open(target, migrate=False, vacuum=vacuum, clock=clock)
    with ttlstore.open(target, migrate=False, vacuum=False, clock=clock) as store:
        then = at(store.now())  # a server has a clock of its own
    return ttlstore.open(target, migrate=False, vacuum=vacuum, clock=lambda: then)
