"""Whose file is this? Answered from its first bytes, because merely opening it with SQLite can change it."""

import errno
import os
import stat
import tempfile

from ttlstore.errors import CannotOpen, NotAStore, command

APPLICATION_ID = 0x74746C73  # "ttls", in the header of every store

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_ROOM_BYTES = 32 * 1024  # SQLite's largest step: by which it makes the file of the memory that processes share longer

_MAGIC = b"SQLite format 3\0"
_HEADER_BYTES = 100
_APPLICATION_ID_AT = 68  # four bytes, big-endian, by SQLite's file format


Identity = tuple[int, int]  # of a file, whatever its name


def identity(path: str) -> Identity | None:
    """Which file has this name; None if none has. One that is open keeps its identity for itself, deleted or not."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def inspect_file(path: str, *, create: bool) -> None:
    """Return if the path is a store or, with `create`, may become one.

    Raises CannotOpen or NotAStore, and changes not a byte.
    """
    missing = not os.path.exists(path) or (os.path.isfile(path) and os.path.getsize(path) == 0)
    if missing and not create:
        raise CannotOpen(f"there is no store at {path}: make one with {command('init', path)}")
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise CannotOpen(f"{path} cannot be made: there is no folder {folder}")
    try:
        kind = os.stat(path).st_mode
        if stat.S_ISDIR(kind):
            raise CannotOpen(f"{path} is a folder; name a file in it")
        if not stat.S_ISREG(kind):
            raise CannotOpen(f"{path} is not a regular file")
        with open(path, "rb") as file:
            header = file.read(_HEADER_BYTES)
    except FileNotFoundError:
        if not os.access(folder, os.W_OK):
            raise CannotOpen(f"{path} cannot be made: the folder cannot be written") from None
        return
    except CannotOpen:
        raise
    except OSError as error:
        raise CannotOpen(f"{path} cannot be read: {error.strerror}") from None
    if header:  # an empty file, as tempfile makes them, is a new store
        _check_header(path, header)
    if not (os.access(path, os.W_OK) and os.access(folder, os.W_OK)):
        raise CannotOpen(f"{path} is read-only: the file and its folder must be writable")


def _check_header(path: str, header: bytes) -> None:
    if not header.startswith(_MAGIC) or len(header) < _HEADER_BYTES:
        raise NotAStore(f"{path} is not a ttlstore: it is not an SQLite database; it was left as it is")
    if int.from_bytes(header[_APPLICATION_ID_AT : _APPLICATION_ID_AT + 4]) != APPLICATION_ID:
        raise NotAStore(f"{path} is an SQLite database of another application; it was left as it is")


def has_room(path: str) -> bool:
    """Whether a file beside this one can be as long as it and its log, and then some.

    SQLite knows no other full disk than one without a free block: a quota, or a limit on the size of files, is to it a
    failure like that of a broken disk.
    """
    try:
        longest = max(os.path.getsize(file) for file in (path, f"{path}-wal") if os.path.exists(file))
        with tempfile.TemporaryFile(dir=os.path.dirname(path)) as file:
            return os.pwrite(file.fileno(), bytes(_ROOM_BYTES), longest) == _ROOM_BYTES
    except OSError as error:
        return error.errno not in _NO_ROOM
