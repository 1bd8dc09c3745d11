"""The indexing policy of a collection."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

import orjson

from ttlstore.document import check_text, parse_pointer
from ttlstore.engine.json import MAX_PATH, is_short
from ttlstore.errors import InvalidCollection, InvalidDocument, InvalidTtl, shown

Mode = Literal["consistent", "lazy", "none"]
IndexedPath = str | tuple[str, ...]

MAX_PATHS = 10  # of one index: each is three of the 32 columns of one on PostgreSQL, and the place of a document is one


@dataclass(frozen=True, slots=True)
class IndexingPolicy:
    """Which properties of a collection's documents are indexed, and when.

    `mode` is `"consistent"` (indexes are right when the call returns), `"lazy"` (built in the background) or `"none"`
    (point operations only, and no TTL). `paths` are properties such as `"/status"`, or tuples of them for an index over
    several. Raises InvalidCollection.
    """

    mode: Mode = "consistent"
    paths: tuple[IndexedPath, ...] = ()

    def __post_init__(self) -> None:
        if self.mode not in get_args(Mode):
            raise InvalidCollection(f"indexing mode must be one of {', '.join(get_args(Mode))}, got {shown(self.mode)}")
        if isinstance(self.paths, str) or not isinstance(self.paths, Iterable):
            raise InvalidCollection(f"indexed paths must be a tuple such as ('/status',), got {shown(self.paths)}")
        paths = tuple(tuple(path) if isinstance(path, list | tuple) else path for path in self.paths)
        object.__setattr__(self, "paths", paths)
        for path in paths:
            if not path:
                raise InvalidCollection(f"an index over several paths needs some, got {shown(path)}")
            if isinstance(path, tuple) and len(path) > MAX_PATHS:
                raise InvalidCollection(f"an index has at most {MAX_PATHS} paths, got {len(path)}: {shown(path)}")
            for part in path if isinstance(path, tuple) else (path,):
                _check_path(part)
        if len(set(paths)) != len(paths):
            raise InvalidCollection(f"an indexed path is named twice in {shown(paths)}")
        if self.mode == "none" and paths:
            raise InvalidCollection(f"indexing mode 'none' has no indexed paths, got {shown(paths)}")

    @classmethod
    def of(cls, indexing: "IndexingPolicy | str") -> "IndexingPolicy":
        """The policy that a user passed: itself, or just the mode."""
        if isinstance(indexing, IndexingPolicy):
            return indexing
        return cls(indexing)  # type: ignore[arg-type]

    def paths_json(self) -> str:
        return orjson.dumps(self.paths).decode()

    @classmethod
    def stored(cls, mode: Mode, paths_json: str) -> "IndexingPolicy":
        return cls(mode, tuple(orjson.loads(paths_json)))


def _check_path(path: object) -> None:
    if not isinstance(path, str):
        raise InvalidCollection(f"an indexed path is a string such as '/status', got {shown(path)}")
    try:
        parts = parse_pointer(path)
        check_text("an indexed path", path)
    except (ValueError, InvalidDocument) as error:
        raise InvalidCollection(f"an indexed path is a string such as '/address/city': {error}") from None
    if '"' in path:
        raise InvalidCollection(f"a property with a quotation mark in its name cannot be indexed, got {shown(path)}")
    if not is_short(parts):
        raise InvalidCollection(f"an indexed path must be at most {MAX_PATH} characters long, got {shown(path)}")
    if not all(parts):
        raise InvalidCollection(f"an indexed path must name a property between its slashes, got {shown(path)}")


def check_ttl_and_indexing(default_ttl: int | None, indexing: IndexingPolicy) -> None:
    """TTL needs an index. Raises InvalidTtl."""
    if default_ttl is not None and indexing.mode == "none":
        raise InvalidTtl(
            f"default_ttl {default_ttl} needs an index: with indexing mode 'none' TTL must be off (default_ttl None), "
            "and with TTL on the mode must be 'consistent' or 'lazy'"
        )
