"""Opening a store on PostgreSQL by its URL, and what must not be told."""

import logging
import re
import sys

import psycopg
import pytest

import ttlstore
from tests.postgres import Server
from ttlstore import CannotOpen, NotSupported, SchemaOutdated, StoreFailed
from ttlstore.engine import postgres_connections
from ttlstore.engine.postgres_address import Address
from ttlstore.statements import Prepared

SECRET = "hunter2/&%3a"
QUOTED = "hunter2%2F%26%253a"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("postgresql://host/db", "postgresql://host/db"),
        ("postgresql+psycopg://host/db", "postgresql://host/db"),
        (f"postgresql://me:{QUOTED}@host:5433/db", "postgresql://me@host:5433/db"),
        (f"postgresql://host/db?user=me&password={QUOTED}", "postgresql://me@host/db"),
        ("postgresql://host/db?schema=other", "postgresql://host/db?schema=other"),
        ("postgresql://host/db?schema=ttlstore", "postgresql://host/db"),
        ("postgresql:///db?host=/run/postgresql", "postgresql:///db?host=/run/postgresql"),
        ("postgresql://host/db?sslmode=verify-full&sslrootcert=/ca.pem", "postgresql://host/db"),
        ("postgresql://a,b:5433/db?target_session_attrs=primary", "postgresql://a,b:,5433/db"),
    ],
)
def test_a_store_is_named_by_what_is_no_secret(url: str, name: str) -> None:
    assert Address.parse(url).name == name


def test_options_of_the_url_are_passed_on() -> None:
    url = f"postgresql://me:{QUOTED}@host/db?sslmode=verify-full&sslrootcert=/a%20b/ca.pem&schema=x"
    passed = psycopg.conninfo.conninfo_to_dict(Address.parse(url).conninfo)
    assert passed["sslmode"] == "verify-full"
    assert passed["sslrootcert"] == "/a b/ca.pem"
    assert passed["password"] == SECRET
    assert "schema" not in passed


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hunter2@host:port/db",
        "postgresql://me:hunter2%zz@host/db",
        "postgresql://me:hunter2@[host/db",
        "postgresql://me:hunter2@host/db?no_such_option=1",
        "postgresql://me:hunter2@host/db?schema=a-b",
        "postgresql://me:hunter2@host/db?schema=",
        "postgresql+asyncpg://me:hunter2@host/db",
    ],
)
def test_a_url_that_cannot_be_read_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(CannotOpen) as refused:
        ttlstore.open(url)
    assert "hunter2" not in str(refused.value)


def test_a_password_is_never_told(postgres_url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    url = f"{postgres_url}&password={QUOTED}"
    told = []
    with ttlstore.open(url) as store:
        collection = store.create_collection("c")
        told += [repr(store), store.name, repr(store.stats()), repr(collection)]
        with pytest.raises(StoreFailed) as failed:
            store._engine.one(Prepared("SELECT nonsense", lambda values: values))
        told.append(str(failed.value))
    with pytest.raises(ttlstore.StoreClosed) as closed:
        collection.count()
    told.append(str(closed.value))
    with pytest.raises(CannotOpen) as refused:
        ttlstore.open(f"postgresql://me:{QUOTED}@localhost:1/db?connect_timeout=2")
    told += [str(refused.value), repr(refused.value.__cause__), caplog.text]
    for text in told:
        assert "hunter2" not in text


def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(CannotOpen, match=r"postgresql://me@localhost:1/db cannot be reached: "):
        ttlstore.open("postgresql://me@localhost:1/db?connect_timeout=2")


def test_without_the_driver_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(ttlstore.engine, "postgres", raising=False)
    monkeypatch.setitem(sys.modules, "ttlstore.engine.postgres", None)
    with pytest.raises(CannotOpen, match=re.escape("pip install 'ttlstore[postgres]'")):
        ttlstore.open("postgresql://host/db")


def test_an_old_server_is_refused_by_its_version(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_connections, "OLDEST_POSTGRES", 99)
    with pytest.raises(CannotOpen, match="needs PostgreSQL 99 or later"):
        ttlstore.open(postgres_url)


@pytest.mark.parametrize(
    ("processes", "refused"),
    [
        ([1, 1], True),  # lent to another between two transactions
        ([1, 2, 2], True),  # changed meanwhile
        ([1, 2, 1], False),  # kept for the session
    ],
)
def test_a_pool_is_refused_if_it_changes_connections_between_transactions(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, processes: list[int], *, refused: bool
) -> None:
    """By the processes of the server that the first connection, another in a transaction, and the first again see."""
    seen = iter(processes)
    monkeypatch.setattr(postgres_connections, "_process_of", lambda _: next(seen))
    if refused:
        with pytest.raises(CannotOpen, match="pool_mode=session"):
            ttlstore.open(postgres_url)
    else:
        ttlstore.open(postgres_url).close()
    assert list(seen) == []


def test_a_database_in_another_encoding_is_refused(postgres: Server) -> None:
    postgres.admin.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    try:
        with pytest.raises(CannotOpen, match="must be in UTF8 to hold any text, and is in LATIN1"):
            ttlstore.open(postgres.database_url("latin"))
    finally:
        postgres.admin.execute("DROP DATABASE latin WITH (FORCE)")


def test_a_store_that_is_not_there_is_not_made_without_migrating(postgres: Server) -> None:
    url = postgres.store_url(postgres.new_schema())
    with pytest.raises(CannotOpen, match=r"there is no store at .*: make one with "):
        ttlstore.open(url, migrate=False)
    with pytest.raises(CannotOpen, match="there is no store at "):
        ttlstore.open(url, read_only=True)
    ttlstore.open(url, vacuum=False).close()
    ttlstore.open(url, migrate=False, vacuum=False).close()


def test_a_schema_without_a_store_is_not_filled_without_migrating(postgres: Server) -> None:
    schema = postgres.new_schema()
    postgres.admin.execute(f"CREATE SCHEMA {schema}")
    with pytest.raises(SchemaOutdated, match="has schema none"):
        ttlstore.open(postgres.store_url(schema), migrate=False)
    with pytest.raises(SchemaOutdated, match="has schema none"):
        ttlstore.open(postgres.store_url(schema), read_only=True)


def test_stores_in_two_schemas_know_nothing_of_each_other(postgres: Server) -> None:
    for _ in range(2):
        with ttlstore.open(postgres.store_url(postgres.new_schema()), vacuum=False) as store:
            assert store.list_collections() == []
            store.create_collection("c").create({"id": "a"})


def test_names_are_in_the_order_of_their_code_points(postgres_url: str) -> None:
    names = ["é", "z", "a", "Z", "_", "😀", "\uffff"]
    with ttlstore.open(postgres_url, vacuum=False) as store:
        for name in names:
            store.create_collection(name)
        assert [collection.name for collection in store.list_collections()] == sorted(names)


def test_a_write_without_durability_does_not_wait_for_the_disk(postgres_url: str) -> None:
    for durability, setting in (("full", "on"), ("normal", "off")):
        with ttlstore.open(postgres_url, vacuum=False, durability=durability) as store:  # type: ignore[arg-type]
            asked = Prepared("SHOW synchronous_commit", lambda values: values)
            assert store._engine.one(asked) == (setting,)


def test_a_backup_is_left_to_the_tools_of_the_server(postgres_url: str) -> None:
    with ttlstore.open(postgres_url, vacuum=False) as store, pytest.raises(NotSupported, match="pg_dump --schema="):
        store.backup("copy.db")
