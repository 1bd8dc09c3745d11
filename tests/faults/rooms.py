"""Disks that are full, as far as that can be had: a small file system for root, a limit on file sizes for all."""

import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import psycopg
import pytest

DISK_BYTES = 2 * 1024 * 1024
DATABASE_DISK_BYTES = 24 * 1024 * 1024  # an empty one takes 8


class Room(Protocol):
    """A folder, and how much may still be written in it."""

    folder: Path

    def leave(self, size: int) -> None:
        """So many bytes; with a negative number, less than the largest file there is has."""

    def free(self) -> None:
        """Room for all."""


class SmallDisk:
    """A file system of its own, filled up with ballast."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def leave(self, size: int) -> None:
        self.free()
        disk = os.statvfs(self.folder)
        wanted = size if size >= 0 else _longest(self.folder) + size
        self._ballast.write_bytes(bytes(max(disk.f_bavail * disk.f_frsize - wanted, 0)))

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)


class Limit:
    """A limit on the size of every file that this process writes: to SQLite, what a quota is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._usual = resource.getrlimit(resource.RLIMIT_FSIZE)

    def leave(self, size: int) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (_longest(self.folder) + size, self._usual[1]))

    def free(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, self._usual)


def _longest(folder: Path) -> int:
    return max((file.stat().st_size for file in folder.iterdir() if not file.name.endswith("-shm")), default=0)


@contextmanager
def small_disk(folder: Path, size: int = DISK_BYTES) -> Iterator[SmallDisk]:
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(["mount", *options], capture_output=True).returncode != 0:
        pytest.skip("only root may mount a small disk; the limit on file sizes is tried in any case")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def database_on_a_small_disk(server: Any) -> Iterator[tuple[SmallDisk, str]]:
    """A database of a PostgreSQL server, with its tables on a disk of their own. Yields its URL too.

    Not the server's log: when that cannot be written, the server stops, and starts when it can.
    """
    with (
        small_disk(server.pgdata.parent / "disk", DATABASE_DISK_BYTES) as disk,
        psycopg.connect(server.get_uri(), autocommit=True) as by_hand,
    ):
        tables = disk.folder / "tables"
        tables.mkdir()
        shutil.chown(tables, server.system_user)
        by_hand.execute(f"CREATE TABLESPACE small LOCATION '{tables}'")
        by_hand.execute("CREATE DATABASE small TABLESPACE small")
        try:
            yield disk, server.get_uri(database="small")
        finally:
            by_hand.execute("DROP DATABASE small WITH (FORCE)")
            by_hand.execute("DROP TABLESPACE small")


@contextmanager
def limit(folder: Path) -> Iterator[Limit]:
    folder.mkdir()
    room = Limit(folder)
    try:
        yield room
    finally:
        room.free()
