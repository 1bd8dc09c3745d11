"""What the commands do on a server alone. All the rest of these tests run there too."""

import json
import re
import time
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

import ttlstore
from tests.cli.conftest import Run, named
from tests.kinds import on_postgres
from tests.postgres import Server, waiting
from ttlstore.cli import cli
from ttlstore.engine.postgres.address import Address
from ttlstore.engine.postgres.engine import PostgresEngine
from ttlstore.testing import FakeClock

pytestmark = on_postgres


def test_a_backup_is_left_to_the_tools_of_the_server(db: str, run: Run) -> None:
    assert "pg_dump" in run("backup", db, "copy.db", code=1).stderr
    assert not Path("copy.db").exists()


def test_what_is_exported_from_a_server_can_be_imported_into_a_file(db: str, run: Run) -> None:
    run("import", db, "carts", stdin='{"id": "a", "n": 1}\n')
    run("export", db, "carts", "carts.jsonl")
    run("init", "app.db")
    run("create", "app.db", "carts")
    run("import", "app.db", "carts", "carts.jsonl")
    assert json.loads(run("get", "app.db", "carts", "a").stdout)["n"] == 1


def test_no_command_that_succeeds_shows_the_password(db: str, run: Run, clock: FakeClock) -> None:
    secret = f"{db}&password=hunter2"
    for command in (
        ("init",),
        ("info",),
        ("create", "notes"),
        ("collections",),
        ("stats",),
        ("check",),
        ("vacuum",),
        ("vacuum", "--watch", "--max-seconds", "0.01"),
        ("drop", "carts", "--yes"),
        ("drop", "notes", "--yes"),
        ("collections",),
    ):
        shown = run(command[0], secret, *command[1:]).output
        assert "hunter2" not in shown
    assert shown == f"no collections in {named(db)}\n"
    for command in (("current",), ("upgrade",), ("upgrade", "--sql"), ("downgrade", "base", "--yes")):
        assert "hunter2" not in run("migrate", command[0], secret, *command[1:]).output


def test_no_command_repeats_the_password_of_a_url_in_the_wrong_place(db: str, run: Run) -> None:
    url = "postgresql://me:hun@ter2@localhost:1/db"
    for command in (
        (url, "collections"),
        ("migrate", "history", url),
        ("migrate", "upgrade", db, url),
        ("copy", url, db, url),
        ("info", "postgresql//me:hunter2@localhost/db"),
        ("info", "host=localhost password=hunter2"),
        ("backup", db, url),
        ("export", db, "carts", url),
        ("ls", db, url),
        ("ls", db, "carts", "--limit", url),
        ("query", db, "carts", url),
        ("completion", url),
        ("put", db, "carts", url),
    ):
        refused = CliRunner().invoke(cli, command)
        assert refused.exit_code in (1, 2), command
        assert refused.stderr
        assert not re.search("hun|ter2", refused.output), refused.output
        with_traceback = CliRunner().invoke(cli, ("--debug", *command))
        assert not re.search("hun|ter2", with_traceback.output), with_traceback.output


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me@localhost:1/db?sslpassword=hunter2",
        "postgresql://me:hun ter2@localhost:1/db",
        "postgresql://me:hun'ter2@localhost:1/db",
        'postgresql://me:hun"ter2@localhost:1/db',
        "postgresql://me:hun'\"ter2@localhost:1/db",
        f"postgresql://me:hun {'x' * 100} ter2@localhost:1/db",
        "postgresql://me:hunter2",
        "POSTGRES://me:hunter2",
        "host=localhost password = 'hun ter2'",
        r"host=localhost password='hun\'ter2'",
        r"host=localhost password=hun\ ter2",
        "PGPASSWORD=hunter2",
        "--postgresql://me:hunter2@localhost:1/db",
    ],
)
def test_a_password_is_not_repeated_whatever_it_holds(url: str, db: str) -> None:
    for command in ((url,), ("info", url), ("put", db, "carts", url), ("ls", db, "carts", "--limit", url)):
        for options in ((), ("--debug",)):
            refused = CliRunner().invoke(cli, (*options, *command))
            assert refused.exit_code in (1, 2), command
            assert "Error: " in refused.stderr
            assert not re.search("hun|ter2", refused.output), refused.output


def test_what_is_no_password_is_repeated(db: str) -> None:
    for url in ("postgresql://me@localhost:1/db", "postgresql://a:1,b:2/db", "postgresql://[::1]:1/db"):
        assert f"{url} cannot be read" in CliRunner().invoke(cli, ("put", db, "carts", url)).stderr
    assert "user:password@host" in CliRunner().invoke(cli, ("info", "postgresql://me@host/db?x=1")).stderr


@pytest.mark.parametrize("command", ["add", "remove"])
def test_others_write_while_a_command_makes_or_removes_an_index(
    db: str, run: Run, postgres: Server, command: str
) -> None:
    if command == "remove":
        run("index", "add", db, "carts", "/n")
    with ttlstore.open(db, vacuum=False, busy_timeout=1) as store, psycopg.connect(postgres.url) as writer:
        # Whose transaction the index has to wait for.
        writer.execute(f"LOCK {Address.parse(db).schema}.documents IN ROW EXCLUSIVE MODE")
        with waiting(postgres, lambda: run("index", command, db, "carts", "/n")) as done:
            store.collection("carts").create({"id": "meanwhile", "n": 1})
            writer.rollback()
            assert "'carts': indexing consistent" in done.result().stdout
        assert store.collection("carts").indexing.paths == (("/n",) if command == "add" else ())


def test_a_time_to_come_is_counted_from_the_servers(db: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run("put", db, "carts", '{"id": "a", "ttl": 3600}')
    assert json.loads(run("get", db, "carts", "a", "--at", "+30m").stdout)["id"] == "a"
    # Of a server that is an hour ahead the document would be gone by then.
    monkeypatch.setattr(PostgresEngine, "_server_time", lambda self: time.time() + 3600)
    run("get", db, "carts", "a", "--at", "+30m", code=1)
