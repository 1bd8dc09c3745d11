"""The indexes of a collection: made and removed so that they are those which its policy names."""

from hashlib import blake2b

import orjson

from ttlstore.document import parse_pointer
from ttlstore.engine import Engine
from ttlstore.engine.json import Path, create_index, drop_index
from ttlstore.indexing import IndexingPolicy
from ttlstore.schema import index_prefix

DIGEST_BYTES = 8  # of the paths in the name of an index: two of a collection do not meet


def named(collection: int, policy: IndexingPolicy) -> dict[str, tuple[Path, ...]]:
    """The indexes of a policy by name. The name tells the paths apart, and says nothing that SQL could take amiss."""
    indexes: dict[str, tuple[Path, ...]] = {}
    for entry in policy.paths:
        paths = tuple(parse_pointer(path) for path in (entry if isinstance(entry, tuple) else (entry,)))
        digest = blake2b(orjson.dumps(paths), digest_size=DIGEST_BYTES).hexdigest()
        indexes[f"{index_prefix(collection)}{digest}"] = paths
    return indexes


def apply(engine: Engine, collection: int, policy: IndexingPolicy) -> None:
    """Remove the indexes that are not in the policy, and make those that are, unless it is lazy. In `writing()`."""
    wanted, present = named(collection, policy), engine.indexes(collection)
    for name in sorted(present - wanted.keys()):
        _run(engine, drop_index(engine.json, name))
    if policy.mode == "consistent":
        for name in wanted.keys() - present:
            _run(engine, create_index(engine.json, name, collection, wanted[name]))


def missing(engine: Engine, collection: int, policy: IndexingPolicy) -> list[str]:
    """The indexes of the policy that are not there yet."""
    wanted = named(collection, policy)
    return sorted(wanted.keys() - engine.indexes(collection)) if wanted else []


def build(engine: Engine, collection: int, policy: IndexingPolicy, name: str) -> None:
    """Make one of the indexes of the policy. In `writing()`."""
    _run(engine, create_index(engine.json, name, collection, named(collection, policy)[name]))


def remove_all(engine: Engine, collection: int) -> None:
    """Remove the indexes of a collection that is no more. In `writing()`."""
    for name in sorted(engine.indexes(collection)):
        _run(engine, drop_index(engine.json, name))


def _run(engine: Engine, statements: list[str]) -> None:
    for statement in statements:
        engine.define(statement)
