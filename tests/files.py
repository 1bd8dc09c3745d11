"""What lies in a folder, and databases that are made by hand."""

import os
import sqlite3
from pathlib import Path


def everything_in(folder: Path) -> dict[str, tuple[bytes | None, int, int]]:
    """Each file's bytes, mode and time of its last change."""
    return {
        str(entry.relative_to(folder)): (
            entry.read_bytes() if entry.is_file() else None,
            entry.stat().st_mode,
            entry.stat().st_mtime_ns if entry.is_file() else 0,
        )
        for entry in folder.rglob("*")
    }


def database(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def open_files(path: Path) -> int:
    """How many of this process are this file, or beside it and named for it."""
    links = []
    for number in os.listdir("/proc/self/fd"):
        try:
            links.append(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:
            continue
    return sum(link.startswith(str(path)) for link in links)
