"""A persistent local document store whose documents expire, exact to the millisecond.

>>> import ttlstore
>>> with ttlstore.open(":memory:") as store:
...     carts = store.create_collection("carts", default_ttl=3600)
...     cart = carts.create({"id": "c1", "items": ["tea"]})
...     carts.expiry("c1").ttl
3600
"""

from importlib import import_module
from typing import TYPE_CHECKING

from ttlstore.errors import (
    CannotOpen,
    CollectionExists,
    CollectionNotFound,
    ConnectionLost,
    DocumentExists,
    DocumentNotFound,
    InvalidCollection,
    InvalidDocument,
    InvalidPatch,
    InvalidTtl,
    NotAStore,
    NotSupported,
    PartitionRequired,
    PreconditionFailed,
    QueryError,
    RevisionNotFound,
    SchemaOutdated,
    SchemaTooNew,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreFailed,
    StoreFull,
    StoreReadOnly,
    TtlStoreError,
)

if TYPE_CHECKING:
    from ttlstore.collection import Collection
    from ttlstore.indexing import IndexingPolicy
    from ttlstore.query.explain import Explanation
    from ttlstore.query.pages import Page
    from ttlstore.store import Store, open
    from ttlstore.ttl import Expiry
    from ttlstore.vacuum import VacuumPolicy, VacuumReport
else:
    # These are imported when first used: SQLAlchemy below them takes 0.4 s, and `ttlstore --help` must not wait for it.
    _HOMES = {
        "Collection": "collection",
        "Expiry": "ttl",
        "Explanation": "query.explain",
        "IndexingPolicy": "indexing",
        "Page": "query.pages",
        "Store": "store",
        "VacuumPolicy": "vacuum",
        "VacuumReport": "vacuum",
        "open": "store",
    }

    def __getattr__(name):
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        return value

    def __dir__():
        return sorted({*globals(), *_HOMES})


__all__ = [
    "CannotOpen",
    "Collection",
    "CollectionExists",
    "CollectionNotFound",
    "ConnectionLost",
    "DocumentExists",
    "DocumentNotFound",
    "Expiry",
    "Explanation",
    "IndexingPolicy",
    "InvalidCollection",
    "InvalidDocument",
    "InvalidPatch",
    "InvalidTtl",
    "NotAStore",
    "NotSupported",
    "Page",
    "PartitionRequired",
    "PreconditionFailed",
    "QueryError",
    "RevisionNotFound",
    "SchemaOutdated",
    "SchemaTooNew",
    "Store",
    "StoreBusy",
    "StoreClosed",
    "StoreCorrupt",
    "StoreFailed",
    "StoreFull",
    "StoreReadOnly",
    "TtlStoreError",
    "VacuumPolicy",
    "VacuumReport",
    "open",
]
