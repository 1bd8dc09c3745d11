"""What a disk may hold after its power has failed, by a record of all that it was told before.

What was synced is there. Of what came after, a disk may have kept any part in any order: so each write is there, or is
not, or some sectors of it; where a file grew there may be garbage; and a name that was made or removed may be as it
was before, until the folder was synced.
"""

import os
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

SECTOR_BYTES = 512  # what a disk writes as a whole or not at all; larger ones only do better


class Written(NamedTuple):
    """Bytes were written to a file."""

    file: int
    offset: int
    data: bytes


class Resized(NamedTuple):
    """A file was cut off."""

    file: int
    size: int


class Synced(NamedTuple):
    """The disk said that it keeps what the file was when it was asked, at that place in the record."""

    file: int
    since: int


class Named(NamedTuple):
    """A path names this file from now on, or none."""

    path: str
    file: int | None


class FolderSynced(NamedTuple):
    """The disk said that it keeps the names that the folder had when it was asked, at that place in the record."""

    folder: str
    since: int


class Told(NamedTuple):
    """What the process at work told whoever keeps its books."""

    word: Any


Entry = Written | Resized | Synced | Named | FolderSynced | Told


class Whims(NamedTuple):
    """What a disk makes of a change that it was not told to keep, by chance: all, nothing, or else some sectors."""

    all: float
    nothing: float
    garbage: float  # in a sector that the file did not have before


def whims(chance: random.Random) -> Whims:
    """Those of one disk: some keep nearly everything, some nearly nothing."""
    return Whims(
        *chance.choice([(1, 0, 0), (0, 1, 0), (0.9, 0.05, 0.1), (0.1, 0.9, 0.1), (0.4, 0.4, 0.1), (0, 0, 0.5)])
    )


@dataclass(frozen=True)
class Record:
    """What a disk held when the record began, and everything that happened to it from then on."""

    contents: dict[int, bytes]
    names: dict[str, int]
    entries: list[Entry]

    def any_moment(self, chance: random.Random) -> int:
        """A place in the record: as often while one file was changed as while another was, however long that took."""
        places: dict[object, list[int]] = {}
        for place, entry in enumerate(self.entries, start=1):
            places.setdefault(entry.file if isinstance(entry, Written | Resized) else None, []).append(place)
        return chance.choice(chance.choice(list(places.values())))

    def told(self, cut: int | None = None) -> list[Any]:
        """What had been told before this place in the record, or in all of it."""
        return [entry.word for entry in self.entries[:cut] if isinstance(entry, Told)]

    def lay_out(self, cut: int, chance: random.Random, folder: Path) -> None:
        """Make the files that a disk may hold that lost its power at this place in the record."""
        disk = whims(chance)
        contents = self._contents(cut, chance, disk)
        for path, file in self._names(cut, chance, disk).items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(contents[file])

    def _contents(self, cut: int, chance: random.Random, disk: Whims) -> dict[int, bytearray]:
        contents = {file: bytearray(data) for file, data in self.contents.items()}
        kept: dict[int, int] = {}
        for entry in self.entries[:cut]:
            if isinstance(entry, Synced):
                kept[entry.file] = max(kept.get(entry.file, 0), entry.since)
        for place, entry in enumerate(self.entries[:cut]):
            if not isinstance(entry, Written | Resized):
                continue
            file = contents.setdefault(entry.file, bytearray())
            fate = 0.0 if place < kept.get(entry.file, 0) else chance.random()
            if isinstance(entry, Resized):
                if fate <= disk.all or (fate > disk.all + disk.nothing and chance.random() < 0.5):
                    del file[entry.size :]
            elif fate <= disk.all:
                _put(file, entry.offset, entry.data)
            elif fate > disk.all + disk.nothing:
                _tear(file, entry, chance, disk.garbage)
        for entry in self.entries[:cut]:
            if isinstance(entry, Named) and entry.file is not None:
                contents.setdefault(entry.file, bytearray())
        return contents

    def _names(self, cut: int, chance: random.Random, disk: Whims) -> dict[str, int]:
        kept: dict[str, int] = {}
        for entry in self.entries[:cut]:
            if isinstance(entry, FolderSynced):
                kept[entry.folder] = max(kept.get(entry.folder, 0), entry.since)
        possible: dict[str, list[int | None]] = {path: [file] for path, file in self.names.items()}
        for place, entry in enumerate(self.entries[:cut]):
            if isinstance(entry, Named):
                if place < kept.get(os.path.dirname(entry.path), 0):
                    possible[entry.path] = [entry.file]
                else:
                    possible.setdefault(entry.path, [None]).append(entry.file)
        names: dict[str, int] = {}
        for path, files in possible.items():
            fate = chance.random()
            file = (
                files[-1] if fate <= disk.all else files[0] if fate <= disk.all + disk.nothing else chance.choice(files)
            )
            if file is not None:
                names[path] = file
        return names


def _put(file: bytearray, offset: int, data: bytes) -> None:
    if len(file) < offset:
        file.extend(bytes(offset - len(file)))
    file[offset : offset + len(data)] = data


def _tear(file: bytearray, write: Written, chance: random.Random, garbage: float) -> None:
    """Write some of its sectors."""
    size, at, end = len(file), write.offset, write.offset + len(write.data)
    while at < end:
        up_to = min((at // SECTOR_BYTES + 1) * SECTOR_BYTES, end)
        if chance.random() < 0.5:
            _put(file, at, write.data[at - write.offset : up_to - write.offset])
        elif at >= size and chance.random() < garbage:
            _put(file, at, chance.randbytes(up_to - at))
        at = up_to
