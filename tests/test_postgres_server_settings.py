"""A server whose administrator has set what changes the meaning of statements, for a database or a role."""

from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

import ttlstore
from tests.postgres import Server, waiting
from ttlstore import IndexingPolicy, Store, StoreBusy, migrate
from ttlstore.engine.postgres.connections import LOCKS
from ttlstore.schema import HEAD
from ttlstore.testing import FakeClock

HOSTILE = {
    "strings": ["standard_conforming_strings = off", "backslash_quote = off", "escape_string_warning = on"],
    "nulls": ["array_nulls = off", "transform_null_equals = on"],
    "formats": [
        "datestyle = 'German, DMY'",
        "intervalstyle = iso_8601",
        "timezone = 'Asia/Kathmandu'",
        "bytea_output = escape",
        "extra_float_digits = -15",
        "client_encoding = LATIN1",
        "quote_all_identifiers = on",
        "client_min_messages = debug1",
    ],
    "transactions": [
        "default_transaction_isolation = serializable",
        "default_transaction_deferrable = on",
        "default_transaction_read_only = on",
        "search_path = pg_temp, nowhere",
        "lock_timeout = 1",
        "synchronous_commit = off",
    ],
}
DOCUMENTS: list[dict[str, Any]] = [
    {"id": "nul", "s": "x\x01\0y\\u0000", "n": 1e18},
    {"id": "quotes", "s": "é\\\\\n'\"\\' 😀", "n": -0.5},
    {"id": "exact", "s": None, "n": 2**53 + 1},
    {"id": "percent", "s": "%s %% \\x", "n": 1e-300, "ttl": 5},
]


@pytest.fixture(params=HOSTILE)
def hostile_url(postgres: Server, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database of its own, with one kind of hostile settings."""
    name = f"hostile_{request.param}"
    postgres.admin.execute(f"CREATE DATABASE {name}")
    try:
        for setting in HOSTILE[request.param]:
            postgres.admin.execute(f"ALTER DATABASE {name} SET {setting}")
        yield postgres.database_url(name)
    finally:
        postgres.admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_what_is_set_for_a_database_changes_nothing(hostile_url: str) -> None:
    assert outcome(hostile_url) == outcome(":memory:")


def test_what_is_set_for_a_database_changes_no_migration(hostile_url: str) -> None:
    assert migrate.script(hostile_url, "head", direction="upgrade").startswith("BEGIN;")
    assert migrate.init(hostile_url)[1].revision == HEAD
    assert migrate.change(hostile_url, "base", direction="downgrade")[1].revision is None


def test_the_server_can_do_what_it_does_by_itself_with_an_index(hostile_url: str) -> None:
    """Its autovacuum runs the expressions of an index, by what is set for the database."""
    with ttlstore.open(hostile_url, vacuum=False) as store:
        store.create_collection("c", indexing=IndexingPolicy(paths=("/s", "/it's\\"))).create_many(DOCUMENTS)
    with psycopg.connect(hostile_url, autocommit=True) as by_itself:
        by_itself.execute("SET default_transaction_read_only = off")
        by_itself.execute("ANALYZE ttlstore.documents")
        by_itself.execute("REINDEX TABLE ttlstore.documents")
    with ttlstore.open(hostile_url, vacuum=False) as store:
        for document in DOCUMENTS:
            query = store.collection("c").query("SELECT VALUE c.id FROM c WHERE c.s = @s", {"s": document["s"]})
            assert list(query) == [document["id"]]


# --- how long a statement may take ----------------------------------------------------------------------------------

ALLOWED_MILLISECONDS = 300


@pytest.fixture
def hurried_url(postgres_url: str) -> str:
    """A store whose statements the server ends soon."""
    limits = quote(f"-c statement_timeout={ALLOWED_MILLISECONDS}")
    return f"{postgres_url}&options={limits}"


def until_it_took_too_long(postgres: Server, result: Future[Any]) -> None:
    """Wait until a statement has waited for a lock for longer than statements may take."""
    longer = "clock_timestamp() > query_start + %s * interval '2 milliseconds'"
    ask = f"SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND {longer}"
    while postgres.admin.execute(ask, (ALLOWED_MILLISECONDS,)).fetchone() is None:
        assert not result.done(), result


def test_a_write_that_the_server_ends_because_it_took_too_long_is_busy_and_says_why(
    hurried_url: str, by_hand: psycopg.Connection
) -> None:
    with ttlstore.open(hurried_url, vacuum=False, busy_timeout=60) as store:
        c = store.create_collection("c")
        written = c.create({"id": "a"})
        by_hand.execute("SELECT FROM documents FOR UPDATE")
        for write in (c.upsert, c.replace, lambda document: c.upsert_many([document] * 100)):
            with pytest.raises(StoreBusy, match=r"nothing of it was written: .*statement_timeout"):
                write({"id": "a", "n": 1})
        by_hand.rollback()
        assert c.read("a") == written
        assert c.upsert({"id": "a", "n": 1})["n"] == 1


def test_an_index_may_take_longer_than_a_statement(
    hurried_url: str, by_hand: psycopg.Connection, postgres: Server
) -> None:
    policy = IndexingPolicy(paths=("/n",))
    with ttlstore.open(hurried_url, vacuum=False, busy_timeout=60) as store:
        c = store.create_collection("c")
        by_hand.execute("LOCK documents IN ROW EXCLUSIVE MODE")
        with waiting(postgres, lambda: c.configure(indexing=policy)) as result:
            until_it_took_too_long(postgres, result)
            by_hand.rollback()
        result.result()
        assert c.indexing == policy


def test_a_migration_may_wait_for_another_for_longer_than_a_statement_may_take(
    hurried_url: str, by_hand: psycopg.Connection, postgres: Server
) -> None:
    by_hand.execute("SELECT pg_advisory_xact_lock(%s::int, hashtext(current_schema()))", (LOCKS,))
    with waiting(postgres, lambda: migrate.change(hurried_url, "head", direction="upgrade")) as result:
        until_it_took_too_long(postgres, result)
        by_hand.rollback()
    assert result.result()[1].revision == HEAD


# --- a bit of everything --------------------------------------------------------------------------------------------


def outcome(target: str) -> list[object]:
    """What comes of a bit of everything."""
    clock = FakeClock()
    with ttlstore.open(target, clock=clock, vacuum=False) as store:
        return list(outcomes(store, clock))


def outcomes(store: Store, clock: FakeClock) -> Iterator[object]:
    c = store.create_collection("c", default_ttl=100, indexing=IndexingPolicy(paths=("/s", ("/n", "/s"))))
    for document in DOCUMENTS:
        c.create(document)
    for count in (3, 120):  # by statements for each, and by those for many
        c.create_many({"id": f"{count}-{n}", "s": None if n % 2 else "z\\", "ttl": n % 3 + 50} for n in range(count))
        c.upsert_many({"id": f"{count}-{n}", "s": None if n % 2 else "z\\\\"} for n in range(count))
        c.upsert_many({"id": f"{count}-{n}", "s": "'"} | ({"ttl": 70} if n % 2 else {}) for n in range(count // 3))
    for document in DOCUMENTS:
        for name in ("s", "n"):
            text = f"SELECT VALUE c.id FROM c WHERE c.{name} = @value AND NOT STARTSWITH(c.id, '120-')"
            yield sorted(map(str, c.query(text, {"value": document[name]})))
    yield list(c.query("SELECT VALUE c.id FROM c WHERE c.s = null ORDER BY c.n, c.id OFFSET 1 LIMIT 5"))
    c.touch("nul")
    c.replace({"id": "nul", "v": 0.1})
    c.patch("nul", [{"op": "set", "path": "/q'\\", "value": "\\x"}])
    with store.transaction():
        held = c.read("nul")
        c.upsert({**held, "again": "\\'"})
        yield c.count()
    yield c.preview_ttl(3)
    yield [plain(document) for document in c]
    yield [plain(document) for document in c.snapshot()]
    c.configure(indexing=IndexingPolicy(paths=("/it's\\",)), default_ttl=200)
    yield store.check(), c.stats().live_documents
    clock.advance(201)
    yield c.count(), store.vacuum().deleted, store.stats().waiting_documents, store.check()
    store.delete_collection("c")


def plain(document: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in document.items() if name != "_etag"}
