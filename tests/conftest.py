"""The stores that the tests run on. Every one of them must be undamaged after its test.

They are opened without the vacuum: what the rules say must hold while the expired rows are still there.
"""

import signal
import sys
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, settings

import ttlstore
from tests.postgres import Server, serving
from ttlstore import Collection, Store, StoreClosed
from ttlstore.testing import FakeClock

# A property test that uses a store asks the same store again and again, under ids of its own.
settings.register_profile(
    "ttlstore", deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
settings.load_profile("ttlstore")

# A shell has what it starts in the background ignore Ctrl-C, and the programs that the tests start would do so too.
signal.signal(signal.SIGINT, signal.default_int_handler)

KINDS = ["file", "memory", "postgres"]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Measure no coverage by what Hypothesis makes up: it takes twice as long, and plain examples reach the code.

    Not pytest-cov's own mark, no_cover, which does nothing in the workers of pytest-xdist.
    """
    if item.get_closest_marker("hypothesis") is None:
        return (yield)
    measuring = sys.gettrace()
    sys.settrace(None)
    try:
        return (yield)
    finally:
        sys.settrace(measuring)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server; one for the whole run."""
    with serving() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: Server) -> Iterator[str]:
    """An empty store on PostgreSQL."""
    with postgres.schema() as schema:
        yield postgres.store_url(schema)


@pytest.fixture
def live(postgres_url: str) -> Iterator[Store]:
    """A store on PostgreSQL, by the server's clock."""
    with ttlstore.open(postgres_url, vacuum=False) as store:
        yield store
        if not store._engine._connections._closed:  # type: ignore[attr-defined]
            assert store.check() == []


@pytest.fixture
def by_hand(postgres: Server, postgres_url: str) -> Iterator[psycopg.Connection]:
    """A connection beside the store, in a transaction."""
    with psycopg.connect(postgres.url) as connection:
        connection.execute(f"SET search_path = {postgres_url.rpartition('=')[2]}")
        connection.commit()
        yield connection
        connection.rollback()


@pytest.fixture
def target(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """What to open, for each kind of store."""
    if kind == "postgres":
        url: str = request.getfixturevalue("postgres_url")
        return url
    return {"file": str(tmp_path / "store.db"), "memory": ":memory:"}[kind]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a test makes a store of its own, in a file."""
    return tmp_path / "store.db"


@pytest.fixture
def store(target: str, clock: FakeClock) -> Iterator[Store]:
    with ttlstore.open(target, clock=clock, vacuum=False) as store:
        yield store
        with suppress(StoreClosed):
            assert store.check() == []


@pytest.fixture
def file_store(path: Path, clock: FakeClock) -> Iterator[Store]:
    """For what only a file can show."""
    with ttlstore.open(path, clock=clock, vacuum=False) as store:
        yield store
        with suppress(StoreClosed):
            assert store.check() == []


@pytest.fixture
def archive(store: Store) -> Collection:
    """TTL is off."""
    return store.create_collection("archive")


@pytest.fixture
def notes(store: Store) -> Collection:
    """TTL is on, without a default."""
    return store.create_collection("notes", default_ttl=-1)


@pytest.fixture
def sessions(store: Store) -> Collection:
    """Ten seconds by default."""
    return store.create_collection("sessions", default_ttl=10)


@pytest.fixture(params=["file to postgres", "postgres to file", "file to file"])
def places(request: pytest.FixtureRequest, path: Path) -> tuple[str, str]:
    """The source of a copy, and its target."""
    source, _, target = request.param.partition(" to ")
    urls = {"postgres": request.getfixturevalue("postgres_url")} if "postgres" in request.param else {}
    return urls.get(source, f"{path}-source"), urls.get(target, f"{path}-target")


@pytest.fixture
def here(places: tuple[str, str], clock: FakeClock) -> Iterator[Store]:
    """The source."""
    with ttlstore.open(places[0], clock=clock, vacuum=False) as store:
        yield store
