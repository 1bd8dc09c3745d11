"""One moment of a collection or a store, while it changes."""

import threading
from pathlib import Path

import pytest

import ttlstore
from ttlstore.testing import FakeClock


@pytest.fixture(params=["file", "memory"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return ":memory:" if request.param == "memory" else str(tmp_path / "app.db")


def test_a_snapshot_is_one_moment_whatever_is_written_meanwhile(target: str) -> None:
    with ttlstore.open(target) as store:
        carts = store.create_collection("carts")
        carts.create_many({"id": str(number)} for number in range(2000))
        snapshot = carts.snapshot()
        seen = [next(snapshot)["id"]]
        carts.delete("1999")
        carts.create({"id": "new"})
        seen += [document["id"] for document in snapshot]
        assert seen == [str(number) for number in range(2000)]


def test_a_snapshot_keeps_what_expires_meanwhile_and_leaves_out_what_has_expired(target: str) -> None:
    clock = FakeClock()
    with ttlstore.open(target, clock=clock) as store:
        carts = store.create_collection("carts", default_ttl=10)
        carts.create({"id": "gone"})
        clock.advance(5)
        carts.create({"id": "going"})
        clock.advance(5)
        carts.create({"id": "last"})
        snapshot = carts.snapshot()
        assert next(snapshot)["id"] == "going"
        clock.advance(10)
        assert next(snapshot)["id"] == "last"


def test_a_snapshot_inside_a_transaction_sees_what_the_transaction_wrote(target: str) -> None:
    with ttlstore.open(target) as store, store.transaction():
        carts = store.create_collection("carts")
        carts.create({"id": "a"})
        assert [document["id"] for document in carts.snapshot()] == ["a"]


def test_a_snapshot_of_a_dropped_collection_says_so(target: str) -> None:
    with ttlstore.open(target) as store:
        dropped = store.create_collection("dropped")
        store.delete_collection("dropped")
        with pytest.raises(ttlstore.CollectionNotFound):
            next(dropped.snapshot())


def test_a_backup_is_one_moment_however_much_is_written_while_it_is_made(tmp_path: Path) -> None:
    with ttlstore.open(tmp_path / "app.db", durability="normal") as store:
        carts = store.create_collection("carts")
        carts.create_many({"id": str(number), "filling": "x" * 2000} for number in range(8000))
        steps: list[tuple[int, int]] = []

        def write_meanwhile(copied: int, total: int) -> None:
            writer = threading.Thread(target=carts.create, args=({"id": f"meanwhile {len(steps)}"},))
            writer.start()
            writer.join()
            steps.append((copied, total))

        store.backup(tmp_path / "copy.db", progress=write_meanwhile)
        assert len(carts) == 8000 + len(steps)
    assert len(steps) > 2
    assert steps == sorted(steps)  # it never started anew
    with ttlstore.open(tmp_path / "copy.db") as copy:
        assert len(copy.collection("carts")) == 8000
        assert copy.check() == []
