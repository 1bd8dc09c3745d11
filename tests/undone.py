"""A transaction that ends in an error."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ttlstore import Store


class Undone(Exception):
    """Raised by nobody else."""


@contextmanager
def undone(store: Store) -> Iterator[None]:
    """What happens inside is taken back."""
    with suppress(Undone), store.transaction():
        yield
        raise Undone
