"""The schema on PostgreSQL: the same revisions, once, whoever starts them."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
import sqlalchemy

import ttlstore
from tests.postgres import Server
from tests.test_migrations import alembic
from ttlstore import SchemaTooNew, migrate
from ttlstore.schema import HEAD, metadata


def described(postgres: Server, schema: str) -> dict[str, list[Any]]:
    """The tables of a schema, as the catalogue has them."""
    columns = (
        "SELECT table_name, column_name, ordinal_position, data_type, is_nullable, column_default, collation_name, "
        "generation_expression FROM information_schema.columns WHERE table_schema = %s"
    )
    tables = "SELECT relname, reloptions FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind = 'r'"
    indexes = "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = %s"
    rules = "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = %s::regnamespace"
    toast = (
        "SELECT main.relname, toast.reloptions FROM pg_class main "
        "JOIN pg_class toast ON toast.oid = main.reltoastrelid "
        "WHERE main.relnamespace = %s::regnamespace"
    )
    found = {}
    for name, query in {
        "columns": columns,
        "tables": tables,
        "indexes": indexes,
        "rules": rules,
        "toast": toast,
    }.items():
        rows = postgres.admin.execute(query, (schema,)).fetchall()
        texts = [repr(row).replace(f"{schema}.", "") for row in rows if not str(row[0]).startswith("alembic_")]
        found[name] = sorted(texts)
    return found


def test_the_migrated_schema_is_the_declared_one(postgres: Server, postgres_url: str) -> None:
    declared = postgres.new_schema()
    postgres.admin.execute(f"CREATE SCHEMA {declared}")
    engine = sqlalchemy.create_engine(
        "postgresql+psycopg://", creator=lambda: psycopg.connect(postgres.url), poolclass=sqlalchemy.NullPool
    )
    with engine.begin() as connection:
        connection.exec_driver_sql(f"SET LOCAL search_path TO {declared}")
        metadata.create_all(connection)
    migrated = described(postgres, postgres_url.rpartition("=")[2])
    assert migrated == described(postgres, declared)
    assert any("autovacuum_vacuum_scale_factor=0.02" in table for table in migrated["tables"])


def test_of_ten_servers_that_start_at_once_one_upgrades(postgres: Server) -> None:
    schema = postgres.new_schema()

    def start(_: int) -> str:
        with ttlstore.open(postgres.store_url(schema), vacuum=False) as store:
            return store.ensure_collection("c").name

    with ThreadPoolExecutor(10) as pool:
        assert list(pool.map(start, range(10))) == ["c"] * 10
    rows = postgres.admin.execute(f"SELECT version_num FROM {schema}.alembic_version").fetchall()
    assert rows == [(HEAD,)]


def test_a_migration_that_fails_leaves_nothing(postgres: Server) -> None:
    schema = postgres.new_schema()
    postgres.admin.execute(f"CREATE SCHEMA {schema}")
    postgres.admin.execute(f"CREATE TABLE {schema}.documents (ours boolean)")
    with pytest.raises(ttlstore.StoreFailed, match=r"already exists.*name another schema in the URL"):
        ttlstore.open(postgres.store_url(schema))
    left = postgres.admin.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)).fetchall()
    assert left == [("documents",)]


def test_the_script_for_review_does_what_the_migration_does(postgres: Server, postgres_url: str) -> None:
    schema = postgres.new_schema()
    script = migrate.script(postgres.store_url(schema), "head", direction="upgrade")
    assert script.startswith("BEGIN;")
    assert script.endswith("COMMIT;")
    with psycopg.connect(postgres.url, autocommit=True) as by_hand:
        by_hand.execute(script.encode())
    assert described(postgres, schema) == described(postgres, postgres_url.rpartition("=")[2])
    with ttlstore.open(postgres.store_url(schema), migrate=False, vacuum=False) as store:
        assert store.check() == []


def test_the_alembic_command_writes_the_script_for_the_server_that_it_names(postgres: Server) -> None:
    url = postgres.store_url(postgres.new_schema())
    assert alembic(url, "upgrade", "head", "--sql").strip() == migrate.script(url, "head", direction="upgrade")


def test_of_those_who_make_a_store_at_once_one_says_that_it_did(postgres: Server) -> None:
    url = postgres.store_url(postgres.new_schema())
    with ThreadPoolExecutor(10) as pool:
        stood = [before.revision for before, _ in pool.map(lambda _: migrate.init(url), range(10))]
    assert sorted(stood, key=str) == [HEAD] * 9 + [None]


def test_a_store_goes_down_and_up_again(postgres: Server) -> None:
    url = postgres.store_url(postgres.new_schema())
    ttlstore.open(url, vacuum=False).close()
    before, after = migrate.change(url, "base", direction="downgrade")
    assert (before.revision, after.revision) == (HEAD, None)
    assert migrate.init(url)[1].revision == HEAD
    with ttlstore.open(url, vacuum=False) as store:
        assert store.list_collections() == []


def test_a_store_of_a_newer_version_is_left_alone(postgres: Server) -> None:
    schema = postgres.new_schema()
    ttlstore.open(postgres.store_url(schema), vacuum=False).close()
    postgres.admin.execute(f"UPDATE {schema}.alembic_version SET version_num = '9999'")
    with pytest.raises(SchemaTooNew, match="upgrade ttlstore"):
        ttlstore.open(postgres.store_url(schema))


def test_a_schema_that_is_there_can_be_used_without_the_right_to_make_one(postgres: Server) -> None:
    schema = postgres.new_schema()
    postgres.admin.execute(f"CREATE ROLE of_{schema} LOGIN")
    postgres.admin.execute(f"CREATE SCHEMA {schema} AUTHORIZATION of_{schema}")
    try:
        with ttlstore.open(f"{postgres.store_url(schema)}&user=of_{schema}", vacuum=False) as store:
            store.create_collection("c").create({"id": "a"})
            assert store.collection("c").read("a")
    finally:
        postgres.admin.execute(f"DROP OWNED BY of_{schema} CASCADE")
        postgres.admin.execute(f"DROP ROLE of_{schema}")
