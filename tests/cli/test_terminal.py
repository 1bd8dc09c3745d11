"""What only a real terminal, a real pipe and a real Ctrl-C show."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import ttlstore
from tests.cli.conftest import Run, named
from tests.cli.terminal import Terminal
from tests.kinds import on_a_file
from ttlstore.ttl import Clock

MANY = 6_000


def spawn(*args: str, **options: object) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-m", "ttlstore", *args], text=True, **options)  # type: ignore[call-overload,no-any-return]


@pytest.fixture
def many(db: str) -> str:
    """A store with many carts."""
    fill(db, time.time)
    return db


def fill(db: str, clock: Clock) -> None:
    with ttlstore.open(db, durability="normal", vacuum=False, clock=clock) as store:
        store.collection("carts").create_many({"id": str(number), "text": "x" * 200} for number in range(MANY))


def long_ago() -> float:
    return 1_700_000_000.0


def lines(number: int) -> str:
    return "".join(f'{{"id": "{n}", "n": {n}}}\n' for n in range(number))


# --- what is shown --------------------------------------------------------------------------------------------------


def test_a_table_fits_the_terminal(db: str) -> None:
    with ttlstore.open(db) as store:
        store.create_collection(
            "sessions", default_ttl=-1, indexing=ttlstore.IndexingPolicy(paths=("/a", ("/b", "/c")))
        )
        store.collection("carts").create({"id": "c1", "text": "long " * 100})
    for columns, command in ((30, ("collections", db)), (80, ("ls", db, "carts"))):
        with Terminal(*command, columns=columns) as terminal:
            assert terminal.exit_code() == 0
            assert max(map(len, terminal.text.splitlines())) <= columns
            assert "carts" in terminal.text or "c1" in terminal.text


def test_columns_says_how_wide_a_table_in_a_pipe_may_be(db: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with ttlstore.open(db) as store:
        store.collection("carts").create({"id": "c1", "text": "long " * 100})
    assert "long " * 99 in run("ls", db, "carts").stdout
    monkeypatch.setenv("COLUMNS", "70")
    assert max(map(len, run("ls", db, "carts").stdout.splitlines())) == 70


def test_colours_are_for_terminals_that_want_them(db: str, run: Run) -> None:
    with ttlstore.open(db) as store:
        store.collection("carts").create({"id": "c1", "n": 1})
    assert "\x1b" not in run("get", db, "carts", "c1").stdout
    with Terminal("get", db, "carts", "c1") as terminal:
        assert terminal.exit_code() == 0
        assert "\x1b[1;36m1\x1b" in terminal.raw
    with Terminal("get", db, "carts", "c1", env={"NO_COLOR": "1"}) as terminal:
        assert terminal.exit_code() == 0
        assert "\x1b[1;3" not in terminal.raw  # bold is no colour
        assert json.loads(terminal.text)["n"] == 1


@pytest.mark.parametrize(
    "command",
    [
        ("import", "carts", "more.jsonl"),
        ("export", "carts", "out.jsonl"),
        ("check",),
        ("vacuum",),
    ],
    ids=lambda command: command[0],
)
def test_long_work_shows_a_bar_on_a_terminal_and_clears_it(db: str, command: tuple[str, ...]) -> None:
    shows_a_bar(db, command)


@on_a_file
def test_a_backup_shows_a_bar_on_a_terminal_and_clears_it(db: str) -> None:
    shows_a_bar(db, ("backup", "copy.db"))


def shows_a_bar(db: str, command: tuple[str, ...]) -> None:
    fill(db, long_ago if command[0] == "vacuum" else time.time)
    Path("more.jsonl").write_text(lines(MANY))
    with Terminal(command[0], db, *command[1:]) as terminal:
        assert terminal.exit_code() == 0
        assert "━" * 10 in terminal.text  # however long the name of the store is
        last = terminal.text.splitlines()[-1]
        assert "━" not in last
        assert last.startswith(("imported 6,000", "exported 6,000", "copied", f"{named(db)} is sound", "deleted 6,000"))


def test_a_question_is_answered_on_the_terminal(db: str) -> None:
    with Terminal("ttl", db, "carts", "1m") as terminal:
        terminal.see("hides 0 documents now, revives 0")
        terminal.see("Change the TTL of 'carts'? [y/N]: ")
        terminal.type("y\n")
        assert terminal.exit_code() == 0
    with ttlstore.open(db) as store:
        assert store.collection("carts").default_ttl == 60


def test_put_without_a_document_does_not_wait_for_one_on_a_terminal(db: str) -> None:
    with Terminal("put", db, "carts") as terminal:
        assert terminal.exit_code() == 2
        assert "give a document as JSON, as the name of a file, or on stdin" in terminal.text


def test_the_demo_draws_on_a_terminal_and_can_be_left() -> None:
    with Terminal("demo") as terminal:
        terminal.see("left at 0.")
        terminal.type("\x03")
        assert terminal.exit_code() == 130


# --- Ctrl-C ---------------------------------------------------------------------------------------------------------


def test_ctrl_c_in_an_import_leaves_whole_batches_and_says_how_to_continue(db: str) -> None:
    importing = spawn("import", db, "carts", stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert importing.stdin is not None
    importing.stdin.write(lines(2500))
    importing.stdin.flush()
    with ttlstore.open(db, vacuum=False) as store:
        while len(store.collection("carts")) < 2000:
            assert importing.poll() is None
            time.sleep(0.02)
        importing.send_signal(signal.SIGINT)
        _, told = importing.communicate()
        assert importing.returncode == 130
        # A batch that was stored a moment before may not have been counted; it is stored again then.
        continued = re.fullmatch(r"\ninterrupted: [12],000 documents stored; continue with --skip ([12]000)\n", told)
        assert continued
        assert len(store.collection("carts")) == 2000
        assert store.check() == []
        rest = spawn("import", db, "carts", "--skip", continued[1], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        rest.communicate(lines(2500))
        assert len(store.collection("carts")) == 2500


def test_ctrl_c_in_an_export_leaves_a_whole_file_or_none(many: str) -> None:
    interrupt("export", many, "carts", "out.json")
    file = Path("out.json")
    assert not file.exists() or len(json.loads(file.read_text())) == MANY


@on_a_file
def test_ctrl_c_in_a_backup_leaves_a_whole_file_or_none(many: str) -> None:
    interrupt("backup", many, "out.db")
    if Path("out.db").exists():
        with ttlstore.open("out.db", vacuum=False) as copy:
            assert len(copy.collection("carts")) == MANY


def interrupt(*command: str) -> None:
    with Terminal(*command) as terminal:
        terminal.see("━")
        terminal.type("\x03")
        assert terminal.exit_code() in (130, 0)  # 0: it was faster
    assert not list(Path().glob("*.unfinished*"))


def test_ctrl_c_in_an_export_to_a_pipe_says_that_it_is_not_complete(many: str) -> None:
    exporting = spawn("export", many, "carts", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert exporting.stdout is not None
    assert exporting.stdout.readline()
    exporting.send_signal(signal.SIGINT)
    _, told = exporting.communicate()
    assert exporting.returncode == 130
    assert "what was written is not complete" in told


def test_ctrl_c_in_a_vacuum_leaves_the_store_sound(db: str) -> None:
    fill(db, long_ago)
    with Terminal("vacuum", db) as terminal:
        terminal.see(f"vacuum {named(db)}"[:29])  # of 30, the last says that it was cut
        terminal.type("\x03")
        assert terminal.exit_code() in (130, 0)
    with ttlstore.open(db, vacuum=False) as store:
        assert store.check() == []
        told = re.search(r"([\d,]+) expired documents? deleted; the rest can wait", terminal.text)
        if told:
            assert store.stats().waiting_documents <= MANY - int(told[1].replace(",", ""))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_watching_vacuum_ends_when_it_is_told_to(db: str, number: signal.Signals) -> None:
    watching = spawn("vacuum", db, "--watch", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert watching.stderr is not None
    assert watching.stderr.readline() == f"watching {named(db)}; stop with Ctrl-C\n"
    watching.send_signal(number)
    out, _ = watching.communicate()
    assert (watching.returncode, out) == (0, "stopped: deleted 0 expired documents\n")


# --- pipes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [("export", "carts"), ("ls", "carts", "--limit", "6000", "--format", "jsonl")])
def test_a_reader_that_has_seen_enough_is_no_error(many: str, command: tuple[str, ...]) -> None:
    writing = spawn(command[0], many, *command[1:], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert writing.stdout is not None
    assert json.loads(writing.stdout.readline())
    writing.stdout.close()
    assert writing.stderr is not None
    assert writing.stderr.read() == ""
    writing.stderr.close()
    assert writing.wait() == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
@pytest.mark.parametrize("command", ["info", "collections"])
def test_an_output_that_cannot_be_written_is_said_on_one_line(db: str, command: str) -> None:
    with open("/dev/full", "w") as full:
        writing = spawn(command, db, stdout=full, stderr=subprocess.PIPE)
        _, told = writing.communicate()
    assert (writing.returncode, told) == (1, "Error: [Errno 28] No space left on device\n")


def test_a_closed_output_is_no_error(db: str) -> None:
    closed = ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-m", "ttlstore", "info", db]
    done = subprocess.run(closed, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_export_can_be_piped_into_an_import(many: str, elsewhere: str) -> None:
    with ttlstore.open(elsewhere) as other:
        other.create_collection("carts")
    exporting = spawn("export", many, "carts", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    importing = spawn("import", elsewhere, "carts", stdin=exporting.stdout, stderr=subprocess.DEVNULL)
    assert exporting.stdout is not None
    exporting.stdout.close()
    assert (exporting.wait(), importing.wait()) == (0, 0)
    with ttlstore.open(elsewhere) as other:
        assert len(other.collection("carts")) == MANY


@pytest.mark.parametrize("program", [["-m", "ttlstore"], [str(Path(__file__).parents[2] / "cli.py")]])
def test_every_way_to_start_is_the_same_command(program: list[str]) -> None:
    done = subprocess.run([sys.executable, *program, "--help"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Usage: ttlstore [OPTIONS] COMMAND")


def test_what_an_output_cannot_spell_is_escaped(db: str) -> None:
    def run(*args: str) -> str:
        env = {**os.environ, "PYTHONIOENCODING": "latin-1"}
        command = [sys.executable, "-m", "ttlstore", *args]
        return subprocess.run(command, env=env, capture_output=True, check=True).stdout.decode("latin-1")

    assert r"za\u017có\u0142\u0107" in run("put", db, "carts", '{"id": "zażółć"}')
    assert r"za\u017có\u0142\u0107" in run("ls", db, "carts")
    with ttlstore.open(db, vacuum=False) as store:
        assert "zażółć" in store.collection("carts")
