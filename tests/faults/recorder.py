"""What a process tells its disk, recorded: SQLite by a VFS around its own, the rest where Python asks for it.

SQLite's system calls could be replaced one by one, but for the one that matters: fsync is not among them.
"""

import _sqlite3
import ctypes
import os
import sys
import threading
from contextlib import suppress
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_void_p
from pathlib import Path
from typing import Any

from tests.faults.disk import Entry, FolderSynced, Named, Record, Resized, Synced, Told, Written

OK = 0

Open = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p)  # a name is more than its text to SQLite
Delete = CFUNCTYPE(c_int, c_void_p, c_char_p, c_int)
Close = CFUNCTYPE(c_int, c_void_p)
Write = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
Truncate = CFUNCTYPE(c_int, c_void_p, c_int64)
Sync = CFUNCTYPE(c_int, c_void_p, c_int)
OpenFolder = CFUNCTYPE(c_int, c_char_p, c_void_p)
SetSystemCall = CFUNCTYPE(c_int, c_void_p, c_char_p, c_void_p)
GetSystemCall = CFUNCTYPE(c_void_p, c_void_p, c_char_p)


class Vfs(Structure):
    """SQLite's sqlite3_vfs."""

    _fields_ = (
        ("version", c_int),
        ("file_bytes", c_int),
        ("longest_path", c_int),
        ("next", c_void_p),
        ("name", c_char_p),
        ("data", c_void_p),
        ("open", c_void_p),
        ("delete", c_void_p),
        ("others", c_void_p * 11),
        ("set_system_call", c_void_p),
        ("get_system_call", c_void_p),
        ("next_system_call", c_void_p),
    )


class Methods(Structure):
    """SQLite's sqlite3_io_methods."""

    _fields_ = (
        ("version", c_int),
        ("close", c_void_p),
        ("read", c_void_p),
        ("write", c_void_p),
        ("truncate", c_void_p),
        ("sync", c_void_p),
        ("others", c_void_p * 13),
    )


class File(Structure):
    """The beginning of SQLite's sqlite3_file. What follows is the VFS's own."""

    _fields_ = (("methods", POINTER(Methods)),)


def library() -> Any:
    """The SQLite that this Python uses, or None where it is part of the interpreter and cannot be reached."""
    with suppress(AttributeError, OSError):
        found = ctypes.CDLL(_sqlite3.__file__)
        found.sqlite3_vfs_find.restype = POINTER(Vfs)
        found.sqlite3_vfs_register.argtypes = [POINTER(Vfs), c_int]
        return found
    return None


class Recorder:
    """Of all that this process does under one folder, from when it is made."""

    def __init__(self, folder: Path) -> None:
        self._folder = os.path.realpath(folder)
        files = sorted(file for file in Path(self._folder).rglob("*") if file.is_file())
        lasting = [file for file in files if not file.name.endswith("-shm")]  # made anew when nobody has it open
        self._names = {os.path.relpath(file, self._folder): number for number, file in enumerate(lasting)}
        self._record = Record({number: file.read_bytes() for number, file in enumerate(lasting)}, {**self._names}, [])
        self._numbers = len(lasting)
        self._lock = threading.RLock()
        self._open: dict[int, int] = {}  # which file is behind an address that SQLite has open
        self._methods: dict[int, Methods] = {}  # that stand for SQLite's, by the address of those
        self._synced_folders = threading.local()
        self._kept: list[Any] = []  # that C has a pointer to
        sys.unraisablehook = _end  # what is raised where C has called would be lost
        self._record_sqlite()
        self._record_python()

    def tell(self, word: object) -> None:
        self._add(Told(word))

    def record(self) -> Record:
        return self._record

    def _add(self, entry: Entry) -> None:
        with self._lock:
            self._record.entries.append(entry)

    def _place(self) -> int:
        return len(self._record.entries)

    # --- names ------------------------------------------------------------------------------------------------------

    def _known(self, path: str) -> str | None:
        """The path as the record has it, if it is of the folder."""
        folder, name = os.path.split(path)
        whole = os.path.join(os.path.realpath(folder), name)
        return os.path.relpath(whole, self._folder) if whole.startswith(self._folder) else None

    def _name(self, path: str, file: int | None) -> None:
        with self._lock:
            if file is None:
                del self._names[path]
            else:
                self._names[path] = file
            self._add(Named(path, file))

    # --- SQLite -----------------------------------------------------------------------------------------------------

    def _record_sqlite(self) -> None:
        sqlite = library()
        self._usual = sqlite.sqlite3_vfs_find(None)
        ours = Vfs.from_buffer_copy(self._usual.contents)
        ours.name, ours.next = b"recorded", None
        ours.open, ours.delete = self._pointer(Open(self._open_file)), self._pointer(Delete(self._delete))
        self._kept.append(ours)
        assert sqlite.sqlite3_vfs_register(ctypes.byref(ours), True) == OK
        get, set = GetSystemCall(ours.get_system_call), SetSystemCall(ours.set_system_call)
        self._usual_open_folder = OpenFolder(get(self._usual, b"openDirectory"))
        assert set(self._usual, b"openDirectory", self._pointer(OpenFolder(self._open_folder))) == OK

    def _pointer(self, function: Any) -> Any:
        self._kept.append(function)
        return ctypes.cast(function, c_void_p)

    def _open_file(self, _: int, name: int | None, file: int, flags: int, flags_out: int) -> int:
        path = self._known(os.fsdecode(ctypes.string_at(name))) if name else None
        status: int = Open(self._usual.contents.open)(self._usual, name, file, flags, flags_out)
        if status == OK and path is not None:
            with self._lock:
                if path not in self._names:
                    self._name(path, self._numbers)
                    self._numbers += 1
                self._open[file] = self._names[path]
            opened = File.from_address(file)
            opened.methods = ctypes.pointer(self._standing_for(opened.methods))
        return status

    def _standing_for(self, usual: Any) -> Methods:
        address = ctypes.addressof(usual.contents)
        if address not in self._methods:
            ours = Methods.from_buffer_copy(usual.contents)
            close, write = Close(ours.close), Write(ours.write)
            truncate, sync = Truncate(ours.truncate), Sync(ours.sync)

            def close_file(file: int) -> int:
                del self._open[file]
                return close(file)  # type: ignore[no-any-return]

            def write_file(file: int, data: int, size: int, offset: int) -> int:
                status: int = write(file, data, size, offset)
                if status == OK:
                    self._add(Written(self._open[file], offset, ctypes.string_at(data, size)))
                return status

            def truncate_file(file: int, size: int) -> int:
                status: int = truncate(file, size)
                if status == OK:
                    self._add(Resized(self._open[file], size))
                return status

            def sync_file(file: int, flags: int) -> int:
                since = self._place()
                self._synced_folders.seen = []
                status: int = sync(file, flags)
                if status == OK:
                    self._add(Synced(self._open[file], since))
                    self._note_folders(since)
                return status

            ours.close, ours.write = self._pointer(Close(close_file)), self._pointer(Write(write_file))
            ours.truncate, ours.sync = self._pointer(Truncate(truncate_file)), self._pointer(Sync(sync_file))
            self._methods[address] = ours
        return self._methods[address]

    def _delete(self, _: int, name: bytes, sync: int) -> int:
        path = self._known(os.fsdecode(name))
        self._synced_folders.seen = []
        status: int = Delete(self._usual.contents.delete)(self._usual, name, sync)
        if status == OK and path is not None:
            self._name(path, None)
            self._note_folders(self._place())
        return status

    def _open_folder(self, name: bytes, descriptor: int) -> int:
        """SQLite opens a folder for nothing but to sync it: that of this file."""
        self._synced_folders.seen.append(self._known(os.fsdecode(name)))
        return self._usual_open_folder(name, descriptor)  # type: ignore[no-any-return]

    def _note_folders(self, since: int) -> None:
        for path in self._synced_folders.seen:
            if path is not None:
                self._add(FolderSynced(os.path.dirname(path), since))

    # --- Python -----------------------------------------------------------------------------------------------------

    def _record_python(self) -> None:
        link, unlink, fsync = os.link, os.unlink, os.fsync

        def link_file(source: str, target: str) -> None:
            link(source, target)
            old, new = self._known(source), self._known(target)
            if old is not None and new is not None:
                self._name(new, self._names[old])

        def unlink_file(path: str) -> None:
            unlink(path)
            name = self._known(path)
            if name in self._names:
                self._name(name, None)

        def sync_folder(descriptor: int) -> None:
            since = self._place()
            fsync(descriptor)
            synced = os.fstat(descriptor)
            for folder, _, _ in os.walk(self._folder):
                if os.path.samestat(os.stat(folder), synced):
                    self._add(FolderSynced(os.path.relpath(folder, self._folder).removeprefix("."), since))

        os.link, os.unlink, os.fsync = link_file, unlink_file, sync_folder  # type: ignore[assignment]


def _end(raised: "sys.UnraisableHookArgs") -> None:
    print(f"the recorder failed: {raised.exc_value!r}", file=sys.stderr)
    os._exit(70)
