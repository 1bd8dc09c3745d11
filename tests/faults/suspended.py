"""Processes that are suspended in the middle of something: where they say so, they wait for it and for its end."""

import signal
from pathlib import Path

import ttlstore
from tests.faults import works
from tests.faults.victim import Tell


def _wait_there(tell: Tell) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCONT})  # so that it is not missed, however soon it comes
    tell("there")
    signal.sigwait({signal.SIGCONT})


def in_a_transaction(tell: Tell, path: Path, now: float) -> None:
    with works.opened(path, now, vacuum=False) as store:
        with store.transaction():
            store.collection("c").upsert({"id": "counter", "n": 2, "ttl": -1})
            _wait_there(tell)
            store.collection("c").patch("counter", [{"op": "incr", "path": "/n", "value": 1}])
        tell("done")


def in_a_snapshot(tell: Tell, path: Path, now: float) -> None:
    with works.opened(path, now, vacuum=False) as store:
        documents = store.collection("c").snapshot()
        first = next(documents)
        _wait_there(tell)
        tell([document["id"] for document in (first, *documents)])


def in_its_turn(tell: Tell, path: Path) -> None:
    with ttlstore.open(path, vacuum=False) as store, store._engine.turn() as ours:
        assert ours
        _wait_there(tell)
        tell(store.vacuum().deleted)
