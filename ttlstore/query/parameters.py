"""The values of a query's parameters, as the caller gave them."""

from collections.abc import Iterable, Mapping
from typing import Any

from ttlstore.document import to_json
from ttlstore.errors import InvalidDocument, QueryError, shown
from ttlstore.query.mistakes import located
from ttlstore.query.syntax import Query
from ttlstore.query.values import Value

_EXACT = 2**53  # integers up to it are the same in every JSON

Parameters = Mapping[str, Any] | Iterable[Mapping[str, Any]]


def bind(query: Query, given: Parameters | None) -> dict[str, Value]:
    """The value of each parameter of the query, by its name without the @.

    Takes a mapping of names, with or without the @, or the reference's list of `{"name": …, "value": …}`.
    Raises QueryError if one is missing, is not used, or is not JSON.
    """
    values = _by_name(given)
    for parameter in query.parameters:
        if parameter.name not in values:
            known = f": there is {_listed(values)}" if values else ": no parameters were passed"
            raise located(query.text, parameter.at, f"no value for @{parameter.name}{known}")
    if len(values) > len(query.parameters):  # each of which is in there
        used = {parameter.name for parameter in query.parameters}
        name = next(name for name in values if name not in used)
        raise QueryError(f"the query has no parameter @{name}" + (f", only {_listed(used)}" if used else ""))
    return values


def _by_name(given: Parameters | None) -> dict[str, Value]:
    if given is None:
        return {}
    if type(given) is dict or isinstance(given, Mapping):  # most are the first, which is told sooner
        pairs: Iterable[tuple[Any, Any]] = given.items()
    elif isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise QueryError(f'parameters are a mapping such as {{"min": 10}}, got {shown(given)}')
    else:
        pairs = [_pair(entry) for entry in given]
    values: dict[str, Value] = {}
    for key, value in pairs:
        name = key.removeprefix("@") if isinstance(key, str) else ""
        if not name:
            raise QueryError(f"the name of a parameter is a string such as 'min' or '@min', got {shown(key)}")
        if name in values:
            raise QueryError(f"the parameter @{name} was passed twice")
        values[name] = _checked(name, value)
    return values


def _pair(entry: object) -> tuple[Any, Any]:
    if not isinstance(entry, Mapping) or entry.keys() != {"name", "value"}:
        raise QueryError(
            f'a list of parameters has entries such as {{"name": "@min", "value": 10}}, got {shown(entry)}'
        )
    return entry["name"], entry["value"]


def _checked(name: str, value: object) -> Value:
    kind = type(value)
    if value is None or kind is bool or (kind is str and value.isascii()):  # type: ignore[attr-defined]
        return value
    if kind is int and -_EXACT <= value <= _EXACT:  # type: ignore[operator]  # narrowed by its type
        return value
    try:
        return to_json({name: value})[1][name]
    except InvalidDocument as error:
        raise QueryError(f"the parameter @{name} is not JSON: {error}") from None


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"@{name}" for name in sorted(names))
