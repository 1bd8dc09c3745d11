"""Waiting for SQLite's locks, and its errors as ours."""

import sqlite3
import time
from collections.abc import Callable
from typing import TypeVar

from ttlstore.engine.json import IndexGone
from ttlstore.engine.sqlite.file import has_room
from ttlstore.errors import (
    CannotOpen,
    InvalidDocument,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreFailed,
    StoreFull,
    StoreReadOnly,
    TtlStoreError,
)

T = TypeVar("T")

SHORTEST_PAUSE_SECONDS = 0.0005  # before asking again for a lock: shorter than the gap between the vacuum's batches
IMPATIENT_SECONDS = 0.05  # for so long it is asked for that often
LONGEST_PAUSE_SECONDS = 0.01  # what a long wait may cost after the lock is free

# UnicodeDecodeError: where SQLite's message quotes damaged text.
DRIVER_ERRORS = (sqlite3.Error, UnicodeDecodeError)
DriverError = sqlite3.Error | UnicodeDecodeError
_WRITING_FAILED = (sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_TRUNCATE)


class Patience:
    """With the locks of one store."""

    def __init__(self, name: str, path: str | None, busy_timeout: float) -> None:
        self._name = name
        self._path = path
        self._busy_timeout = busy_timeout

    def run(self, action: Callable[[], T]) -> T:
        """Run until the lock is free, for `busy_timeout` at most.

        SQLite could wait by itself. But it sleeps for up to 0.1 s at a time, not everywhere, and a statement that it
        made wait would still count from the moment when the call began.
        """
        start = time.monotonic()
        pause = SHORTEST_PAUSE_SECONDS
        while True:
            try:
                return action()
            except DRIVER_ERRORS as error:
                waited = time.monotonic() - start
                if not is_busy(error) or waited + pause > self._busy_timeout:
                    raise self.translated(error) from error
            time.sleep(pause)
            if waited > IMPATIENT_SECONDS:
                pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

    def exhausted(self) -> StoreBusy:
        return StoreBusy(f"{self._name} stayed locked for {self._busy_timeout:g} s (busy_timeout); nothing was written")

    def translated(self, error: DriverError) -> TtlStoreError:
        """The driver's error as one of ours."""
        code = getattr(error, "sqlite_errorcode", None)
        if code is None:
            return self._translated_by_text(error)
        match code & 0xFF:  # the upper bits only tell more about the same thing
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return self.exhausted()
            case sqlite3.SQLITE_FULL:
                return self._full()
            case sqlite3.SQLITE_IOERR if code in _WRITING_FAILED and self._path and not has_room(self._path):
                return self._full()
            case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
                return StoreCorrupt(f"{self._name} is damaged: {error}")
            case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
                return StoreReadOnly(f"{self._name} cannot be written: {error}")
            case sqlite3.SQLITE_CANTOPEN:
                return CannotOpen(f"{self._name} cannot be opened: {error}")
            case sqlite3.SQLITE_TOOBIG:
                return InvalidDocument("the document is larger than SQLite can store")
        if "no such index" in str(error):
            return IndexGone(f"{self._name}: {error}")
        if "malformed JSON" in str(error):
            return StoreCorrupt(f"a document in {self._name} is damaged: {error}")
        return StoreFailed(f"{self._name}: {error}")

    def _full(self) -> StoreFull:
        return StoreFull(f"there is no room left to write to {self._name}; nothing was written")

    def _translated_by_text(self, error: DriverError) -> TtlStoreError:
        """Of the errors that the driver raises by itself, without a code of SQLite's."""
        if "closed database" in str(error):
            return StoreClosed(f"{self._name} is closed")
        if isinstance(error, sqlite3.DataError):
            return InvalidDocument("the document is larger than SQLite can store")
        if isinstance(error, UnicodeDecodeError) or "decode to UTF-8" in str(error):
            return StoreCorrupt(f"{self._name} is damaged: {error}")
        return StoreFailed(f"{self._name}: {error}")


def is_busy(error: DriverError) -> bool:
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
