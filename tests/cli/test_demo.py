import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.cli.conftest import Run
from ttlstore.cli import demo
from ttlstore.cli.demo import Tour
from ttlstore.testing import FakeClock


def test_the_tour_shows_documents_going_at_their_moment_and_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = FakeClock()
    Tour(str(tmp_path / "demo.db"), clock, clock.advance).run()
    tour = capsys.readouterr().out
    assert " 2.0 s  sessions/short is gone: it expires 2 s after its last write, by its own ttl\n" in tour
    assert " 3.0 s  carts/touched is touched: its countdown starts again\n" in tour
    assert " 4.0 s  carts/plain is gone: it expires 4 s after its last write, by its collection's default\n" in tour
    assert " 7.0 s  carts/touched is gone" in tour
    assert "archive/short is gone" not in tour


def test_the_tour_ends_with_what_to_try_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clock = FakeClock()
    Tour(str(tmp_path / "demo.db"), clock, clock.advance).run()
    assert "init app.db\n" in capsys.readouterr().out.partition("Try next\n")[2]


def test_the_demo_leaves_nothing_behind(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(demo, "time", SimpleNamespace(time=clock, sleep=clock.advance))
    done = run("demo")
    assert "carts/touched is gone" in done.stdout
    assert "1 document before, 3 after" in done.stdout
    assert done.stdout.endswith("The file of this tour is removed.\n")
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []


def test_the_tour_says_what_happens_on_a_terminal_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # by which rich takes it for a terminal
    clock = FakeClock()
    Tour(str(tmp_path / "demo.db"), clock, clock.advance).run()
    tour = capsys.readouterr().out
    assert "\x1b[" in tour
    assert "carts/touched is touched: its countdown starts again" in tour
