"""Every error a user can meet. All share one base, and have the built-in parent that fits."""

import shlex


def shown(value: object) -> str:
    """A value for a message: short, and whatever it is (the repr of an integer of 5,000 digits raises)."""
    try:
        text = repr(value)
    except Exception:
        return f"a {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:77]}…"


def command(words: str, store: str, *arguments: str) -> str:
    """A command on a store for a message, as a shell would take it: a URL may have a `&` in it."""
    line = f"ttlstore {words} {shlex.join([store, *arguments])}"
    return f'"{line}"' if "'" in line else f"'{line}'"


class TtlStoreError(Exception):
    """The base of every error this package raises."""


class CollectionExists(TtlStoreError, ValueError):
    """A collection of this name is there already."""


class CollectionNotFound(TtlStoreError, LookupError):
    """There is no collection of this name, or it was dropped."""


def dropped(collection: str) -> CollectionNotFound:
    """What is raised for a collection that was there."""
    return CollectionNotFound(f"the collection {collection!r} was dropped")


class DocumentRefused(TtlStoreError, ValueError):
    """A document that cannot be stored as it is. The base of what is raised for one, never raised itself.

    `position` tells which document of a bulk write it is, counted from 0.
    """

    position: int = 0


class DocumentExists(DocumentRefused):
    """A live document with this id (and partition) is there already."""


class DocumentNotFound(TtlStoreError, LookupError):
    """There is no live document with this id (and partition): it was never there, was deleted, or has expired."""


class PreconditionFailed(TtlStoreError):
    """`if_match` names another version of the document than the one that is stored."""


class InvalidTtl(DocumentRefused):
    """A `ttl` or `default_ttl` that is not a valid number of seconds, or that the collection cannot take."""


class InvalidDocument(DocumentRefused):
    """The document is not JSON, or its id or partition key is not valid. Nothing was written."""


class PartitionRequired(TtlStoreError, TypeError):
    """The collection is partitioned by a property other than the id: pass `partition=`."""


class InvalidPatch(TtlStoreError, ValueError):
    """An operation of a patch is malformed or does not apply to the document. Nothing was written."""


class InvalidCollection(TtlStoreError, ValueError):
    """A collection's name, partition key or indexing policy is not valid."""


class QueryError(TtlStoreError, ValueError):
    """The query is not valid, or its parameters do not fit it.

    `line` and `column` count from 1, and are None where the error has no place in the text.
    """

    line: int | None = None
    column: int | None = None


class CannotOpen(TtlStoreError, OSError):
    """The target cannot be opened: a directory, an unreadable or read-only file, a URL of an unknown kind."""


class NotAStore(TtlStoreError, ValueError):
    """The file is something else than a ttlstore. It was not touched."""


class SchemaOutdated(TtlStoreError):
    """The store's schema is older than this version of ttlstore, and `migrate=False` forbids upgrading it."""


class SchemaTooNew(TtlStoreError):
    """The store was written by a newer version of ttlstore."""


class RevisionNotFound(TtlStoreError, LookupError):
    """This version of ttlstore has no migration of this name, or none in this direction."""


class StoreBusy(TtlStoreError, TimeoutError):
    """Another connection held the lock for longer than `busy_timeout`. Nothing was written; try again."""


class StoreClosed(TtlStoreError, ValueError):
    """The store was closed."""


class StoreCorrupt(TtlStoreError):
    """The file is damaged. `ttlstore check` tells more; restore a backup."""


class StoreFull(TtlStoreError, OSError):
    """There is no room left to write. Nothing was written; what is stored can still be read."""


class StoreFailed(TtlStoreError, OSError):
    """The operating system or the database failed in a way that has no error of its own here."""


class ConnectionLost(StoreFailed, ConnectionError):
    """The connection to the server was lost during the call. The next call makes a new one."""


class NotSupported(TtlStoreError, NotImplementedError):
    """The database that keeps the store cannot do this. The message names what can."""


class StoreReadOnly(TtlStoreError, OSError):
    """The store's file or the medium it lies on cannot be written."""
