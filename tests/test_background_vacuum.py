"""The vacuum's thread: in real threads and processes, on the real clock."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import ttlstore
from ttlstore import Store, VacuumPolicy, forks
from ttlstore.background import BackgroundVacuum
from ttlstore.engine.sqlite.turn import turn
from ttlstore.testing import FakeClock
from ttlstore.vacuum import Due

PATIENCE_SECONDS = 20.0  # for a machine that is busy with other things


def until(condition: Callable[[], bool]) -> None:
    """Wait for what another thread or process does."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        threading.Event().wait(0.01)


def vacuum_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "ttlstore-vacuum"]


def rows(store: Store) -> int:
    stats = store.stats()
    return stats.live_documents + stats.waiting_documents


def test_opening_a_store_is_enough(path: Path) -> None:
    with ttlstore.open(path) as store:
        sessions = store.create_collection("sessions", default_ttl=1)
        sessions.create({"id": "a"})
        sessions.create({"id": "kept", "ttl": -1})
        until(lambda: rows(store) == 1)
        assert store.stats().vacuum.deleted == 1
        assert "kept" in sessions


def test_what_was_due_when_the_store_was_closed_is_deleted_after_it_is_opened(path: Path) -> None:
    with ttlstore.open(path, vacuum=False, clock=lambda: time.time() - 3600) as store:
        store.create_collection("sessions", default_ttl=60).create_many({"id": f"{n}"} for n in range(500))
    with ttlstore.open(path) as store:
        until(lambda: rows(store) == 0)


def test_a_shorter_default_wakes_it(path: Path) -> None:
    with ttlstore.open(path) as store:
        sessions = store.create_collection("sessions", default_ttl=3600)
        sessions.create({"id": "a"})
        sessions.configure(default_ttl=1)
        until(lambda: rows(store) == 0)


def test_a_document_that_expires_earlier_wakes_it(path: Path) -> None:
    with ttlstore.open(path) as store:
        sessions = store.create_collection("sessions", default_ttl=3600)
        sessions.create({"id": "later"})
        sessions.create({"id": "soon", "ttl": 1})
        sessions.upsert_many([{"id": "soon, too", "ttl": 1}])
        until(lambda: rows(store) == 1)


def test_dropping_a_collection_wakes_it(path: Path) -> None:
    with ttlstore.open(path) as store:
        store.create_collection("logs").create_many({"id": f"{n}"} for n in range(500))
        store.delete_collection("logs")
        until(lambda: rows(store) == 0)


def test_what_it_could_not_see_before_the_end_of_a_transaction_is_seen_after_it(path: Path) -> None:
    with ttlstore.open(path) as store:
        until(lambda: asleep(store))
        looks = Looks(store)
        with store.transaction():
            store.create_collection("sessions", default_ttl=1).create({"id": "a"})
            until(lambda: looks.count > 0 and asleep(store))  # in vain
        until(lambda: rows(store) == 0 and store.stats().vacuum.deleted == 1)


def test_in_memory_too() -> None:
    with ttlstore.open(":memory:") as store:
        store.create_collection("sessions", default_ttl=1).create({"id": "a"})
        until(lambda: rows(store) == 0)


def test_without_it_nothing_is_deleted_and_no_thread_runs(path: Path) -> None:
    before = vacuum_threads()
    with ttlstore.open(path, vacuum=False, clock=lambda: time.time() - 3600) as store:
        store.create_collection("sessions", default_ttl=60).create({"id": "a"})
    with ttlstore.open(path, vacuum=False) as store:
        assert vacuum_threads() == before
        assert rows(store) == 1


def test_a_policy_is_obeyed(path: Path) -> None:
    with ttlstore.open(path, vacuum=False, clock=lambda: time.time() - 3600) as store:
        store.create_collection("sessions", default_ttl=60).create({"id": "a"})
    with ttlstore.open(path, vacuum=VacuumPolicy(grace=86_400)) as store:
        sessions = store.collection("sessions")
        sessions.create({"id": "b", "ttl": 1})
        store.delete_collection(store.create_collection("dropped").name)
        until(lambda: store._engine.all(store._statements.next_due)[-1][1] == "sessions")  # it has been at work
        assert sessions.stats().waiting_documents >= 1
        assert sessions.recover("a")["id"] == "a"


# --- sleeping -------------------------------------------------------------------------------------------------------


class Looks:
    """Counts how often the thread looks for work."""

    def __init__(self, store: Store) -> None:
        self.count = 0
        self._schedule = store._vacuum.schedule
        store._vacuum.schedule = self.look  # type: ignore[method-assign]

    def look(self) -> tuple[list[Due], dict[int, int | None]]:
        self.count += 1
        return self._schedule()


def background(store: Store) -> BackgroundVacuum:
    assert store._background
    return store._background


def asleep(store: Store) -> bool:
    """Whether the thread knows all collections, and until when it sleeps."""
    thread = background(store)._thread
    frame = sys._current_frames().get(thread.ident or 0) if thread else None
    waits = frame is not None and frame.f_code is BackgroundVacuum._called.__code__
    return background(store)._looked_at > 0 and waits


def asleep_for_long(store: Store) -> bool:
    """Whether it has seen a document that expires in an hour."""
    return asleep(store) and time.time() + 1800 < background(store)._target / 1000 < float("inf")


def test_a_store_in_which_nothing_expires_causes_no_wake_ups(path: Path) -> None:
    with ttlstore.open(path) as store:
        off = store.create_collection("off")
        on = store.create_collection("on", default_ttl=-1)
        off.create({"id": "first"})
        on.create({"id": "first"})
        until(lambda: len(background(store)._defaults) == 2 and asleep(store))
        looks = Looks(store)
        for number in range(100):
            off.upsert({"id": f"{number}", "ttl": 1})
            on.upsert({"id": f"{number}"})
            on.upsert({"id": f"{number}", "ttl": -1})
        off.upsert_many({"id": f"{number}"} for number in range(100))
        assert background(store)._target == float("inf")
        assert looks.count == 0


def test_documents_that_expire_later_than_the_next_do_not_wake_it(path: Path) -> None:
    with ttlstore.open(path) as store:
        sessions = store.create_collection("sessions", default_ttl=3600)
        sessions.create({"id": "first"})
        until(lambda: asleep_for_long(store))
        target = background(store)._target
        looks = Looks(store)
        for number in range(100):
            sessions.upsert({"id": f"{number}"})
            sessions.upsert({"id": f"own {number}", "ttl": 7200})
        assert background(store)._target == target
        assert looks.count == 0


# --- its end --------------------------------------------------------------------------------------------------------


def test_close_ends_the_thread(path: Path) -> None:
    before = vacuum_threads()
    for _ in range(20):
        with ttlstore.open(path):
            pass
    assert vacuum_threads() == before


def test_close_does_not_wait_for_all_that_is_due(path: Path) -> None:
    with ttlstore.open(path, durability="normal", vacuum=False, clock=lambda: time.time() - 3600) as store:
        store.create_collection("sessions", default_ttl=60).create_many({"id": f"{n}"} for n in range(50_000))
    store = ttlstore.open(path)
    until(lambda: store.stats().vacuum.batches > 0)
    store.close()
    with ttlstore.open(path, vacuum=False) as store:
        assert rows(store) > 0
        assert store.check() == []


def run_python(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", script, *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS * 3,
        check=False,
    )


def test_the_interpreter_ends_while_it_works_and_without_a_close(path: Path) -> None:
    with ttlstore.open(path, durability="normal", vacuum=False, clock=lambda: time.time() - 3600) as store:
        store.create_collection("sessions", default_ttl=60).create_many({"id": f"{n}"} for n in range(50_000))
    script = """if True:
        import sys, ttlstore
        store = ttlstore.open(sys.argv[1])
        while not store.stats().vacuum.batches: pass
    """
    done = run_python(script, str(path))
    assert (done.returncode, done.stdout) == (0, "")
    with ttlstore.open(path, vacuum=False) as store:
        assert store.check() == []


def test_killed_in_the_middle_nothing_live_is_missing_and_the_next_goes_on(path: Path) -> None:
    with ttlstore.open(path, durability="normal", vacuum=False, clock=lambda: time.time() - 3600) as store:
        sessions = store.create_collection("sessions", default_ttl=60)
        sessions.create_many({"id": f"{n}", "ttl": -1 if n % 10 == 0 else 60} for n in range(30_000))
    script = """if True:
        import sys, time, ttlstore
        store = ttlstore.open(sys.argv[1])
        while not store.stats().vacuum.batches: pass
        print("working", flush=True)
        time.sleep(60)
    """
    child = subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout
    assert child.stdout.readline() == "working\n"
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    with ttlstore.open(path) as store:
        assert len(store.collection("sessions")) == 3000
        until(lambda: rows(store) == 3000)
        assert store.check() == []


# --- many processes, forks ------------------------------------------------------------------------------------------


def test_while_another_process_has_the_turn_it_waits_and_takes_over_after(path: Path) -> None:
    with ttlstore.open(path, vacuum=False, clock=lambda: time.time() - 3600) as store:
        store.create_collection("sessions", default_ttl=60).create({"id": "a"})
    script = """if True:
        import sys
        from ttlstore.engine.sqlite.turn import turn
        with turn(sys.argv[1] + "-vacuum") as ours:
            print(ours, flush=True)
            sys.stdin.read()
    """
    other = subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout
    assert other.stdout.readline() == "True\n"
    with ttlstore.open(path) as store:
        until(lambda: asleep(store) and background(store)._target < float("inf"))
        assert rows(store) == 1
        other.kill()  # the operating system takes the lock back
        other.communicate()
        until(lambda: rows(store) == 0)


def test_a_turn_is_one_at_a_time(tmp_path: Path) -> None:
    path = str(tmp_path / "turn")
    with turn(path) as first, turn(path) as second:
        assert (first, second) == (True, False)
    with turn(path) as again:
        assert again


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")  # pytest's workers have threads
def test_at_the_moment_of_a_fork_there_is_no_thread(path: Path) -> None:
    class Witness:
        def before_fork(self) -> None:
            self.threads = vacuum_threads()

        def after_fork_in_parent(self) -> None: ...

        def after_fork_in_child(self) -> None: ...

    witness = Witness()
    with ttlstore.open(path, clock=lambda: time.time() - 3600) as store:
        store.create_collection("sessions", default_ttl=60).create_many({"id": f"{n}"} for n in range(3000))
    with ttlstore.open(path) as store:
        until(lambda: store.stats().vacuum.deleted > 0)
        forks.engines.add(witness)
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        assert witness.threads == []
        until(lambda: rows(store) == 0)
    forks.engines.discard(witness)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_gets_its_own(path: Path) -> None:
    with ttlstore.open(path) as store:
        sessions = store.create_collection("sessions", default_ttl=3600)
        sessions.create({"id": "parent"})
        until(lambda: asleep_for_long(store))
        child = os.fork()
        if child == 0:
            status = 1
            try:
                sessions.create({"id": "child", "ttl": 1})
                until(lambda: store.stats().vacuum.deleted == 1)
                status = 0
            finally:
                os._exit(status)
        store._background.stop()  # type: ignore[union-attr]  # or the parent's may be the first to delete
        _, status = os.waitpid(child, 0)
        assert status == 0
        assert [document["id"] for document in sessions] == ["parent"]


# --- errors ---------------------------------------------------------------------------------------------------------


def test_an_error_is_logged_kept_and_tried_again(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("ttlstore.background.FIRST_RETRY_SECONDS", 0.01)
    with ttlstore.open(path) as store:
        sessions = store.create_collection("sessions", default_ttl=3600)
        until(lambda: asleep(store))
        schedule = store._vacuum.schedule
        failures = 0

        def fail_twice() -> tuple[list[Due], dict[int, int | None]]:
            nonlocal failures
            failures += 1
            if failures <= 2:
                raise ttlstore.StoreFailed("the disk is on fire")
            return schedule()

        store._vacuum.schedule = fail_twice  # type: ignore[method-assign]
        with caplog.at_level(logging.WARNING, "ttlstore.vacuum"):
            sessions.create({"id": "a", "ttl": 1})
            until(lambda: rows(store) == 0)
        assert store.stats().vacuum.last_error == "StoreFailed: the disk is on fire"
        logged = [record for record in caplog.records if record.name == "ttlstore.vacuum"]
        assert len(logged) == 2
        assert all("the disk is on fire" in record.getMessage() for record in logged)
        assert not any(record.exc_info for record in logged), "it is no surprise"


def test_a_clock_that_fails_for_a_while_does_not_end_it(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("ttlstore.background.FIRST_RETRY_SECONDS", 0.01)
    broken = threading.Event()

    def clock() -> float:
        if broken.is_set() and threading.current_thread() is not threading.main_thread():
            raise OSError("no time")
        return time.time()

    with ttlstore.open(path, clock=clock) as store:
        sessions = store.create_collection("sessions", default_ttl=1)
        broken.set()
        sessions.create({"id": "a"})
        until(lambda: store.stats().vacuum.last_error == "OSError: no time")
        broken.clear()
        until(lambda: rows(store) == 0)
    assert any(record.exc_info for record in caplog.records if "failed" in record.getMessage())


def test_a_clock_that_jumps_is_logged_once_and_trusted_by_word(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("ttlstore.background.HOLD_SECONDS", 0.01)
    jump = FakeClock(0)
    wall = time.time
    monkeypatch.setattr("time.time", lambda: wall() + jump())
    with (
        caplog.at_level(logging.WARNING, "ttlstore.vacuum"),
        ttlstore.open(path, clock=time.time) as store,
    ):
        sessions = store.create_collection("sessions", default_ttl=3600)
        sessions.create({"id": "a"})
        until(lambda: asleep(store))
        jump.set(86_400)
        background(store).wake()
        until(lambda: store.stats().vacuum.holding is not None)
        assert "a" not in sessions
        assert rows(store) == 1
        store.trust_clock()
        until(lambda: rows(store) == 0)
    holds = [record.getMessage() for record in caplog.records if "holds" in record.getMessage()]
    assert len(holds) == 1
    assert "set forward by 86,400 s" in holds[0]
