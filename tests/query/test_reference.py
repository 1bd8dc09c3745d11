"""Every query and every result in the reference of the language is true."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ttlstore
from tests.query.asking import NOW_MS, ask
from ttlstore import Collection, QueryError
from ttlstore.query.functions import AGGREGATES, FUNCTIONS
from ttlstore.query.values import UNDEFINED
from ttlstore.testing import FakeClock

PAGE = (Path(__file__).parent.parent.parent / "docs" / "query.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)( documents)?\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
DOCUMENTS: list[dict[str, Any]] = next(json.loads(text) for _, documents, text in BLOCKS if documents)

EXAMPLES = [
    (text, BLOCKS[position + 1][0], BLOCKS[position + 1][2])
    for position, (language, _, text) in enumerate(BLOCKS)
    if language == "sql"
]
TABLES = re.findall(r"^\| expression \| result \|.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
ROWS = [
    tuple(cell.strip().strip("`").replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:3])
    for table in TABLES
    for line in table.splitlines()
]


@pytest.fixture(scope="module")
def orders() -> Iterator[Collection]:
    with ttlstore.open(":memory:", clock=FakeClock(NOW_MS / 1000), vacuum=False) as store:
        collection = store.create_collection("orders")
        collection.create_many(DOCUMENTS)
        yield collection


@pytest.mark.parametrize(("query", "kind", "expected"), EXAMPLES, ids=[text[:60] for text, _, _ in EXAMPLES])
def test_an_example_gives_what_the_page_shows(orders: Collection, query: str, kind: str, expected: str) -> None:
    if kind == "text":
        with pytest.raises(QueryError) as caught:
            ask(query, DOCUMENTS)
        assert str(caught.value) == expected.rstrip("\n")
    else:
        assert kind == "json"
        assert written(ask(query, DOCUMENTS)) == written(json.loads(expected))
        assert written(list(orders.query(query))) == written(json.loads(expected))


@pytest.mark.parametrize(("expression", "expected"), ROWS, ids=lambda cell: str(cell)[:60])
def test_an_expression_gives_what_the_table_shows(orders: Collection, expression: str, expected: str) -> None:
    results = list(orders.query(f'SELECT VALUE {expression} FROM c WHERE c.id = "SO1"'))
    value = results[0] if results else UNDEFINED
    assert written(value) == (expected if expected == "undefined" else written(json.loads(expected)))


def written(value: Any) -> str:
    """As text, so that 1, 1.0 and true are different."""
    return "undefined" if value is UNDEFINED else json.dumps(value, sort_keys=True)


def test_the_page_has_examples_of_everything() -> None:
    assert len(EXAMPLES) == PAGE.count("```sql\n") > 15
    assert len(ROWS) > 100
    assert [name for name in (*FUNCTIONS, *AGGREGATES) if not re.search(rf"`{name}\b", PAGE)] == []
