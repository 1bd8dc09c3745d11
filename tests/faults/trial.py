"""How long the faults go on, what each test promises, and what it has counted.

In `make test` every test does its short form. `python -m tests.faults` gives pytest a `Soak`, which shares out its
minutes among the tests and keeps their figures for docs/reliability.md.
"""

import itertools
import random
import secrets
import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field

import pytest

SQLITE = "SQLite"


def promise(sentence: str, *, share: float = 1.0) -> pytest.MarkDecorator:
    """What a test tries to break, as users read it, and its share of a long run."""
    return pytest.mark.promise(sentence=sentence, share=share)


class Trial:
    """One test's part of a run: how often it tries, by what chance, and what it has counted."""

    def __init__(self, seed: int, seconds: float | None) -> None:
        print(f"seed {seed}")  # pytest shows it when the test fails
        self.random = random.Random(seed)
        self.figures: Counter[str] = Counter()
        self.engine = SQLITE  # that the figures are of
        self._end = 0.0 if seconds is None else time.monotonic() + seconds

    def rounds(self, short: int) -> Iterator[int]:
        """So many rounds, and in a long run as many more as there is time for."""
        for number in itertools.count():
            if number >= short and time.monotonic() >= self._end:
                return
            yield number

    def count(self, **figures: int) -> None:
        """Add to what the report will tell."""
        self.figures.update(figures)


@dataclass
class Outcome:
    """What came of one test, over all of its parameters."""

    chapter: str
    sentence: str
    test: str
    by_engine: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    @property
    def figures(self) -> Counter[str]:
        """Of all engines together."""
        return sum(self.by_engine.values(), Counter[str]())


class Soak:
    """A pytest plugin: a long run."""

    def __init__(self, minutes: float) -> None:
        self.outcomes: dict[str, Outcome] = {}
        self.seed = secrets.randbits(32)
        self._seconds = minutes * 60
        self._shares = 0.0

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._shares = sum(share_of(item) for item in session.items)

    def seconds_for(self, item: pytest.Item) -> float:
        return self._seconds * share_of(item) / self._shares

    def keep(self, item: pytest.Item, trial: Trial) -> None:
        """Add the figures of a test that has ended, well or not."""
        self._outcome(item).by_engine[trial.engine].update(trial.figures)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """A test that counts nothing is told too, unless it was skipped."""
        report = yield
        if report.when == "call" and report.passed and item.get_closest_marker("promise") is not None:
            self._outcome(item)
        return report

    def _outcome(self, item: pytest.Item) -> Outcome:
        assert isinstance(item, pytest.Function)
        marker = item.get_closest_marker("promise")
        assert marker is not None
        test = item.nodeid.partition("[")[0]
        chapter = (item.module.__doc__ or "").strip().partition("\n")[0]
        return self.outcomes.setdefault(test, Outcome(chapter, marker.kwargs["sentence"], test))


def share_of(item: pytest.Item) -> float:
    """Of a long run: none for a test that takes as long as it takes."""
    marker = item.get_closest_marker("promise")
    return 0.0 if marker is None or "trial" not in getattr(item, "fixturenames", ()) else marker.kwargs["share"]
