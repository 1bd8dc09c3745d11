import json
import logging
import signal

import pytest

import ttlstore
from tests.cli.conftest import Run, named
from ttlstore.cli.vacuum import _OneLine
from ttlstore.testing import FakeClock


@pytest.fixture
def expired(db: str, run: Run, clock: FakeClock) -> str:
    """A hundred carts that have expired, and one that is live."""
    run("import", db, "carts", stdin="".join(f'{{"id": "{number}"}}\n' for number in range(100)))
    clock.advance(3600)
    run("put", db, "carts", '{"id": "live"}')
    return db


def waiting(db: str, run: Run) -> int:
    count: int = json.loads(run("stats", db, "--format", "json").stdout)["waiting_documents"]
    return count


def test_vacuum_deletes_what_has_expired_and_says_how_much(expired: str, run: Run) -> None:
    assert waiting(expired, run) == 100
    done = run("vacuum", expired)
    assert done.stdout.startswith("deleted 100 expired documents in 0.")
    assert waiting(expired, run) == 0
    run("get", expired, "carts", "live")
    assert run("vacuum", expired).stdout.startswith("deleted 0 expired documents in ")


def test_what_expired_within_the_grace_is_kept(expired: str, run: Run) -> None:
    assert run("vacuum", expired, "--grace", "1s").stdout.startswith("deleted 0 expired documents")
    run("vacuum", expired, "--watch", "--grace", "1d", "--max-seconds", "0.3")
    assert waiting(expired, run) == 100


def test_no_other_command_deletes_anything(expired: str, run: Run) -> None:
    run("ls", expired, "carts")
    run("put", expired, "carts", '{"id": "other"}')
    assert waiting(expired, run) == 100


def test_a_vacuum_whose_time_is_over_says_what_still_waits(expired: str, run: Run) -> None:
    done = run("vacuum", expired, "--max-seconds", "1e-9")
    assert done.stdout.startswith("deleted 0 expired documents in 0.0 s, gave 0 B back; 100 still wait")


def test_a_vacuum_that_does_not_trust_the_clock_is_refused(
    expired: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = ttlstore.VacuumReport(0, 0, 0, 0, 0.0, False, "the clock was set forward by 1,000 s")
    monkeypatch.setattr(ttlstore.Store, "vacuum", lambda *_, **__: report)
    assert run("vacuum", expired, code=1).stderr == "Error: the clock was set forward by 1,000 s\n"


def test_a_time_that_is_none_is_refused(db: str, run: Run) -> None:
    assert "0.0 is not in the range 0<x<=" in run("vacuum", db, "--max-seconds", "0", code=2).stderr


@pytest.mark.parametrize("seconds", ["1e12", "2147483647.5", "inf", "nan"])
@pytest.mark.parametrize("options", [(), ("--watch",)])
def test_a_time_that_cannot_be_waited_for_is_refused(
    db: str, run: Run, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], seconds: str
) -> None:
    monkeypatch.setattr("threading.Event.wait", lambda *_: True)  # or the test would wait where it is not refused
    refused = run("vacuum", db, *options, "--max-seconds", seconds, code=2).stderr
    assert f"{float(seconds)} is not in the range 0<x<=2147483647" in refused


def test_watching_deletes_until_its_time_is_over(db: str, run: Run) -> None:
    with ttlstore.open(db, clock=lambda: 1_700_000_000.0, vacuum=False) as store:
        store.collection("carts").create({"id": "long gone"})
    watched = run("vacuum", db, "--watch", "--max-seconds", "0.3")
    assert watched.stderr.startswith(f"watching {named(db)}; stop with Ctrl-C\n")
    assert f"deleted 1 rows of {named(db)} in " in watched.stderr
    assert watched.stdout == "stopped: deleted 1 expired document\n"
    assert waiting(db, run) == 0


def test_watching_gives_signals_and_logging_back(db: str, run: Run) -> None:
    log = logging.getLogger("ttlstore.vacuum")
    before = (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM), log.level, list(log.handlers))
    run("vacuum", db, "--watch", "--max-seconds", "0.01")
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM), log.level, log.handlers) == before


def test_an_error_of_the_watched_vacuum_is_one_line() -> None:
    try:
        raise OSError("no time")
    except OSError as error:
        surprise = (type(error), error, error.__traceback__)
    record = logging.LogRecord(
        "ttlstore.vacuum", logging.WARNING, "", 0, "the vacuum of %s failed: %s", ("app.db", surprise[1]), surprise
    )
    assert _OneLine().format(record).endswith("  the vacuum of app.db failed: no time")
