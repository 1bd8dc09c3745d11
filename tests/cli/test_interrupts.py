"""What a command says after Ctrl-C, wherever it comes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from ttlstore import Collection, Store


def interrupt(*_: Any, **__: Any) -> Iterator[Any]:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("verb", "command", "told"),
    [
        (Store.check, ("check",), "interrupted: the check is not complete, and nothing was changed"),
        (Store.backup, ("backup", "copy.db"), "interrupted: copy.db was not written"),
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
    owner = Store if verb.__qualname__.startswith("Store.") else Collection
    monkeypatch.setattr(owner, verb.__name__, interrupt)
    assert run(command[0], db, *command[1:], stdin='{"id": "a"}\n', code=130).stderr == f"\n{told}\n"
    assert [path.name for path in Path().iterdir() if path.name.startswith(("copy", "out"))] == []
