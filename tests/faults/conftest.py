"""What the tests of faults are given."""

from collections.abc import Iterator

import pytest

from tests.faults.trial import Soak, Trial

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
