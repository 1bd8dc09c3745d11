"""What a command says after Ctrl-C, wherever it comes."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.kinds import on_a_file
from ttlstore import Collection, Store
from ttlstore.cli.asking import confirm


def ended_while(python: str) -> tuple[int, str]:
    """What the command line does when Ctrl-C comes while `python` is run in it."""
    script = (
        f"import os, signal, sys\nsys.argv = ['ttlstore', '--help']\nfrom ttlstore.start import main\n{python}\nmain()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    return done.returncode, done.stderr


IMPORTER = """
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10)
import time
sys.meta_path.insert(0, Interrupting())
"""


@pytest.mark.parametrize("module", ["click", "ttlstore.cli", "ttlstore.cli.stores"])
def test_ctrl_c_amid_an_import_ends_it_quietly(module: str) -> None:
    assert ended_while(IMPORTER.format(module=module)) == (130, "\ninterrupted\n")


def test_ctrl_c_before_a_command_is_found_ends_it_quietly() -> None:
    early = "import click; click.Command.make_context = lambda *_, **__: os.kill(os.getpid(), signal.SIGINT)"
    assert ended_while(early) == (130, "\ninterrupted\n")


def test_ctrl_c_is_ignored_where_the_program_was_started_so() -> None:
    early = "signal.signal(signal.SIGINT, signal.SIG_IGN); os.kill(os.getpid(), signal.SIGINT)"
    assert ended_while(early) == (0, "")


def interrupt(*_: Any, **__: Any) -> Iterator[Any]:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("verb", "command", "told"),
    [
        (Store.check, ("check",), "interrupted: the check is not complete, and nothing was changed"),
        (Store.vacuum, ("vacuum",), "interrupted: 0 expired documents deleted; the rest can wait"),
        (
            Collection.snapshot,
            ("export", "carts", "out.jsonl"),
            "interrupted: after 0 documents out.jsonl was not written",
        ),
        (Collection.snapshot, ("export", "carts"), "interrupted: after 0 documents what was written is not complete"),
        (Collection.upsert_many, ("import", "carts"), "interrupted: 0 documents stored; continue with --skip 0"),
        (Collection.query, ("query", "carts", "true"), "interrupted"),
        (Collection.newest, ("ls", "carts"), "interrupted"),
    ],
    ids=lambda part: part[0] if isinstance(part, tuple) else "",
)
def test_a_command_that_is_interrupted_says_what_was_done(
    db: str, run: Run, monkeypatch: pytest.MonkeyPatch, verb: Any, command: tuple[str, ...], told: str
) -> None:
    is_interrupted(db, run, monkeypatch, verb, command, told)


@on_a_file
def test_a_backup_that_is_interrupted_says_what_was_done(db: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    is_interrupted(db, run, monkeypatch, Store.backup, ("backup", "copy.db"), "interrupted: copy.db was not written")


def is_interrupted(
    db: str, run: Run, monkeypatch: pytest.MonkeyPatch, verb: Any, command: tuple[str, ...], told: str
) -> None:
    owner = Store if verb.__qualname__.startswith("Store.") else Collection
    monkeypatch.setattr(owner, verb.__name__, interrupt)
    assert run(command[0], db, *command[1:], stdin='{"id": "a"}\n', code=130).stderr == f"\n{told}\n"
    assert [path.name for path in Path().iterdir() if path.name.startswith(("copy", "out"))] == []


def test_ctrl_c_at_a_question_is_an_interruption_and_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("click.termui.visible_prompt_func", interrupt)
    with pytest.raises(KeyboardInterrupt):
        confirm("Drop it?")
