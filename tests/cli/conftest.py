"""The command line in this process, on a store in a folder of its own."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import ttlstore
from ttlstore.cli import cli
from ttlstore.testing import FakeClock

Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def nothing_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the commands would heed, and whoever runs the tests may have set."""
    for variable in ("TTLSTORE_DB", "COLUMNS"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An up-to-date store with an empty collection `carts`, whose documents live an hour."""
    monkeypatch.chdir(tmp_path)
    with ttlstore.open("app.db") as store:
        store.create_collection("carts", default_ttl=3600)
    return "app.db"


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
