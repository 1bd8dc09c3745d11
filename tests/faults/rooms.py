"""Disks that are full, as far as that can be had: a small file system for root, a limit on file sizes for all."""

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import pytest

DISK_BYTES = 2 * 1024 * 1024


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
def small_disk(folder: Path) -> Iterator[SmallDisk]:
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(["mount", *options], capture_output=True).returncode != 0:
        pytest.skip("only root may mount a small disk; the limit on file sizes is tried in any case")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def limit(folder: Path) -> Iterator[Limit]:
    folder.mkdir()
    room = Limit(folder)
    try:
        yield room
    finally:
        room.free()
