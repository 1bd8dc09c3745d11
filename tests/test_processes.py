"""Many processes on one file, and processes that are made by fork."""

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

import ttlstore
from tests.files import open_files
from ttlstore import Store, StoreBusy
from ttlstore.testing import FakeClock

PATIENCE_SECONDS = 60  # with a process that should have ended long ago


class Program:
    """A Python process that runs what it is told, line by line, and says what comes of it."""

    def __init__(self, path: Path, first: str = "") -> None:
        loop = (
            "import sys, os, ttlstore, time\n"
            f"path = {str(path)!r}\n{first}\n"
            "for line in sys.stdin:\n"
            "    try:\n"
            "        answer = repr(eval(line))\n"
            "    except ttlstore.TtlStoreError as error:\n"
            "        answer = type(error).__name__\n"
            "    print(answer, flush=True)\n"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", loop], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def start(self, expression: str) -> None:
        stdin: IO[str] | None = self.process.stdin
        assert stdin is not None
        stdin.write(expression + "\n")
        stdin.flush()

    def answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def tell(self, expression: str) -> str:
        self.start(expression)
        return self.answer()

    def end(self) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        status = self.process.wait(PATIENCE_SECONDS)
        self.process.stdout.close()
        return status


OPEN = "store = ttlstore.open(path); c = store.ensure_collection('c')"


@contextmanager
def program(path: Path, first: str = OPEN) -> Iterator[Program]:
    running = Program(path, first)
    try:
        yield running
    finally:
        assert running.end() == 0


def forked(work: Callable[[], object]) -> int:
    """Run in a forked child that ends as a program does, and tell its exit status."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        work()
        os._exit(0)
    except BaseException as error:
        print(repr(error), file=sys.stderr)
        os._exit(1)


# The vacuum's thread is ended before a fork and begun again after, which Python took for a thread beside the fork until
# its issue 137109 was mended, in 3.13 and 3.14.
FORKS_ARE_FINE = "ignore:This process:DeprecationWarning"


def script(code: str, path: Path, *, imports: str = "os, sys, ttlstore") -> str:
    """What a program prints that has a process of its own."""
    done = subprocess.run(
        [sys.executable, "-W", FORKS_ARE_FINE, "-c", f"import {imports}\npath = {str(path)!r}\n{code}"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.strip()


# --- many processes ---------------------------------------------------------------------------------------------------


def test_eight_processes_open_the_same_new_file_at_once(path: Path) -> None:
    programs = [Program(path) for _ in range(8)]
    for one in programs:
        assert one.tell("ttlstore.__name__") == "'ttlstore'"  # all are up: now at once
    for n, one in enumerate(programs):
        one.start(f"ttlstore.open(path).ensure_collection('c').create({{'id': '{n}'}})['id']")
    assert [one.answer() for one in programs] == [f"'{n}'" for n in range(8)]
    assert [one.end() for one in programs] == [0] * 8
    with ttlstore.open(path) as store:
        assert store.collection("c").count() == 8
        assert store.check() == []


def test_a_change_of_the_default_is_obeyed_by_the_next_call_of_another_process(path: Path) -> None:
    clock = FakeClock()
    here = ttlstore.open(path, clock=clock, vacuum=False)
    c = here.create_collection("c", default_ttl=10)
    c.create({"id": "a"})
    with program(
        path, f"store = ttlstore.open(path, clock=lambda: {clock() + 5}, vacuum=False); c = store.collection('c')"
    ) as other:
        assert other.tell("(c.count(), 'a' in c)") == "(1, True)"
        c.configure(default_ttl=5)
        assert other.tell("(c.count(), 'a' in c, c.get('a'), list(c), c.default_ttl)") == "(0, False, None, [], 5)"
        c.configure(default_ttl=6)
        assert other.tell("(c.count(), c.read('a')['id'])") == "(1, 'a')"
        assert other.tell("c.configure(default_ttl=None)") == "None"
        assert c.default_ttl is None
    here.close()


def test_processes_count_together_without_losing_one(path: Path) -> None:
    with ttlstore.open(path) as store:
        store.create_collection("c").create({"id": "n", "value": 0})
    operation = [{"op": "incr", "path": "/value", "value": 1}]
    programs = [
        Program(path, "store = ttlstore.open(path, durability='normal'); c = store.collection('c')") for _ in range(4)
    ]
    for one in programs:
        one.start(f"len({{c.patch('n', {operation})['_etag'] for _ in range(100)}})")
    assert [one.answer() for one in programs] == ["100"] * 4
    assert [one.end() for one in programs] == [0] * 4
    with ttlstore.open(path) as store:
        assert store.collection("c").read("n")["value"] == 400


def test_a_writer_waits_for_another_process_and_then_gives_up(path: Path) -> None:
    with program(path) as other:
        assert other.tell("c.create({'id': 'a'})['id']") == "'a'"
        assert other.tell("(transaction := store.transaction()).__enter__()") == "None"
        assert other.tell("c.create({'id': 'b'})['id']") == "'b'"
        with ttlstore.open(path, busy_timeout=0.05) as store:
            collection = store.collection("c")
            for write in (
                lambda: collection.create({"id": "d"}),
                lambda: collection.upsert({"id": "d"}),
                lambda: collection.delete("a"),
                lambda: collection.touch("a"),
                lambda: collection.create_many([{"id": "d"}]),
                lambda: collection.configure(default_ttl=5),
                lambda: store.create_collection("d"),
                lambda: store.delete_collection("c"),
                lambda: store.transaction().__enter__(),
            ):
                with pytest.raises(StoreBusy, match=r"0\.05 s \(busy_timeout\); nothing was written"):
                    write()
            assert [document["id"] for document in collection] == ["a"], "reading does not wait"
            with ttlstore.open(path, busy_timeout=PATIENCE_SECONDS) as patient:
                other.start("transaction.__exit__(None, None, None)")
                assert patient.collection("c").create({"id": "c"})
                assert other.answer() == "False"
            assert [document["id"] for document in collection] == ["a", "b", "c"]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="files that are open are counted in /proc")
def test_a_store_that_another_process_keeps_from_being_opened_is_not_left_half_open(path: Path) -> None:
    ttlstore.open(path).close()
    # Not in the mode that stores are in, so that it is the last step of opening it that is in vain.
    by_hand = (
        "import sqlite3; db = sqlite3.connect(path, isolation_level=None); db.execute('PRAGMA journal_mode=DELETE')"
    )
    with program(path, by_hand) as other:
        assert other.tell("db.execute('BEGIN IMMEDIATE').rowcount") == "-1"
        with pytest.raises(StoreBusy) as refused:
            ttlstore.open(path, busy_timeout=0)
        assert open_files(path) == 0, f"though the traceback of {refused.value!r} knows all that was made"


def test_what_was_written_survives_a_process_that_is_killed(path: Path) -> None:
    victim = Program(path, OPEN)
    assert victim.tell("c.create({'id': 'kept'})['id']") == "'kept'"
    assert victim.tell("(transaction := store.transaction()).__enter__()") == "None"
    assert victim.tell("c.create({'id': 'lost'})['id']") == "'lost'"
    victim.process.send_signal(signal.SIGKILL)
    assert victim.end() == -signal.SIGKILL
    with ttlstore.open(path) as store:
        assert [document["id"] for document in store.collection("c")] == ["kept"]
        assert store.check() == []


# --- fork -------------------------------------------------------------------------------------------------------------


def test_a_forked_child_reads_and_writes_and_the_parent_goes_on(store: Store, kind: str) -> None:
    collection = store.create_collection("c")
    collection.create({"id": "parent"})

    def child() -> None:
        assert collection.read("parent")
        collection.create({"id": "child"})
        with store.transaction():
            collection.create({"id": "child too"})
        assert collection.count() == 3
        assert store.check() == []
        store.close()

    assert forked(child) == 0
    collection.create({"id": "later"})
    shared = ["parent", "child", "child too", "later"]
    assert [document["id"] for document in collection] == (["parent", "later"] if kind == "memory" else shared)


FORKING = """
store = ttlstore.open(path)
c = store.create_collection("c")
c.create({"id": "parent"})
to_child, to_parent = os.pipe(), os.pipe()
if os.fork() == 0:
    c.create({"id": "child"})
    os.write(to_parent[1], b".")
    os.read(to_child[0], 1)
    c.create({"id": "child, after the parent closed"})
    os.write(to_parent[1], b".")
    os.read(to_child[0], 1)
    c.create({"id": "child, after another came and went"})
    assert store.check() == []
    sys.exit()
os.read(to_parent[0], 1)
store.close()
os.write(to_child[1], b".")
os.read(to_parent[0], 1)
import subprocess
other = "import sys, ttlstore; ttlstore.open(sys.argv[1]).collection('c').create({'id': 'another'})"
subprocess.run([sys.executable, "-c", other, path], check=True)
os.write(to_child[1], b".")
assert os.wait()[1] == 0
"""


ANOTHER = """
with ttlstore.open(path) as store:
    store.collection("c").create_many({"of": "another"} for number in range(20))
"""


def test_opened_again_beside_a_stream_of_a_store_that_was_closed_nothing_is_lost_to_others(path: Path) -> None:
    first = ttlstore.open(path, vacuum=False)
    documents = first.create_collection("c")
    documents.create_many({"id": str(number)} for number in range(500))
    begun = documents.snapshot()
    next(begun)
    first.close()
    with ttlstore.open(path, vacuum=False) as second:
        for number in range(3):
            second.collection("c").create({"id": f"of this {number}"})
            script(ANOTHER, path)
            script(ANOTHER, path)
        assert len(list(begun)) == 499
    with ttlstore.open(path, vacuum=False) as store:
        assert store.check() == []
        assert len(store.collection("c")) == 500 + 3 + 6 * 20


def test_what_a_child_writes_is_not_lost_when_its_parent_closes_the_store(path: Path) -> None:
    script(FORKING, path)
    with ttlstore.open(path) as store:
        assert [document["id"] for document in store.collection("c")] == [
            "parent",
            "child",
            "child, after the parent closed",
            "another",
            "child, after another came and went",
        ]
        assert store.check() == []


def test_a_child_that_ends_normally_takes_nothing_from_its_parent(path: Path) -> None:
    """As application servers do it: opened before the workers are forked, and used by all."""
    script(
        """
store = ttlstore.open(path)
c = store.create_collection("c")
for worker in range(4):
    c.create({"id": f"parent {worker}"})
    if os.fork() == 0:
        for n in range(25):
            c.create({"id": f"{worker}/{n}"})
        sys.exit()
c.create({"id": "parent"})
assert [os.wait()[1] for _ in range(4)] == [0] * 4
c.create({"id": "parent, afterwards"})
assert c.count() == 106 and store.check() == []
assert len({document["_etag"] for document in c}) == 106
""",
        path,
    )
    with ttlstore.open(path) as store:
        assert store.collection("c").count() == 106


def test_etags_of_forked_children_never_collide(store: Store, tmp_path: Path) -> None:
    collection = store.create_collection("c")
    collection.create({"id": "a"})
    for n in range(3):

        def child(n: int = n) -> None:
            (tmp_path / str(n)).write_text(" ".join(collection.touch("a")["_etag"] for _ in range(20)))

        assert forked(child) == 0
    etags = [etag for n in range(3) for etag in (tmp_path / str(n)).read_text().split()]
    etags += [collection.touch("a")["_etag"] for _ in range(20)]
    assert len(set(etags)) == 80


def test_a_child_forked_inside_a_transaction_cannot_harm_it(file_store: Store) -> None:
    collection = file_store.create_collection("c")
    statuses = []
    with file_store.transaction():
        collection.create({"id": "a"})

        def child() -> None:
            with pytest.raises(ttlstore.StoreFailed, match="forked inside a transaction"):
                collection.create({"id": "of the child"})
            file_store.close()

        statuses.append(forked(child))
        collection.create({"id": "b"})
    assert statuses == [0]
    assert [document["id"] for document in collection] == ["a", "b"]


def test_a_child_that_leaves_the_transaction_it_was_forked_in_commits_nothing(path: Path) -> None:
    script(
        """
store = ttlstore.open(path)
c = store.create_collection("c")
child = 0
try:
    with store.transaction():
        c.create({"id": "a"})
        child = os.fork()
        if child:
            assert os.waitpid(child, 0)[1] == 0
except ttlstore.StoreFailed:
    sys.exit("not in the child") if child else sys.exit()
assert c.count() == 1 and store.check() == []
c.create({"id": "b"})
""",
        path,
    )
    with ttlstore.open(path) as store:
        assert store.collection("c").count() == 2


def test_a_fork_waits_for_the_transaction_of_another_thread(path: Path) -> None:
    """The child would inherit locks that nobody gives back."""
    script(
        """
import threading
store = ttlstore.open(path)
c = store.create_collection("c")
begun, go_on = threading.Event(), threading.Event()
def work():
    with store.transaction():
        begun.set()
        go_on.wait(0.2)
        c.create({"id": "thread"})
thread = threading.Thread(target=work)
thread.start()
begun.wait()
if os.fork() == 0:
    c.create({"id": "child"})
    sys.exit()
assert os.wait()[1] == 0
thread.join()
assert c.count() == 2 and store.check() == []
""",
        path,
    )


@pytest.mark.parametrize("before", ["", "concurrent.futures.thread, "])  # whose own hook of forks then comes later
def test_two_threads_that_fork_at_once_leave_the_store_to_all(path: Path, before: str) -> None:
    script(
        """
import threading
store = ttlstore.open(path)
c = store.create_collection("c", default_ttl=100)
go = threading.Barrier(2)
def work(n):
    go.wait()
    child = os.fork()
    if child == 0:
        c.create({"id": f"{n} of a child"})
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
for round in range(5):
    forking = [threading.Thread(target=work, args=(2 * round + n,)) for n in range(2)]
    for thread in forking:
        thread.start()
    for thread in forking:
        thread.join()
    c.create({"id": f"{round} of the parent"})
    assert sum(thread.name == "ttlstore-vacuum" for thread in threading.enumerate()) == 1
assert c.count() == 15 and store.check() == []
""",
        path,
        imports=f"{before}os, sys, ttlstore",
    )


def test_a_vacuum_that_cannot_begin_again_after_a_fork_does_not_spoil_the_next_one(path: Path) -> None:
    script(
        """
import threading
store = ttlstore.open(path)
c = store.create_collection("c", default_ttl=100)
start = threading.Thread.start
def refuse(thread):
    raise RuntimeError("no more threads")
def fork(n):
    child = os.fork()
    if child == 0:
        c.create({"id": str(n)})
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
sys.unraisablehook = lambda raised: None
threading.Thread.start = refuse
if os.fork() == 0:
    os._exit(0)
os.wait()
threading.Thread.start = start
opened = store._engine._connections.mine().raw
fork(1)
assert store._engine._connections.mine().raw is not opened  # it was closed for the fork
c.create({"id": "2"})
assert any(thread.name == "ttlstore-vacuum" for thread in threading.enumerate())
assert c.count() == 2 and store.check() == []
""",
        path,
    )


def test_a_connection_that_was_closed_and_is_still_remembered_does_not_disturb_a_fork(path: Path) -> None:
    script(
        """
store = ttlstore.open(path)
c = store.create_collection("c")
connections = store._engine._connections
with connections.another():
    remembered = [connections.mine()]
half_closed = connections._add()
half_closed.raw.close()  # as that of a thread that is just ending
if os.fork() == 0:
    c.create({"id": "child"})
    sys.exit()
assert os.wait()[1] == 0
assert c.count() == 1 and store.check() == []
""",
        path,
    )


def worker(path: Path, n: int) -> str:
    with ttlstore.open(path) as store:
        etag: str = store.collection("c").create({"id": str(n)})["_etag"]
        return etag


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_pools_of_processes_work_whatever_starts_them(file_store: Store, path: Path, method: str) -> None:
    collection = file_store.create_collection("c")
    collection.create({"id": "parent"})
    context: Any = multiprocessing.get_context(method)
    processes = [context.Process(target=worker, args=(path, n)) for n in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(PATIENCE_SECONDS)
        assert process.exitcode == 0
        process.close()
    collection.create({"id": "later"})
    assert collection.count() == 5
    assert len({document["_etag"] for document in collection}) == 5
