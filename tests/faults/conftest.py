"""What the tests of faults are given."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.places import Doomed, Folder, Place, Schema
from tests.faults.trial import Soak, Trial
from tests.postgres import Server, cluster

SHORT_FORM_SEED = 7  # the same tries each time: what fails in `make test` fails again


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "promise(sentence, share): what users rely on and the test tries to break")


@pytest.fixture
def trial(request: pytest.FixtureRequest) -> Iterator[Trial]:
    soak = next((one for one in request.config.pluginmanager.get_plugins() if isinstance(one, Soak)), None)
    if soak is None:
        yield Trial(SHORT_FORM_SEED, None)
        return
    trial = Trial(soak.seed, soak.seconds_for(request.node))
    yield trial
    soak.keep(request.node, trial)


@pytest.fixture(scope="session")
def mortal() -> Iterator[Any]:
    """A PostgreSQL server that may be crashed."""
    with cluster() as server:
        yield server


@pytest.fixture(params=["file", "postgres", "postgres crashes"])
def place(request: pytest.FixtureRequest, trial: Trial, tmp_path: Path) -> Iterator[Place]:
    """Where a store is made that faults happen to."""
    place: Place
    if request.param == "file":
        place = Folder(trial, tmp_path / "place")
    elif request.param == "postgres":
        postgres: Server = request.getfixturevalue("postgres")
        place = Schema(trial, postgres.url)
    else:
        place = Doomed(trial, request.getfixturevalue("mortal"))
    yield place
    place.clear()
