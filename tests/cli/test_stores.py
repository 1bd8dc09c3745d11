import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

import ttlstore
from tests.cli.conftest import ByHand, Run, named
from tests.kinds import on_a_file
from ttlstore.schema import HEAD


def test_init_creates_a_store_and_is_content_with_one(elsewhere: str, run: Run) -> None:
    name = named(elsewhere)
    created = f"created {name}; next: ttlstore create {shlex.quote(name)} NAME --ttl 90d\n"
    assert run("init", elsewhere).stdout == created
    assert run("init", elsewhere).stdout == f"{name} is up to date (schema {HEAD})\n"
    run("create", elsewhere, "carts")


def test_init_upgrades_an_older_store(db: str, run: Run) -> None:
    run("migrate", "downgrade", db, "base", "--yes")
    run("init", db)
    assert run("migrate", "current", db).stdout == f"{HEAD} (head)\n"


@pytest.mark.parametrize(
    "command",
    [
        ("info",),
        ("collections",),
        ("create", "carts"),
        ("get", "carts", "c1"),
        ("put", "carts", '{"id": "c1"}'),
        ("export", "carts"),
        ("check",),
        ("migrate", "current"),
        ("migrate", "upgrade"),
    ],
    ids=" ".join,
)
def test_a_mistyped_name_makes_no_store(
    elsewhere: str, run: Run, is_made: Callable[[str], bool], command: tuple[str, ...]
) -> None:
    words = 2 if command[0] == "migrate" else 1
    refused = run(*command[:words], elsewhere, *command[words:], code=1)
    assert refused.stderr.startswith("Error: there is no store at ")
    assert "ttlstore init" in refused.stderr
    assert not is_made(elsewhere)


def test_an_outdated_store_is_not_upgraded_behind_the_operators_back(kind: str, db: str, run: Run) -> None:
    run("migrate", "downgrade", db, "base", "--yes")
    # A URL as a shell takes it: one with a & in it would run something else.
    quoted = "'ttlstore migrate upgrade app.db'" if kind == "file" else f"\"ttlstore migrate upgrade '{named(db)}'\""
    assert f"run {quoted}\n" in run("collections", db, code=1).stderr
    assert run("migrate", "current", db).stdout == "base\n"


@on_a_file
def test_a_file_of_something_else_is_refused_on_one_line(db: str, run: Run) -> None:
    Path("notes.txt").write_text("not a database")
    refused = run("collections", "notes.txt", code=1)
    assert refused.stderr.count("\n") == 1
    assert "it was left as it is" in refused.stderr


@on_a_file
def test_a_url_names_a_store_as_well(db: str, run: Run) -> None:
    assert "carts" in run("collections", f"sqlite:///{db}").stdout
    assert "there is no store at" in run("collections", "sqlite:///typo.db", code=1).stderr


def test_debug_shows_the_traceback(db: str, run: Run) -> None:
    refused = run("--debug", "ls", db, "nope", code=1)
    assert "Traceback" in refused.stderr
    assert "CollectionNotFound" in refused.stderr
    assert "Traceback" not in run("ls", db, "nope", code=1).stderr


def test_check_finds_a_store_sound(db: str, run: Run) -> None:
    assert run("check", db).stdout == f"{named(db)} is sound\n"


def test_check_tells_of_a_row_that_disagrees_with_its_document(db: str, run: Run, by_hand: ByHand) -> None:
    run("put", db, "carts", '{"id": "c1", "ttl": 60}')
    by_hand(db, "UPDATE documents SET ttl = 61")
    found = run("check", db, code=1)
    assert found.stdout == "document 'c1': its row and its body do not say the same\n"
    assert found.stderr == f"Error: {named(db)} is damaged: 1 problem; restore a backup\n"


@on_a_file
def test_backup_makes_a_store_with_the_same_documents(db: str, run: Run) -> None:
    run("put", db, "carts", '{"id": "c1"}')
    assert run("backup", db, "copy.db").stdout.startswith("copied app.db to copy.db, ")
    assert run("get", "copy.db", "carts", "c1").stdout == run("get", db, "carts", "c1").stdout


@on_a_file
def test_a_backup_that_cannot_be_made_names_the_file_and_the_folder(db: str, run: Run) -> None:
    refused = run("backup", db, "nowhere/b.db", code=1).stderr
    assert refused == "Error: nowhere/b.db cannot be made: there is no folder nowhere\n"


@on_a_file
def test_backup_overwrites_nothing(db: str, run: Run) -> None:
    Path("copy.db").write_text("precious")
    assert "copy.db is there already" in run("backup", db, "copy.db", code=1).stderr
    assert Path("copy.db").read_text() == "precious"


class TestWithTheStoreNamedByTheEnvironment:
    @pytest.fixture(autouse=True)
    def _named(self, db: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TTLSTORE_DB", db)

    def test_it_may_be_left_out(self, run: Run) -> None:
        assert "carts" in run("collections").stdout
        run("put", "carts", '{"id": "c1"}')
        run("get", "carts", "c1", "--expiry")
        run("index", "add", "carts", "/a", "/b")
        assert run("index", "list", "carts").stdout == "mode consistent\n/a /b\n"

    def test_one_that_is_named_comes_first(self, elsewhere: str, run: Run) -> None:
        with ttlstore.open(elsewhere) as other:
            other.create_collection("notes")
        assert "notes" in run("collections", elsewhere).stdout
        assert "'notes'" in run("ls", elsewhere, "notes").stderr
        assert run("put", elsewhere, "notes", '{"id": "c1"}').stdout
        run("get", elsewhere, "notes", "c1")

    def test_a_mistyped_one_is_not_taken_for_it(self, elsewhere: str, run: Run) -> None:
        assert "there is no store at" in run("collections", elsewhere, code=1).stderr
        assert "there is no store at" in run("get", elsewhere, "carts", "c1", code=1).stderr

    def test_a_missing_argument_is_still_missing(self, run: Run) -> None:
        assert "Missing argument 'ID'" in run("get", "carts", code=2).stderr

    def test_a_wrong_option_is_still_wrong(self, run: Run) -> None:
        assert "No such option" in run("ls", "carts", "--nope", code=2).stderr
