"""The indexes of a collection: made and removed so that they are those which its policy names."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import blake2b

import orjson

from ttlstore.document import parse_pointer
from ttlstore.engine import Engine
from ttlstore.engine.json import Path, create_index, drop_index
from ttlstore.errors import TtlStoreError
from ttlstore.indexing import IndexingPolicy
from ttlstore.schema import index_prefix

Define = Callable[[str], None]  # `Engine.define` in `writing()`, or what `Engine.defining()` gives

DIGEST_BYTES = 8  # of the paths in the name of an index: two of a collection do not meet


def named(collection: int, policy: IndexingPolicy) -> dict[str, tuple[Path, ...]]:
    """The indexes of a policy by name. The name tells the paths apart, and says nothing that SQL could take amiss."""
    indexes: dict[str, tuple[Path, ...]] = {}
    for entry in policy.paths:
        paths = tuple(parse_pointer(path) for path in (entry if isinstance(entry, tuple) else (entry,)))
        digest = blake2b(orjson.dumps(paths), digest_size=DIGEST_BYTES).hexdigest()
        indexes[f"{index_prefix(collection)}{digest}"] = paths
    return indexes


def amiss(collection: int, policy: IndexingPolicy, there: Mapping[str, bool | None]) -> tuple[list[str], list[str]]:
    """Of the indexes that are there, by whether they can be used: those to be removed, and those of the policy to make.

    One whose making was cut short is both; one that is being made is left to whoever does.
    """
    wanted, prefix = named(collection, policy), index_prefix(collection)
    done = {name: usable for name, usable in there.items() if name.startswith(prefix) and usable is not None}
    others = [name for name, usable in done.items() if not (usable and name in wanted)]
    return sorted(others), sorted(name for name in wanted if there.get(name, False) is False)


def make(engine: Engine, define: Define, collection: int, policy: IndexingPolicy) -> None:
    """Make the indexes that the policy has and the collection has not, unless it is lazy."""
    if policy.mode == "consistent":
        for name in amiss(collection, policy, engine.all_indexes())[1]:
            build(engine, define, collection, policy, name)


def build(engine: Engine, define: Define, collection: int, policy: IndexingPolicy, name: str) -> None:
    """Make one of the indexes of the policy."""
    if name in engine.all_indexes():
        _run(define, drop_index(engine.json, name))
    try:
        _run(define, create_index(engine.json, name, collection, named(collection, policy)[name]))
    except BaseException:
        with suppress(TtlStoreError):
            _run(define, drop_index(engine.json, name))
        raise


def remove_others(engine: Engine, define: Define, collection: int, policy: IndexingPolicy) -> None:
    """Remove the indexes that are not in the policy."""
    for name in amiss(collection, policy, engine.all_indexes())[0]:
        remove(engine, define, collection, policy, name)


def remove(engine: Engine, define: Define, collection: int, policy: IndexingPolicy, name: str) -> None:
    """Remove an index, unless it is in the policy."""
    if name not in named(collection, policy):
        _run(define, drop_index(engine.json, name))


def _run(define: Define, statements: list[str]) -> None:
    for statement in statements:
        define(statement)
