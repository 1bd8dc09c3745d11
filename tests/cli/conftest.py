"""The command line in this process, on a store of its own in a file or on a server.

Not in memory: every command opens the store anew.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner, Result

import ttlstore
from tests.postgres import Server
from ttlstore.cli import cli
from ttlstore.engine.postgres.address import Address
from ttlstore.testing import FakeClock

Run = Callable[..., Result]
Rows = list[tuple[Any, ...]]
ByHand = Callable[[str, str], Rows]


@pytest.fixture(autouse=True)
def nothing_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the commands would heed, and whoever runs the tests may have set."""
    for variable in ("TTLSTORE_DB", "COLUMNS"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture(scope="module", params=["file", "postgres"])
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def db(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """An up-to-date store with an empty collection `carts`, whose documents live an hour.

    The working directory is a folder of the test's own, whatever the kind: for the other files of a command.
    """
    monkeypatch.chdir(tmp_path)
    target: str = "app.db" if kind == "file" else request.getfixturevalue("postgres_url")
    with ttlstore.open(target, vacuum=False) as store:
        store.create_collection("carts", default_ttl=3600)
    return target


@pytest.fixture
def elsewhere(kind: str, db: str, request: pytest.FixtureRequest) -> str:
    """Where a store of the same kind could be, and none is."""
    if kind == "file":
        return "other.db"
    postgres: Server = request.getfixturevalue("postgres")
    return postgres.store_url(postgres.new_schema())


def named(target: str) -> str:
    """What the commands call a store: a file by its path, one on a server by its URL without the password."""
    return Address.parse(target).name if "://" in target else target


@pytest.fixture
def by_hand(kind: str, request: pytest.FixtureRequest) -> ByHand:
    """Run SQL in a store, behind its back. Returns the rows of a statement that has any."""

    def in_file(target: str, sql: str) -> Rows:
        with closing(sqlite3.connect(target, isolation_level=None)) as raw:
            if sql.startswith("SELECT"):
                return raw.execute(sql).fetchall()
            raw.executescript(sql)
            return []

    def on_server(target: str, sql: str) -> Rows:
        address = Address.parse(target)
        with psycopg.connect(address.conninfo, autocommit=True) as raw:
            raw.execute(f"SET search_path = {address.schema}")
            done = raw.execute(sql.encode())
            return done.fetchall() if done.description else []

    return in_file if kind == "file" else on_server


@pytest.fixture
def is_made(kind: str, request: pytest.FixtureRequest) -> Callable[[str], bool]:
    """Tell whether there is anything where a store could be: a file, a schema."""
    if kind == "file":
        return lambda target: Path(target).exists()
    postgres: Server = request.getfixturevalue("postgres")
    ask = "SELECT to_regnamespace(%s) IS NOT NULL"
    return lambda target: postgres.admin.execute(ask, (Address.parse(target).schema,)).fetchone() == (True,)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """The clock of every command."""
    clock = FakeClock()
    monkeypatch.setattr("ttlstore.cli.opening.clock", clock)
    return clock


@pytest.fixture
def run() -> Run:
    """Run the command line, and check its exit code."""

    def run(*args: str, code: int = 0, stdin: str | None = None) -> Result:
        result = CliRunner().invoke(cli, args, input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        return result

    return run
