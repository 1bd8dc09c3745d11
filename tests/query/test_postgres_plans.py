"""How much PostgreSQL reads to answer: few distinct values must not make it read and sort all that have the same."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from ttlstore import Collection, IndexingPolicy, Store
from ttlstore.engine.postgres.engine import FEW_ROWS, PostgresEngine
from ttlstore.engine.postgres.sql import first_soon
from ttlstore.queries import EVERY_ROW
from ttlstore.statements import Prepared
from ttlstore.testing import FakeClock

pytestmark = pytest.mark.parametrize("kind", ["postgres"], indirect=True)

DOCUMENTS = 3000
SORTED_AT_ONCE = 40  # rows that an incremental sort takes first, whatever is asked of it
ALWAYS_INCREMENTAL = 16  # the first version that never sorts as a whole what an index has in order already
_READ = re.compile(r"Scan.* on documents .*\(actual.* rows=(\d+)")


@pytest.fixture
def orders(store: Store) -> Collection:
    policy = IndexingPolicy(paths=("/status", ("/shop", "/total")))
    orders = store.create_collection("orders", default_ttl=3600, indexing=policy)
    orders.create_many(
        {"id": str(number), "status": ("open", "paid", 7, True)[number % 4], "shop": number % 2, "total": number % 5}
        for number in range(DOCUMENTS)
    )
    with store.transaction():
        store._engine.define("ANALYZE documents")
    return orders


@pytest.fixture
def read(orders: Collection, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], int]:
    """Tells how many documents the server reads for what is done."""
    run, counted = PostgresEngine._run, list[int]()

    def explained(self: PostgresEngine, connection: Any, sql: str, values: Any) -> Any:
        explain = f"EXPLAIN (ANALYZE, TIMING OFF) {sql}"
        if " documents " in sql:
            counted.extend(
                int(found[1]) for (step,) in run(self, connection, explain, values) if (found := _READ.search(step))
            )
        return run(self, connection, sql, values)

    def read(action: Callable[[], object]) -> int:
        counted.clear()
        with monkeypatch.context() as patched:
            patched.setattr(PostgresEngine, "_run", explained)
            action()
        assert counted
        return sum(counted)

    return read


Read = Callable[[Callable[[], object]], int]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT TOP 10 * FROM c ORDER BY c.status",
        "SELECT TOP 10 * FROM c ORDER BY c.status DESC",
        "SELECT TOP 10 * FROM c WHERE c.status = 'open'",
        "SELECT TOP 10 * FROM c WHERE c.status = 'open' ORDER BY c.status DESC",
        "SELECT TOP 10 * FROM c WHERE c.status = 7",
        "SELECT TOP 10 * FROM c WHERE c.shop = 1 AND c.total = 2",
    ],
)
def test_as_many_are_read_as_are_asked_for(orders: Collection, read: Read, text: str) -> None:
    few_are_read(orders, read, text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT TOP 10 * FROM c WHERE c.status >= 'open' ORDER BY c.status",
        "SELECT TOP 10 * FROM c WHERE c.shop = 1 ORDER BY c.total",
        "SELECT TOP 10 * FROM c WHERE c.shop = 1 ORDER BY c.total DESC",
    ],
)
def test_a_condition_beside_an_order_does_not_make_it_sort(orders: Collection, read: Read, text: str) -> None:
    version = int(orders._engine.description.split()[1].split(".")[0])
    if version < ALWAYS_INCREMENTAL:
        pytest.skip("sorts what it takes for a few rows")
    few_are_read(orders, read, text)


def few_are_read(orders: Collection, read: Read, text: str) -> None:
    assert read(lambda: list(orders.query(text))) <= 10 + SORTED_AT_ONCE
    every = text.replace("TOP 10 ", "")
    page = orders.query_page(every, size=10)
    for _ in range(3):
        token = page.token
        assert token is not None
        assert read(lambda token=token: orders.query_page(every, size=10, token=token)) <= 11 + SORTED_AT_ONCE  # type: ignore[misc]
        page = orders.query_page(every, size=10, token=token)


def test_the_first_of_many_are_found_at_once(orders: Collection, read: Read) -> None:
    for text in ("c.status = 'open'", "SELECT * FROM c ORDER BY c.status"):
        assert read(lambda text=text: next(orders.query(text))) <= FEW_ROWS + 1 + SORTED_AT_ONCE  # type: ignore[misc]


def test_all_of_many_are_read_in_the_order_of_an_index(orders: Collection) -> None:
    text = "SELECT * FROM c ORDER BY c.status"
    streamed = Prepared(first_soon(orders.explain(text).sql), lambda values: values)
    steps = "\n".join(orders._engine.steps(streamed, (orders._engine.statement_clock(), *EVERY_ROW)))
    assert "Index Scan using documents_of_" in steps
    assert "Incremental Sort" in steps


def test_an_explanation_has_the_plan_for_as_many_as_are_wanted(orders: Collection) -> None:
    for text in ("SELECT * FROM c ORDER BY c.status", "SELECT TOP 10 * FROM c ORDER BY c.status"):
        steps = "\n".join(orders.explain(text).steps)
        assert "Index Scan using documents_of_" in steps
        assert "Incremental Sort" in steps


def test_no_sort_stands_between_an_index_and_what_is_equal(orders: Collection) -> None:
    for text in ("c.status = 'open'", "c.status = 7", "c.shop = 1 AND c.total = 2"):
        steps = "\n".join(orders.explain(text).steps)
        assert "Index Scan using documents_of_" in steps
        assert "Sort" not in steps


def test_a_string_is_sought_among_strings_without_a_look_at_each(orders: Collection) -> None:
    for text in ("c.status = 'open'", "STARTSWITH(c.status, 'op')", "c.status IN ('open', 'lost')"):
        steps = orders.explain(text).steps
        (sought,) = [step for step in steps if "Index Cond" in step and "ascii(" in step]
        assert sought.count(" = '0'::numeric)") == 1  # the key between the type and the string


def test_the_newest_of_those_that_inherit_the_default_are_found_by_an_index(
    store: Store, clock: FakeClock, read: Read
) -> None:
    log = store.create_collection("log", default_ttl=3600)
    for moment in range(60):
        log.create_many({"id": f"{moment} {number}"} for number in range(50))
        clock.advance(1)
    with store.transaction():
        store._engine.define("ANALYZE documents")
    assert read(lambda: log.newest(limit=10)) <= 50 + SORTED_AT_ONCE
