"""Stores as the commands open them: never made by a typing error, never changed behind the operator's back."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ttlstore.store import Store


def opened(target: str, *, at: float | None = None) -> "Store":
    """The store that is there, as it is now or as it would be `at` a time to come."""
    import ttlstore

    # No vacuum: at a time to come it would delete what is live now.
    if at is None:
        return ttlstore.open(target, migrate=False, vacuum=False)
    return ttlstore.open(target, migrate=False, vacuum=False, clock=lambda: at)
