"""How the tests ask: a query over documents in memory."""

from collections.abc import Iterable
from typing import Any

from ttlstore.query.evaluate import evaluate
from ttlstore.query.parameters import Parameters, bind
from ttlstore.query.parser import parse
from ttlstore.query.values import UNDEFINED

NOW_MS = 1_700_000_000_000  # 2023-11-14T22:13:20Z


def ask(text: str, documents: Iterable[dict[str, Any]] = (), parameters: Parameters | None = None) -> list[Any]:
    """All results of a query."""
    query = parse(text)
    return list(evaluate(query, documents, bind(query, parameters), NOW_MS))


def value_of(expression: str, **parameters: Any) -> Any:
    """What an expression comes to, over a document with something of everything."""
    results = ask(f"SELECT VALUE {expression} FROM c", [DOCUMENT], parameters)
    return results[0] if results else UNDEFINED


DOCUMENT: dict[str, Any] = {
    "id": "d1",
    "zero": 0,
    "one": 1,
    "half": 0.5,
    "no": False,
    "yes": True,
    "nothing": None,
    "text": "Straße",
    "list": [1, "two", None, [4], {"five": 5}],
    "empty": [],
    "object": {"a": 1, "b": {"c": [10, 20]}},
    "order": "keyword",
    "with space": "quoted",
    "_ts": 1_700_000_000,
}
