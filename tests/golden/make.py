"""Make the golden database of the present revision: python -m tests.golden.make

One is made when a revision is made, and never again: it shows what stores of that revision look like, and every later
version must open it. It is refused where it is there already.
"""

import sys
from pathlib import Path
from typing import Any

import ttlstore
from ttlstore import IndexingPolicy, Store
from ttlstore.schema import HEAD
from ttlstore.testing import FakeClock

WRITTEN_AT = 1_700_000_000.25

DOCUMENTS: list[dict[str, Any]] = [
    {
        "id": "inherits",
        "text": "ä 😀 \0 '",
        "numbers": [0, -1, 1.5, 9223372036854775807],
        "nested": {"": {"a/b": None}},
    },
    {"id": "own", "ttl": 60},
    {"id": "never", "ttl": -1},
    {"id": "expired", "ttl": 1},
]


def fill(store: Store) -> None:
    """What is in every golden database; what a later revision adds is added here under a new name."""
    sessions = store.create_collection("sessions", default_ttl=3600)
    sessions.create_many(DOCUMENTS)
    store.create_collection("off").create_many(DOCUMENTS)
    store.create_collection("on", default_ttl=-1, indexing="lazy").create_many(DOCUMENTS)
    orders = store.create_collection(
        "orders", partition_key="/customer/id", indexing=IndexingPolicy("consistent", ("/total", ("/a", "/b")))
    )
    orders.create_many({"id": "same", "customer": {"id": key}, "total": 10} for key in ("x", 1, True, None))
    store.create_collection("dropped").create({"id": "a"})
    store.delete_collection("dropped")
    store.create_collection("none", indexing="none")


def main() -> None:
    path = Path(__file__).parent / f"{HEAD}.db"
    if path.exists():
        sys.exit(f"{path} is there already; a golden database is never made again")
    with ttlstore.open(path, clock=FakeClock(WRITTEN_AT), vacuum=False) as store:
        fill(store)


if __name__ == "__main__":
    main()
