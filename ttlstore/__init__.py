"""A persistent local document store whose documents expire, exact to the millisecond.

>>> import ttlstore
>>> with ttlstore.open(":memory:") as store:
...     carts = store.create_collection("carts", default_ttl=3600)
...     cart = carts.create({"id": "c1", "items": ["tea"]})
...     carts.expiry("c1").ttl
3600
"""

from ttlstore.collection import Collection
from ttlstore.errors import (
    CannotOpen,
    CollectionExists,
    CollectionNotFound,
    DocumentExists,
    DocumentNotFound,
    InvalidCollection,
    InvalidDocument,
    InvalidPatch,
    InvalidTtl,
    NotAStore,
    PartitionRequired,
    PreconditionFailed,
    QueryError,
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
from ttlstore.indexing import IndexingPolicy
from ttlstore.store import Store, open
from ttlstore.ttl import Expiry
from ttlstore.vacuum import VacuumPolicy, VacuumReport

__all__ = [
    "CannotOpen",
    "Collection",
    "CollectionExists",
    "CollectionNotFound",
    "DocumentExists",
    "DocumentNotFound",
    "Expiry",
    "IndexingPolicy",
    "InvalidCollection",
    "InvalidDocument",
    "InvalidPatch",
    "InvalidTtl",
    "NotAStore",
    "PartitionRequired",
    "PreconditionFailed",
    "QueryError",
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
