"""Partial updates: a list of operations on a document, of which all apply or none."""

from collections.abc import Callable, Sequence
from typing import Any

from ttlstore.document import Document, parse_pointer, pointer, to_json
from ttlstore.errors import InvalidPatch, shown

Operation = dict[str, Any]
Path = tuple[str, ...]
Container = dict[str, Any] | list[Any]

_SYSTEM: tuple[Path, ...] = (("id",), ("_ts",), ("_etag",))


def apply(document: Document, operations: Sequence[Operation], partition_path: Path) -> None:
    """Change the document by the operations. Raises InvalidPatch or InvalidDocument: drop the document then."""
    if isinstance(operations, str | bytes | dict) or not isinstance(operations, Sequence):
        raise InvalidPatch(f"a patch is a list of operations, got {shown(operations)}")
    for position, operation in enumerate(operations):
        try:
            _apply_one(document, operation, (*_SYSTEM, partition_path))
        except InvalidPatch as error:
            raise InvalidPatch(f"operation {position} ({shown(operation)}): {error}; nothing was changed") from None


def _apply_one(document: Document, operation: Operation, protected: Sequence[Path]) -> None:
    if not isinstance(operation, dict):
        raise InvalidPatch('an operation is a dict such as {"op": "set", "path": "/total", "value": 10}')
    name = operation.get("op")
    if not isinstance(name, str) or name not in _OPERATIONS:
        raise InvalidPatch(f"op must be one of {', '.join(_OPERATIONS)}, got {shown(name)}")
    argument, run = _OPERATIONS[name]
    expected = {"op", "path"} | ({argument} if argument else set())
    if operation.keys() != expected:
        raise InvalidPatch(f"{name} takes {', '.join(sorted(expected))}, got {', '.join(sorted(map(str, operation)))}")
    path = _checked_path(operation["path"], protected)
    if argument == "from":
        run(document, path, _checked_path(operation["from"], protected))
    else:
        # A copy: a later operation may change what this one put in.
        run(document, path, to_json(operation)[1].get("value"))


def _checked_path(text: object, protected: Sequence[Path]) -> Path:
    if not isinstance(text, str):
        raise InvalidPatch(f"a path is a string such as '/address/city', got {shown(text)}")
    try:
        path = parse_pointer(text)
    except ValueError as error:
        raise InvalidPatch(str(error)) from None
    for fixed in protected:
        shorter = min(len(path), len(fixed))
        if path[:shorter] == fixed[:shorter]:
            raise InvalidPatch(f"{pointer(fixed)} cannot be patched: it is the document's identity or set by the store")
    return path


# --- where a path leads ---------------------------------------------------------------------------------------------


def _parent(document: Document, path: Path) -> Container:
    here: Any = document
    for depth, part in enumerate(path[:-1]):
        if isinstance(here, dict) and part in here:
            here = here[part]
        elif isinstance(here, list) and (index := _index(part)) is not None and index < len(here):
            here = here[index]
        else:
            raise InvalidPatch(f"there is no {pointer(path[: depth + 1])}")
    if isinstance(here, dict | list):
        return here
    raise InvalidPatch(f"{pointer(path[:-1])} is neither an object nor an array")


def _index(part: str) -> int | None:
    """An array index is written without sign, padding or exotic digits."""
    return int(part) if part.isascii() and part.isdigit() and (part == "0" or part[0] != "0") else None


def _position(array: list[Any], part: str, *, end: int) -> int:
    """The index that `part` names, where `end` is the first one that is too large."""
    index = _index(part)
    if index is None:
        raise InvalidPatch(f"an array index is a whole number, or - for its end, got {shown(part)}")
    if index >= end:
        raise InvalidPatch(f"index {index} is out of range: the array has {len(array)} elements")
    return index


def _get(document: Document, path: Path) -> Any:
    parent, last = _parent(document, path), path[-1]
    if isinstance(parent, list):
        return parent[_position(parent, last, end=len(parent))]
    if last not in parent:
        raise InvalidPatch(f"there is no {pointer(path)}")
    return parent[last]


# --- operations -----------------------------------------------------------------------------------------------------


def _set(document: Document, path: Path, value: Any) -> None:
    """Put a value there, whether there was one or not; in an array, in place of an element or at the end."""
    parent, last = _parent(document, path), path[-1]
    if isinstance(parent, dict):
        parent[last] = value
    elif last == "-" or _index(last) == len(parent):
        parent.append(value)
    else:
        parent[_position(parent, last, end=len(parent))] = value


def _add(document: Document, path: Path, value: Any) -> None:
    """As set, but in an array between the elements."""
    parent, last = _parent(document, path), path[-1]
    if isinstance(parent, dict):
        parent[last] = value
    elif last == "-":
        parent.append(value)
    else:
        parent.insert(_position(parent, last, end=len(parent) + 1), value)


def _replace(document: Document, path: Path, value: Any) -> None:
    """As set, but only where there is a value."""
    _get(document, path)
    _set(document, path, value)


def _remove(document: Document, path: Path, _: None = None) -> None:
    _get(document, path)
    parent, last = _parent(document, path), path[-1]
    if isinstance(parent, list):
        del parent[int(last)]
    else:
        del parent[last]


def _incr(document: Document, path: Path, value: Any) -> None:
    """Add to a number, or set it where there is none."""
    if not _is_number(value):
        raise InvalidPatch(f"incr takes a number, got {shown(value)}")
    parent, last = _parent(document, path), path[-1]
    if isinstance(parent, dict) and last not in parent:
        parent[last] = value
        return
    present = _get(document, path)
    if not _is_number(present):
        raise InvalidPatch(f"{pointer(path)} is not a number: {shown(present)}")
    _set(document, path, present + value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _move(document: Document, path: Path, source: Path) -> None:
    if path[: len(source)] == source and path != source:
        raise InvalidPatch(f"{pointer(source)} cannot be moved into itself")
    value = _get(document, source)
    _remove(document, source)
    _add(document, path, value)


# By name: what each takes besides its path, and what it does.
_OPERATIONS: dict[str, tuple[str | None, Callable[..., None]]] = {
    "set": ("value", _set),
    "add": ("value", _add),
    "replace": ("value", _replace),
    "remove": (None, _remove),
    "incr": ("value", _incr),
    "move": ("from", _move),
}
