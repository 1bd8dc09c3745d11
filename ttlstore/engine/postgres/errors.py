"""PostgreSQL's errors as ours."""

import re

import psycopg
from psycopg import errors

from ttlstore.engine.postgres.sql import WAITED
from ttlstore.errors import (
    CannotOpen,
    CollectionNotFound,
    ConnectionLost,
    InvalidDocument,
    StoreBusy,
    StoreCorrupt,
    StoreFailed,
    StoreFull,
    StoreReadOnly,
    TtlStoreError,
)

_COLLIDED = (errors.DeadlockDetected, errors.SerializationFailure)
_WAITED = errors.InvalidTextRepresentation
BARRED = (errors.UniqueViolation, _WAITED, *_COLLIDED)
"""What ends a bulk write that another statement may do in its stead."""

SHORTEST_BLANKED = 8  # characters of a password: a shorter one is met in ports and words, where a blank would tell it

# By the words of a server that speaks English; of another, its own words must do.
_WAYS_IN = {
    "password authentication failed|no password supplied": (
        "; the password can stand in the URL, in PGPASSWORD or in ~/.pgpass"
    ),
    'database "[^"]*" does not exist': "; to make it: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0",
    "too many (clients|connections)": "; every open store keeps up to 16 of them",
}

_LOCK_ERRORS = (*_COLLIDED, errors.LockNotAvailable)
_LOST = (errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow, errors.IdleSessionTimeout)


def is_busy(error: psycopg.Error) -> bool:
    """Whether somebody else was in the way."""
    return isinstance(error, _LOCK_ERRORS)


def helps_again(error: BaseException | None) -> bool:
    """Whether the whole transaction can be made again after it, and would succeed."""
    return isinstance(error, _COLLIDED) or (isinstance(error, _WAITED) and WAITED in said(error))


def translated(error: psycopg.Error, name: str, busy_timeout: float, *, lost: bool) -> TtlStoreError:
    """The driver's error as one of ours; `lost`: the connection is of no use any more."""
    match error:
        case errors.LockNotAvailable():
            return StoreBusy(f"{name} stayed locked for {busy_timeout:g} s (busy_timeout); nothing was written")
        case errors.DeadlockDetected():
            return StoreBusy(
                f"{name}: this transaction and another waited for each other (a deadlock), and this one was ended; "
                "nothing was written, start again"
            )
        case _WAITED() if WAITED in said(error):
            return StoreBusy(f"{name}: others were in the way time and again; nothing was written")
        case errors.SerializationFailure() if "recovery" in said(error):
            return StoreBusy(
                f"{name} is a standby, and this was in the way of what it has to replay: start again, or have "
                "hot_standby_feedback or a longer max_standby_streaming_delay set"
            )
        case errors.SerializationFailure():
            return StoreBusy(f"{name}: another transaction was in the way; nothing was written, start again")
        case errors.QueryCanceled():
            return StoreBusy(
                f"the server ended a statement on {name}, and nothing of it was written: {said(error)}; its "
                "statement_timeout is how long one may take, the wait for a lock included"
            )
        case errors.InFailedSqlTransaction():
            return rolled_back()
        case errors.DiskFull():
            return StoreFull(f"there is no room left to write to {name}; nothing was written")
        case errors.DataCorrupted() | errors.IndexCorrupted():
            return StoreCorrupt(f"{name} is damaged: {said(error)}")
        case errors.ReadOnlySqlTransaction():
            return StoreReadOnly(
                f"{name} cannot be written: it is a standby, or was opened to be read only; write to the primary"
            )
        case errors.InsufficientPrivilege():
            return StoreReadOnly(
                f"{name} cannot be written: {said(error)}; the role needs INSERT, UPDATE and DELETE on its tables and "
                "USAGE on its sequences, and must own the tables to make indexes"
            )
        case errors.DuplicateTable():
            return StoreFailed(
                f"{name}: {said(error)}, and ttlstore did not make it: name another schema in the URL, ?schema=…"
            )
        case errors.ForeignKeyViolation():
            return CollectionNotFound(f"the collection was dropped from {name} meanwhile")
        case errors.ProgramLimitExceeded():
            return InvalidDocument(f"the id, the partition key or an indexed value is too long: {said(error)}")
    if lost or isinstance(error, _LOST):
        return ConnectionLost(
            f"the connection to {name} was lost; if this call was to write something, that may be written or not: "
            "read it again"
        )
    return StoreFailed(f"{name}: {said(error)}")


def rolled_back() -> StoreFailed:
    return StoreFailed("the transaction was rolled back after an error; leave its block and start again")


def lost_inside(name: str) -> ConnectionLost:
    return ConnectionLost(f"the connection to {name} was lost, and the transaction with it: nothing of it was written")


def cannot_connect(error: psycopg.Error, name: str, password: str | None) -> CannotOpen:
    """Without the password, even if a server or a proxy should repeat it. libpq does not."""
    text = said(error)
    if password and len(password) >= SHORTEST_BLANKED and password not in name:
        text = text.replace(password, "…")
    hint = next((hint for words, hint in _WAYS_IN.items() if re.search(words, text)), "")
    came_to = "opened" if hint or "FATAL:" in text else "reached"
    return CannotOpen(f"{name} cannot be {came_to}: {text}{hint}")


def said(error: psycopg.Error) -> str:
    """In the server's own words, on one line."""
    lines = map(str.strip, str(error).splitlines())
    return error.diag.message_primary or "; ".join(filter(None, lines)) or type(error).__name__
