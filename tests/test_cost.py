"""What things cost, shown by what the database does and not by a stopwatch."""

import re
import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import ColumnElement, and_, bindparam, select

import ttlstore
from ttlstore import Collection, IndexingPolicy, Store
from ttlstore.engine.sqlite.engine import prepare
from ttlstore.schema import collections, documents, due_ranges
from ttlstore.statements import Prepared
from ttlstore.testing import FakeClock


@pytest.fixture
def large() -> Iterator[Store]:
    """Many documents in one collection, few in another, and statistics that know it."""
    with ttlstore.open(":memory:", clock=FakeClock(), vacuum=False) as store:
        many = store.create_collection("many", default_ttl=60)
        many.create_many({"id": str(n), "ttl": [None, -1, 30, 90][n % 4]} for n in range(8000))
        store.create_collection("few", default_ttl=60).create_many({"id": str(n)} for n in range(10))
        yield store
        assert store.check() == []


def raw(store: Store) -> sqlite3.Connection:
    connection: sqlite3.Connection = store._engine._connections.mine().raw  # type: ignore[attr-defined]
    return connection


def work(store: Store, action: Any) -> int:
    """How many times ten instructions of its virtual machine SQLite ran, about."""
    steps = [0]

    def count() -> int:
        steps[0] += 1
        return 0

    raw(store).set_progress_handler(count, 10)
    try:
        action()
    finally:
        raw(store).set_progress_handler(None, 10)
    return steps[0]


def plan(store: Store, statement: Prepared) -> list[str]:
    values = [None] * len(re.findall(r"\?", statement.sql))
    return [row[3] for row in raw(store).execute(f"EXPLAIN QUERY PLAN {statement.sql}", values)]


def looks_at_all_rows(steps: list[str]) -> list[str]:
    return [step for step in steps if step.startswith("SCAN") and "documents" in step]


@pytest.mark.parametrize("default_ttl", [None, -1, 1, 61])
def test_changing_the_default_changes_one_row_and_costs_the_same_for_few_and_many(
    large: Store, default_ttl: int | None
) -> None:
    few, many = large.collection("few"), large.collection("many")
    costs = []
    for collection in (few, many):
        changed = raw(large).total_changes
        costs.append(work(large, lambda it=collection: it.configure(default_ttl=default_ttl)))
        assert raw(large).total_changes - changed == 1
    assert abs(costs[0] - costs[1]) <= 5


def test_the_measure_of_work_does_measure(large: Store) -> None:
    few, many = large.collection("few"), large.collection("many")
    assert work(large, lambda: list(many)) > 50 * max(work(large, lambda: list(few)), 1)


@pytest.mark.parametrize("verb", ["read", "contains", "expiry", "replace", "delete", "upsert", "create", "touch"])
def test_a_point_operation_costs_the_same_among_few_and_many(large: Store, verb: str) -> None:
    def run(collection: Collection) -> None:
        match verb:
            case "contains":
                assert "4" in collection
            case "replace":
                collection.replace({"id": "4"})
            case "upsert":
                collection.upsert({"id": "4"})
            case "create":
                collection.create({"id": "new"})
            case _:
                getattr(collection, verb)("4")

    few, many = large.collection("few"), large.collection("many")
    cost_of_few, cost_of_many = work(large, lambda: run(few)), work(large, lambda: run(many))
    assert abs(cost_of_few - cost_of_many) <= 5


@pytest.mark.parametrize("name", ["read", "expiry", "replace", "replace_if", "delete", "delete_if"])
def test_point_operations_go_by_the_whole_key(large: Store, name: str) -> None:
    steps = plan(large, getattr(large._statements, name))
    assert any("(collection_id=? AND id=? AND partition=?)" in step for step in steps), steps
    assert looks_at_all_rows(steps) == []


def test_looking_for_an_id_goes_by_the_key(large: Store) -> None:
    steps = plan(large, large._statements.contains)
    assert any("(collection_id=? AND id=?)" in step for step in steps), steps
    assert looks_at_all_rows(steps) == []


def test_counting_reads_ranges_of_the_two_indexes_and_never_the_table(large: Store) -> None:
    statement = large._statements.count
    steps = " ".join(step for step in plan(large, statement) if "documents" in step)
    assert steps.count("documents_by_expiry (collection_id=? AND expires_at") == 2, steps
    assert steps.count("documents_by_write (collection_id=? AND _ts>?)") == 1, steps
    (table,) = raw(large).execute("SELECT rootpage FROM sqlite_master WHERE name = 'documents'").fetchone()
    program = raw(large).execute(f"EXPLAIN {statement.sql}", [None] * statement.sql.count("?")).fetchall()
    opened = {p1 for _, opcode, p1, p2, *_ in program if opcode == "OpenRead" and p2 == table}
    assert [step for step in program if step[1] in ("Column", "FinishSeek") and step[2] in opened] == []


def test_a_page_starts_where_the_last_one_ended(large: Store) -> None:
    steps = plan(large, large._statements.page)
    assert any("INDEX documents_in_order (collection_id=? AND seq>?)" in step for step in steps), steps
    assert not any("TEMP B-TREE" in step for step in steps), "it is in order already"
    assert looks_at_all_rows(steps) == []


OWN, INHERITED = due_ranges()


@pytest.mark.parametrize(
    ("range_", "index"),
    [
        pytest.param(OWN, "documents_by_expiry (collection_id=? AND expires_at<?)", id="own"),
        pytest.param(INHERITED, "documents_by_write (collection_id=? AND _ts<?)", id="inherited"),
    ],
)
def test_what_is_due_is_a_range_of_an_index(large: Store, range_: ColumnElement[bool], index: str) -> None:
    its_collection = and_(documents.c.collection_id == collections.c.id, collections.c.id == bindparam("collection"))
    steps = plan(large, prepare(select(documents.c.seq).where(its_collection, range_), "now", "collection"))
    assert any(f"INDEX {index}" in step for step in steps), steps
    assert looks_at_all_rows(steps) == []


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("delete_own_due", "documents_by_expiry (collection_id=? AND expires_at>? AND expires_at<?)"),
        ("delete_inherited_due", "documents_by_write (collection_id=? AND _ts>? AND _ts<?)"),
        ("delete_dropped", "documents_in_order (collection_id=? AND seq>?)"),
    ],
)
def test_the_vacuum_goes_on_in_the_index_where_it_was(large: Store, name: str, index: str) -> None:
    steps = plan(large, getattr(large._statements, name))
    assert {step.rpartition("INDEX ")[2] for step in steps if "INDEX" in step} == {index}
    assert not any("TEMP B-TREE" in step for step in steps), "it is in order already"
    assert looks_at_all_rows(steps) == []


def test_the_expiry_of_a_document_is_computed_by_the_database(large: Store) -> None:
    rows = raw(large).execute("SELECT _ts, ttl, expires_at FROM documents").fetchall()
    assert {ttl for _, ttl, _ in rows} == {None, -1, 30, 90}
    assert all(expires_at == (ts + ttl * 1000 if ttl and ttl > 0 else None) for ts, ttl, expires_at in rows)


def test_an_iteration_over_few_documents_does_not_walk_past_those_of_others(large: Store) -> None:
    assert work(large, lambda: list(large.collection("few"))) < 200


def test_an_or_of_indexed_paths_reads_what_it_finds_and_not_the_collection(large: Store) -> None:
    many = large.collection("many")
    many.configure(indexing=IndexingPolicy(paths=("/a", "/b")))
    many.create_many({"id": f"new {n}", "a": n, "b": -n} for n in range(100))
    text = "c.a = 7 OR c.b = -8 OR c.a > 97"
    assert [found["a"] for found in many.query(text)] == [7, 8, 98, 99]
    served = work(large, lambda: list(many.query(text)))
    many.configure(indexing=IndexingPolicy())
    assert work(large, lambda: list(many.query(text))) > 50 * served
