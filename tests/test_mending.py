"""An index that cannot be made or removed is told, is tried again later, and holds up nothing else."""

from collections.abc import Iterator
from itertools import pairwise
from types import SimpleNamespace

import pytest

import ttlstore
from tests.postgres import Server
from tests.test_background_vacuum import rows, until
from ttlstore import Collection, IndexingPolicy, Store, StoreFull, StoreReadOnly, indexes
from ttlstore.engine import Engine
from ttlstore.mending import FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS
from ttlstore.testing import FakeClock

# Longer in every one of ten properties than PostgreSQL has room for in an entry of an index; alike, they would shrink.
LONG = {f"p{place}": "".join(chr(0x20000 + place * 1000 + number * 7) for number in range(100)) for place in range(10)}
WIDE = tuple(f"/p{place}" for place in range(10))


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """The clock by which it is tried again."""
    clock = FakeClock(1000)
    monkeypatch.setattr("ttlstore.mending.time", SimpleNamespace(monotonic=clock))
    return clock


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """No index over `/full` can be made. Each try is in the list."""
    build, tries = indexes.build, list[str]()

    def no_room(engine: Engine, define: indexes.Define, collection: int, policy: IndexingPolicy, name: str) -> None:
        if indexes.named(collection, policy)[name] == (("full",),):
            tries.append(name)
            raise StoreFull("there is no room left")
        build(engine, define, collection, policy, name)

    monkeypatch.setattr(indexes, "build", no_room)
    return tries


def test_rows_are_deleted_though_an_index_cannot_be_made(
    store: Store, sessions: Collection, clock: FakeClock, broken: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    sessions.configure(indexing=IndexingPolicy("lazy", ("/full",)))
    sessions.create_many({"id": str(number)} for number in range(100))
    clock.advance(10)
    report = store.vacuum()
    assert (report.deleted, report.finished) == (100, False)
    assert store.stats().vacuum.last_error == "StoreFull: there is no room left"
    (record,) = caplog.records
    assert "'sessions'" in record.getMessage()
    assert "there is no room left" in record.getMessage()


def test_the_other_indexes_are_made_though_one_cannot_be(store: Store, archive: Collection, broken: list[str]) -> None:
    archive.configure(indexing=IndexingPolicy("lazy", ("/a", "/b", "/full", "/c")))
    store.vacuum()
    assert list(store._engine.all_indexes().values()) == [True] * 3
    assert len(broken) == 1  # try


def test_it_is_tried_again_less_and_less_often_and_told_once(
    store: Store,
    archive: Collection,
    broken: list[str],
    steady: FakeClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    archive.configure(indexing=IndexingPolicy("lazy", ("/full",)))
    tried_at: list[float] = []
    for _ in range(round(3 * LAST_RETRY_SECONDS / FIRST_RETRY_SECONDS)):
        tries = len(broken)
        assert not store.vacuum().finished
        assert not store.vacuum(grace=60).finished
        if len(broken) > tries:
            assert len(broken) == tries + 1
            tried_at.append(steady())
        steady.advance(FIRST_RETRY_SECONDS)
    waits = [after - before for before, after in pairwise(tried_at)]
    assert waits[:4] == [60, 120, 240, 480]
    assert waits[-1] == LAST_RETRY_SECONDS
    assert len(caplog.records) == 1


def test_it_is_made_when_it_can_be(
    store: Store, archive: Collection, broken: list[str], steady: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.configure(indexing=IndexingPolicy("lazy", ("/full",)))
    assert not store.vacuum().finished
    monkeypatch.undo()
    monkeypatch.setattr("ttlstore.mending.time", SimpleNamespace(monotonic=steady))
    steady.advance(FIRST_RETRY_SECONDS - 1)
    assert not store.vacuum().finished
    steady.advance(1)
    assert store.vacuum().finished
    assert list(store._engine.all_indexes().values()) == [True]


def test_another_policy_is_not_put_off(store: Store, archive: Collection, broken: list[str]) -> None:
    archive.configure(indexing=IndexingPolicy("lazy", ("/full",)))
    assert not store.vacuum().finished
    archive.configure(indexing=IndexingPolicy("lazy", ("/empty",)))
    assert store.vacuum().finished


def test_the_thread_sleeps_until_it_is_tried_again(
    store: Store, archive: Collection, broken: list[str], clock: FakeClock, steady: FakeClock
) -> None:
    """It would look for work every second, and find that nothing can be done."""
    archive.configure(indexing=IndexingPolicy("lazy", ("/full",)))
    assert store._vacuum.schedule()[0][0].at == 0
    store.vacuum()
    (due,) = store._vacuum.schedule()[0]
    assert due.at == (clock() + FIRST_RETRY_SECONDS) * 1000


# --- on PostgreSQL --------------------------------------------------------------------------------------------------


def test_a_document_that_does_not_fit_in_an_index_keeps_no_row_of_another(live: Store, steady: FakeClock) -> None:
    dropped, wide = live.create_collection("dropped"), live.create_collection("wide")
    dropped.create({"id": "a"})
    live.delete_collection("dropped")
    wide.create({"id": "long", **LONG})
    wide.configure(indexing=IndexingPolicy("lazy", (WIDE,)))
    report = live.vacuum()
    assert (report.deleted, report.finished) == (1, False)
    assert "too long" in str(live.stats().vacuum.last_error)
    assert wide.read("long")["p9"] == LONG["p9"]
    wide.delete("long")
    steady.advance(FIRST_RETRY_SECONDS)
    assert live.vacuum().finished


@pytest.fixture
def without_rights(live: Store, postgres: Server, postgres_url: str) -> Iterator[str]:
    """The URL of the store for a role that may change what is in tables, and make none."""
    schema = postgres_url.rpartition("=")[2]
    role = f"of_{schema}"
    postgres.admin.execute(f"CREATE ROLE {role}")
    postgres.admin.execute(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
    postgres.admin.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}")
    postgres.admin.execute(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {role}")
    try:
        yield f"{postgres_url}&options=-crole%3D{role}"
    finally:
        postgres.admin.execute(f"DROP OWNED BY {role}")
        postgres.admin.execute(f"DROP ROLE {role}")


def test_a_role_that_may_make_no_index_deletes_rows(live: Store, without_rights: str) -> None:
    live.create_collection("orders", indexing=IndexingPolicy("lazy", ("/total",)))
    live.create_collection("sessions", default_ttl=1)
    with ttlstore.open(without_rights) as store:
        store.collection("sessions").create({"id": "a"})
        until(lambda: rows(store) == 0)
        assert store.stats().vacuum.deleted == 1
        assert "permission denied" in str(store.stats().vacuum.last_error)
        with pytest.raises(StoreReadOnly):
            store.collection("orders").configure(indexing=IndexingPolicy(paths=("/total",)))
    assert live.vacuum().finished
    assert list(live._engine.all_indexes().values()) == [True]


def test_a_role_that_may_remove_no_index_deletes_rows(live: Store, without_rights: str) -> None:
    for name in ("first", "second"):
        dropped = live.create_collection(name, indexing=IndexingPolicy(paths=("/total",)))
        dropped.create_many({"id": str(number)} for number in range(10))
        live.delete_collection(name)
    with ttlstore.open(without_rights, vacuum=False) as store:
        report = store.vacuum()
        assert (report.deleted, report.finished) == (20, False)
        assert "must be owner" in str(store.stats().vacuum.last_error)
    assert live.vacuum().finished
    assert live._engine.all_indexes() == {}
