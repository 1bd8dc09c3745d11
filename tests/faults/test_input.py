"""Hostile input"""

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner

import ttlstore
from tests.faults import hostile
from tests.faults.trial import Trial, promise
from tests.files import everything_in
from ttlstore import Collection, IndexingPolicy, Store, TtlStoreError
from ttlstore.cli import cli
from ttlstore.testing import FakeClock

SECRET = "the canary's secret"

Call = Callable[[Store, Collection, Random], Any]

CALLS: dict[str, Call] = {
    "create": lambda store, it, chance: it.create(hostile.document(chance)),
    "upsert": lambda store, it, chance: it.upsert(hostile.document(chance), if_match=optional(chance)),
    "replace": lambda store, it, chance: it.replace(hostile.document(chance), if_match=optional(chance)),
    "upsert_many": lambda store, it, chance: it.upsert_many([hostile.document(chance)]),
    "patch": lambda store, it, chance: it.patch(id_for(chance), hostile.patch(chance)),
    "read": lambda store, it, chance: it.read(id_for(chance)),
    "read in a partition": lambda store, it, chance: it.read(id_for(chance), partition=hostile.value(chance)),
    "get": lambda store, it, chance: it.get(id_for(chance)),
    "touch": lambda store, it, chance: it.touch(id_for(chance)),
    "expiry": lambda store, it, chance: it.expiry(id_for(chance)),
    "delete": lambda store, it, chance: it.delete(id_for(chance), if_match=optional(chance)),
    "recover": lambda store, it, chance: it.recover(id_for(chance)),
    "contains": lambda store, it, chance: hostile.string(chance) in it,
    "query": lambda store, it, chance: list(it.query(hostile.query(chance), hostile.parameters(chance))),
    "query_page": lambda store, it, chance: pages(it, chance),
    "explain": lambda store, it, chance: it.explain(hostile.query(chance), hostile.parameters(chance)),
    "configure": lambda store, it, chance: it.configure(default_ttl=hostile.value(chance)),
    "index": lambda store, it, chance: it.configure(indexing=policy(chance)),
    "preview_ttl": lambda store, it, chance: it.preview_ttl(hostile.value(chance)),
    "create_collection": lambda store, it, chance: store.create_collection(
        hostile.string(chance), partition_key=hostile.string(chance), default_ttl=hostile.value(chance)
    ),
    "collection": lambda store, it, chance: store.collection(hostile.value(chance)),
    "delete_collection": lambda store, it, chance: store.delete_collection(f"{hostile.string(chance)}!"),
}

WRITES = ("create", "upsert", "replace", "patch", "touch", "recover")


def id_for(chance: Random) -> Any:
    return chance.choice(["a", "b", "c"]) if chance.random() < 0.3 else hostile.value(chance)


def optional(chance: Random) -> Any:
    return None if chance.random() < 0.5 else hostile.value(chance)


def policy(chance: Random) -> IndexingPolicy:
    return IndexingPolicy("consistent", tuple(hostile.string(chance) for _ in range(chance.randrange(2))))


def pages(it: Collection, chance: Random) -> list[Any]:
    """A page by a token that was tampered with."""
    text = chance.choice(["SELECT * FROM c", "SELECT c.id FROM c ORDER BY c.n", "SELECT VALUE c.n FROM c"])
    token = it.query_page(text, size=1).token or ""
    kind = chance.random()
    if kind < 0.3:
        token = hostile.value(chance)
    elif token:
        at = chance.randrange(len(token))
        token = token[:at] + chance.choice(["", "A", "=", "\0", "é"]) + token[at + chance.randrange(2) :]
    return list(it.query_page(text, size=chance.choice([1, 100]), token=token).items)


def state(store: Store) -> list[Any]:
    """Everything that a call may have changed."""
    return [(it.name, it.partition_key, it.default_ttl, it.indexing, list(it)) for it in store.list_collections()]


@promise(
    "Whatever is passed for a document, id, name, path, patch, parameter, query, token or setting: it is stored and "
    "read back as it is, or one of this package's errors says why not, and nothing was written. Nothing in it is ever "
    "run as SQL or taken for a file.",
    share=4,
)
def test_any_input_is_taken_or_refused(path: Path, trial: Trial) -> None:
    with ttlstore.open(path, clock=FakeClock(), vacuum=False, durability="normal") as store:
        store.create_collection("canary").create({"id": "a", "secret": SECRET})
        it = prepared(store)
        files = set(everything_in(path.parent))
        tables = tables_in(path)
        before = state(store)
        for _ in trial.rounds(short=2500):
            name, call = trial.random.choice(list(CALLS.items()))
            try:
                result = call(store, it, trial.random)
            except TtlStoreError:
                assert state(store) == before, name
                trial.count(inputs_tried=1, of_them_refused=1)
            else:
                assert SECRET not in repr(result)
                if name in WRITES:
                    assert it.read(result["id"]) == result
                before = state(store)
                trial.count(inputs_tried=1)
            if len(before) > 30:
                for collection in store.list_collections():
                    if collection.name not in ("canary", "c"):
                        store.delete_collection(collection.name)
                before = state(store)
        assert set(everything_in(path.parent)) == files
        assert tables_in(path) == tables
        assert store.collection("canary").read("a")["secret"] == SECRET
        assert store.check() == []


def prepared(store: Store) -> Collection:
    it = store.create_collection("c", default_ttl=-1)
    it.create_many({"id": id, "n": n, "tags": ["x", id]} for n, id in enumerate("abc"))
    return it


def tables_in(path: Path) -> set[str]:
    connection = sqlite3.connect(path)
    found = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'trigger')")}
    connection.close()
    return found


@promise("Whatever a file holds, an import stores what is valid in it and says what is not, without a traceback.")
def test_any_file_can_be_imported_or_is_refused(path: Path, trial: Trial) -> None:
    with ttlstore.open(path, vacuum=False) as store:
        store.create_collection("c")
    file, refused = path.with_name("documents.jsonl"), path.with_name("refused.jsonl")
    for _ in trial.rounds(short=25):
        file.write_bytes(b"\n".join(hostile.line(trial.random) for _ in range(trial.random.randrange(8))))
        options = [] if trial.random.random() < 0.5 else ["--errors", str(refused)]
        result = CliRunner().invoke(cli, ["import", str(path), "c", str(file), *options])
        assert result.exit_code in (0, 1), result.output
        assert isinstance(result.exception, SystemExit | None), result.exception
        trial.count(files_imported=1)
    with ttlstore.open(path, vacuum=False) as store:
        assert {document["id"] for document in store.collection("c")} <= {"imported"}
        assert store.check() == []


@promise(
    "Whatever is named to open(): a store is opened or made there, or the error says why not; no other file changes."
)
def test_any_target_is_opened_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trial: Trial) -> None:
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    (tmp_path / "precious.txt").write_text("precious")
    passwords = Path("/etc/passwd").read_bytes()
    targets = [
        *hostile.STRINGS,
        *hostile.OTHERS,
        *(
            f"sqlite://{slashes}{name}"
            for slashes in ("", "/", "//")
            for name in ("x.db", "../../precious.txt", "?mode=ro")
        ),
        "../../precious.txt",
        "mysql://localhost/x",
        "sqlite:///x.db?uri=true",
        "file:x.db?mode=memory",
    ]
    for target in targets:
        # As for Python's own open(), a TypeError for what is neither a string nor a path.
        refusals = (TtlStoreError,) if isinstance(target, str | bytes) else (TtlStoreError, TypeError)
        with suppress(*refusals):
            ttlstore.open(target, vacuum=False).close()
        trial.count(targets=1)
    assert (tmp_path / "precious.txt").read_text() == "precious"
    assert Path("/etc/passwd").read_bytes() == passwords
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a", "precious.txt"]
