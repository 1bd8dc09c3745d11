"""Opening a store on PostgreSQL by its URL, and what must not be told."""

import logging
import re
import subprocess
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

import ttlstore
from tests.postgres import Server
from ttlstore import CannotOpen, IndexingPolicy, NotSupported, SchemaOutdated, StoreFailed, migrate
from ttlstore.engine.postgres import connections
from ttlstore.engine.postgres.address import Address
from ttlstore.engine.postgres.errors import cannot_connect
from ttlstore.statements import Prepared

SECRET = "hunter2/&%3a"
QUOTED = "hunter2%2F%26%253a"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("postgresql://host/db", "postgresql://host/db"),
        ("postgresql+psycopg://host/db", "postgresql://host/db"),
        ("postgres://me:hunter2@host/db", "postgresql://me@host/db"),
        ("postgresql://me:hun#t[er]:2&=;@host/db", "postgresql://me@host/db"),
        ("postgresql://me%40corp:hunter2@host/db", "postgresql://me%40corp@host/db"),
        ("postgresql://host/db?sslpassword=hunter2&passfile=/hunter2", "postgresql://host/db"),
        (f"postgresql://me:{QUOTED}@host:5433/db", "postgresql://me@host:5433/db"),
        (f"postgresql://host/db?user=me&password={QUOTED}", "postgresql://me@host/db"),
        ("postgresql://host/db?schema=other", "postgresql://host/db?schema=other"),
        ("postgresql://host/db?schema=ttlstore", "postgresql://host/db"),
        ("postgresql://host/db?schema=TTLStore", "postgresql://host/db"),
        ("postgresql://host/db?schema=Other", "postgresql://host/db?schema=other"),
        ("postgresql:///db?host=/run/postgresql", "postgresql:///db?host=/run/postgresql"),
        ("postgresql://host/db?sslmode=verify-full&sslrootcert=/ca.pem", "postgresql://host/db"),
        ("postgresql://a,b:5433/db?target_session_attrs=primary", "postgresql://a,b:5433/db"),
        ("postgresql://me:hunter2@a:1,b:2/db", "postgresql://me@a:1,b:2/db"),
        ("postgresql://a,b/db?port=5433", "postgresql://a:5433,b:5433/db"),
        ("postgresql://[::1]:5433/db", "postgresql://[::1]:5433/db"),
        ("postgresql:///db?host=/run/a,/run/b&port=1,2", "postgresql://:1,:2/db?host=/run/a,/run/b"),
    ],
)
def test_a_store_is_named_by_what_is_no_secret(url: str, name: str) -> None:
    assert Address.parse(url).name == name
    assert Address.parse(name).name == name, "which a message may tell to type"


def test_options_of_the_url_are_passed_on() -> None:
    url = f"postgresql://me:{QUOTED}@host/db?sslmode=verify-full&sslrootcert=/a%20b/ca.pem&schema=x"
    passed = psycopg.conninfo.conninfo_to_dict(Address.parse(url).conninfo)
    assert passed["sslmode"] == "verify-full"
    assert passed["sslrootcert"] == "/a b/ca.pem"
    assert passed["password"] == SECRET
    assert "schema" not in passed


MISREAD = [
    "postgresql://me:hun@ter2@host/db",
    "postgresql://me:hunter2@corp@host/db",
    "postgresql://me:hun/ter2@host/db",
    "postgresql://me:hun?ter2@host/db",
    "postgresql://me:1/hun?user=ter2@host/db",
    "postgresql://host?user=me&password=hun@ter2",
    "postgresql://me:hun%ter2@host/db",
    "postgresql://me:hunter2%zz@host/db",
]


@pytest.mark.parametrize("url", MISREAD)
def test_a_password_that_would_be_taken_for_something_else_is_refused_with_the_way_to_write_it(url: str) -> None:
    with pytest.raises(CannotOpen, match=r"must be percent-encoded .*urllib\.parse\.quote"):
        ttlstore.open(url)


@pytest.mark.parametrize(
    "url",
    [
        *MISREAD,
        "postgresql://me:hunter2@host:port/db",
        "postgresql://me:hunter2/db",
        "postgresql://me:hunter2:host/db",
        "postgresql://me:hunter2@[host/db",
        "postgresql://me:hunter2@host/db?no_such_option=1",
        "postgresql://me:hunter2@host/db?schema=a-b",
        "postgresql://me:hunter2@host/db?schema=",
        "postgresql://host/db&password=hunter2",
        "postgresql://host/db?user=me;password=hunter2",
        "postgresql://host/db?schema=x?password=hunter2",
        "postgresql+asyncpg://me:hunter2@host/db",
        "postgresql+psycopg2://host/db?user=me&password=hunter2",
        "POSTGRESQL://host/db?user=me&password=hunter2",
        "cockroach-db://me:hunter2@host/db",
        "mysql://me:hun@ter2@host/db",
        "mysql://me:hunter2/db",
        "sqlite:///a.db?password=hunter2",
        "sqlite://me:hunter2@host/a.db",
        " postgresql://me:hunter2@host/db",
        '"postgresql://me:hunter2@host/db"',
        "postgresql:/me:hunter2@host/db",
        "postgresql:me:hunter2@host/db",
        "postgresql//me:hunter2@host/db",
        "host=localhost user=me password=hunter2",
        "password = 'hun ter2' host=localhost",
        "postgresql://me:hunter2\0@host/db",
        "postgresql://me:hunter2\ud800@host/db",
        b"postgresql://me:hunter2@host/db",
    ],
)
def test_a_url_that_cannot_be_read_is_refused_without_being_repeated(url: Any) -> None:
    with pytest.raises(CannotOpen) as refused:
        ttlstore.open(url)
    assert not re.search("hun|ter2", everything_told_by(refused.value))


@pytest.mark.parametrize(("option", "meant"), [("sslmod=require", "sslmode"), ("shema=x&sslmode=disable", "schema")])
def test_an_option_that_is_misspelled_is_put_right(option: str, meant: str) -> None:
    with pytest.raises(CannotOpen, match=rf"\(is {meant} meant\?\)"):
        ttlstore.open(f"postgresql://me:hunter2@host/db?{option}")


def everything_told_by(error: BaseException | None) -> str:
    """With the errors that led to it, even those that a traceback leaves out."""
    told = []
    while error is not None:
        told += [str(error), repr(error), *traceback.format_exception_only(error)]
        error = error.__cause__ or error.__context__
    return "\n".join(told)


@pytest.mark.parametrize("password", ["1", "server", "postgres"])
def test_a_password_that_is_also_a_word_of_the_message_is_not_told_by_a_blank(password: str) -> None:
    with pytest.raises(CannotOpen) as refused:
        ttlstore.open(f"postgresql://postgres:{password}@localhost:1/db?connect_timeout=2")
    assert "server at" in str(refused.value)
    assert "port 1 " in str(refused.value)
    assert "…" not in str(refused.value)


def test_a_password_that_a_server_repeats_is_left_out() -> None:
    said = psycopg.OperationalError("no user me with the password hunter2hunter2")
    told = str(cannot_connect(said, "postgresql://me@host/db", "hunter2hunter2"))
    assert "no user me with the password …" in told


@pytest.mark.parametrize(
    ("said", "way"),
    [
        ('FATAL:  password authentication failed for user "me"', "PGPASSWORD"),
        ("fe_sendauth: no password supplied", "PGPASSWORD"),
        ('FATAL:  database "db" does not exist', "CREATE DATABASE"),
        ("FATAL:  sorry, too many clients already", "up to 16"),
    ],
)
def test_a_server_that_lets_nobody_in_is_told_with_the_way_in(said: str, way: str) -> None:
    told = str(
        cannot_connect(psycopg.OperationalError(f"connection failed:\n\t{said}"), "postgresql://me@host/db", None)
    )
    assert told.startswith(f"postgresql://me@host/db cannot be opened: connection failed:; {said}; ")
    assert way in told


def test_a_role_that_is_not_there_is_told_as_the_server_does() -> None:
    said = psycopg.OperationalError('FATAL:  role "me" does not exist')
    assert str(cannot_connect(said, "postgresql://host/db", None)).endswith('role "me" does not exist')


def test_the_parts_of_a_url_are_not_shown_by_what_shows_variables() -> None:
    assert repr(Address.parse(f"postgresql://me:{QUOTED}@host/db")) == "<Address postgresql://me@host/db>"


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
    told += [everything_told_by(refused.value), "".join(traceback.format_exception(refused.value)), caplog.text]
    for text in told:
        assert "hunter2" not in text


def test_the_short_scheme_of_libpq_opens_the_same_store(postgres_url: str) -> None:
    with ttlstore.open(postgres_url, vacuum=False) as store:
        store.create_collection("c")
    with ttlstore.open(postgres_url.replace("postgresql://", "postgres://"), vacuum=False) as same:
        assert same.name == store.name
        assert [found.name for found in same.list_collections()] == ["c"]


def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(CannotOpen, match=r"postgresql://me@localhost:1/db cannot be reached: "):
        ttlstore.open("postgresql://me@localhost:1/db?connect_timeout=2")


def test_without_the_driver_the_error_says_what_to_install() -> None:
    code = """
import sys
sys.modules["psycopg"] = None  # as if it were not installed
import ttlstore
try:
    ttlstore.open("postgresql://host/db")
except ttlstore.CannotOpen as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "PostgreSQL needs psycopg" in done.stdout
    assert "pip install 'ttlstore[postgres]'" in done.stdout


def passed_to_libpq(url: str, **options: Any) -> dict[str, str]:
    with ttlstore.open(url, vacuum=False, **options) as store:
        (connection,) = store._engine._connections._all  # type: ignore[attr-defined]
        parameters: dict[str, str] = connection.raw.info.get_parameters()
        return parameters


def test_a_server_that_falls_silent_is_not_waited_for_for_hours(postgres_url: str) -> None:
    passed = passed_to_libpq(postgres_url, busy_timeout=7)
    idle, interval, count = (int(passed[f"keepalives_{name}"]) for name in ("idle", "interval", "count"))
    assert idle + interval * count <= 60
    assert passed["tcp_user_timeout"] == "67000", "in milliseconds; a server that waits for a lock may stop reading"
    assert passed["connect_timeout"] == "10"


def test_how_long_to_wait_for_a_silent_server_can_be_said_in_the_url_and_the_environment(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCONNECT_TIMEOUT", "33")
    said = {"keepalives_idle": "1", "keepalives_interval": "2", "keepalives_count": "4", "tcp_user_timeout": "5"}
    passed = passed_to_libpq("&".join([postgres_url, *(f"{name}={value}" for name, value in said.items())]))
    assert passed.items() >= {**said, "connect_timeout": "33"}.items()


def test_an_old_server_is_refused_by_its_version(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "OLDEST_POSTGRES", 99)
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
    monkeypatch.setattr(connections, "_process_of", lambda _: next(seen))
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


@pytest.mark.parametrize("schema", ["user", "select", "current_user", "default"])
def test_a_schema_may_be_called_by_a_reserved_word(postgres: Server, schema: str) -> None:
    url = postgres.store_url(schema)
    try:
        script = migrate.script(url, "head", direction="upgrade")
        with psycopg.connect(postgres.url, autocommit=True) as by_hand:
            by_hand.execute(script.encode())
        with ttlstore.open(url, migrate=False, vacuum=False) as store:
            made_by_script = store.list_collections()
        postgres.admin.execute(f'DROP SCHEMA "{schema}" CASCADE')
        with ttlstore.open(url, vacuum=False) as store:
            assert store.list_collections() == made_by_script == []
            c = store.create_collection("c", default_ttl=10, indexing=IndexingPolicy(paths=("/n",)))
            c.create({"id": "a", "n": 1})
            assert list(c.query("SELECT VALUE c.id FROM c WHERE c.n = 1")) == ["a"]
            store.vacuum()
            assert store.check() == []
    finally:
        postgres.admin.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')


@pytest.mark.parametrize("schema", ["pg_catalog", "pg_temp", "PG_mine", "information_schema"])
def test_a_schema_of_the_servers_own_is_refused(postgres: Server, schema: str) -> None:
    with pytest.raises(CannotOpen, match=f"the schema {schema.lower()} is PostgreSQL's own.*name another"):
        ttlstore.open(postgres.store_url(schema))


def test_a_schema_is_the_same_in_small_and_capital_letters(postgres: Server) -> None:
    schema = postgres.new_schema()

    def start(name: str) -> Any:
        with ttlstore.open(postgres.store_url(name), vacuum=False) as store:
            return store.ensure_collection("c").create({"id": name})["id"]

    names = [schema, schema.upper(), schema.title()]
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(start, names)) == names
    rows = postgres.admin.execute(f"SELECT id FROM {schema}.documents ORDER BY id").fetchall()
    assert [id for (id,) in rows] == sorted(names)


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
