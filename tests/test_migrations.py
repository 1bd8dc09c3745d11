"""The schema: migrations are its only source, and each revision can be reached from every other."""

import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy
from alembic.script import ScriptDirectory

import ttlstore
from tests.files import everything_in
from tests.golden.make import DOCUMENTS, WRITTEN_AT
from ttlstore import migrate
from ttlstore.schema import HEAD, INDEXES_OF_COLLECTIONS, metadata
from ttlstore.testing import FakeClock

CHECKOUT = Path(__file__).parent.parent
GOLDEN = sorted(Path(__file__).parent.glob("golden/*.db"))

FAILING_REVISION = '''
"""Fails after half of its work."""
import sqlalchemy as sa
from alembic import op

revision = "9999"
down_revision = "{head}"
branch_labels = depends_on = None

def upgrade():
    op.create_table("half", sa.Column("a", sa.Integer))
    op.add_column("documents", sa.Column("extra", sa.Text))
    op.execute("UPDATE documents SET etag = 'broken'")
    op.execute("SELECT * FROM nowhere")

def downgrade():
    pass
'''


def schema_of(connection: sqlite3.Connection) -> dict[str, str]:
    """The SQL of every table and index, however it is spaced and quoted."""
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    return {
        name: re.sub(r"\s*([(),])\s*", r"\1", re.sub(r"\s+", " ", sql.replace('"', ""))).strip()
        for name, sql in rows
        if not name.startswith(("sqlite_", "alembic_", INDEXES_OF_COLLECTIONS))
    }


def schema_in(path: Path) -> dict[str, str]:
    connection = sqlite3.connect(path)
    try:
        return schema_of(connection)
    finally:
        connection.close()


def alembic(store: Path | str, *arguments: str) -> str:
    """Run the command as a developer does, in the checkout."""
    done = subprocess.run(
        [sys.executable, "-m", "alembic", "-x", f"db={store}", *arguments],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# --- the schema -------------------------------------------------------------------------------------------------------


def test_the_migrated_schema_is_the_declared_one(path: Path) -> None:
    ttlstore.open(path).close()
    engine = sqlalchemy.create_engine("sqlite://", poolclass=sqlalchemy.StaticPool)
    with engine.connect() as connection:
        metadata.create_all(connection)
        declared = schema_of(connection.connection.driver_connection)  # type: ignore[arg-type]
    engine.dispose()
    assert schema_in(path) == declared
    assert {"collections", "documents", "documents_by_expiry", "documents_by_write"} <= declared.keys()


def test_the_head_that_opening_knows_is_the_head_of_the_migrations() -> None:
    assert ScriptDirectory.from_config(migrate.config()).get_heads() == [HEAD]


def test_every_revision_has_a_golden_database() -> None:
    revisions = {script.revision for script in ScriptDirectory.from_config(migrate.config()).walk_revisions()}
    assert {path.stem for path in GOLDEN} == revisions


# --- stores of every revision -----------------------------------------------------------------------------------------


@pytest.fixture(params=GOLDEN, ids=lambda path: path.stem)
def golden(request: pytest.FixtureRequest, path: Path) -> Path:
    """A copy of a golden database."""
    shutil.copy(request.param, path)
    return path


def test_a_store_of_any_revision_is_upgraded_and_its_documents_are_read_back(golden: Path) -> None:
    clock = FakeClock(WRITTEN_AT)
    with ttlstore.open(golden, clock=clock, vacuum=False) as store:
        assert store.check() == []
        expected = {document["id"]: document for document in DOCUMENTS}
        for name in ("sessions", "off", "on"):
            found = {document["id"]: document for document in store.collection(name)}
            assert all(document.pop("_ts") == int(WRITTEN_AT) for document in found.values())
            assert len({document.pop("_etag") for document in found.values()}) == 4
            assert found == expected
        clock.advance(1)
        assert store.collection("sessions").count() == 3
        clock.advance(59)
        assert store.collection("sessions").count() == 2
        clock.advance(3539.999)
        assert "inherits" in store.collection("sessions")
        clock.advance(0.001)
        assert [document["id"] for document in store.collection("sessions")] == ["never"]
        assert store.collection("off").count() == 4
        assert [document["id"] for document in store.collection("on")] == ["inherits", "never"]
        orders = store.collection("orders")
        assert orders.read("same", partition=True)["customer"] == {"id": True}
        assert orders.indexing.paths == ("/total", ("/a", "/b"))
        names = [collection.name for collection in store.list_collections()]
        assert names == ["none", "off", "on", "orders", "sessions"]
        orders.upsert({"id": "new", "customer": {"id": "x"}})


def test_an_upgraded_store_has_the_schema_of_a_new_one(golden: Path, tmp_path: Path) -> None:
    ttlstore.open(golden).close()
    ttlstore.open(tmp_path / "new.db").close()
    assert schema_in(golden) == schema_in(tmp_path / "new.db")


# --- upgrading --------------------------------------------------------------------------------------------------------


def test_a_failing_migration_leaves_nothing_behind(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ttlstore.open(path) as store:
        before = store.create_collection("c").create({"id": "a"})
    migrations = tmp_path / "migrations"
    shutil.copytree(CHECKOUT / "migrations", migrations, ignore=shutil.ignore_patterns("__pycache__"))
    (migrations / "versions" / "9999_failing.py").write_text(FAILING_REVISION.format(head=HEAD))
    schema, content = schema_in(path), everything_in(tmp_path)["store.db"][0]
    with monkeypatch.context() as patched:
        patched.setattr(migrate, "HEAD", "9999")
        patched.setattr(migrate, "_location", lambda: migrations)
        with pytest.raises(ttlstore.TtlStoreError, match="nowhere"):
            ttlstore.open(path)
    assert schema_in(path) == schema
    assert path.read_bytes() == content
    with ttlstore.open(path) as store:
        assert store.collection("c").read("a") == before


def test_a_store_of_which_a_migration_failed_at_its_birth_can_be_opened(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrations = tmp_path / "migrations"
    shutil.copytree(CHECKOUT / "migrations", migrations, ignore=shutil.ignore_patterns("__pycache__"))
    (migrations / "versions" / "9999_failing.py").write_text(FAILING_REVISION.format(head=HEAD))
    with monkeypatch.context() as patched:
        patched.setattr(migrate, "_location", lambda: migrations)
        with pytest.raises(ttlstore.TtlStoreError, match="nowhere"):
            ttlstore.open(path)
    assert schema_in(path) == {}
    with ttlstore.open(path) as store:
        assert store.create_collection("c").count() == 0


# --- the alembic command ----------------------------------------------------------------------------------------------


def test_the_alembic_command_says_on_one_line_what_it_refuses(path: Path) -> None:
    path.write_text("something else")
    done = subprocess.run(
        [sys.executable, "-m", "alembic", "-x", f"db={path}", "upgrade", "head"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode != 0
    told = (done.stdout + done.stderr).splitlines()
    assert "Traceback (most recent call last):" not in told
    assert told[-1].startswith("FAILED: ")
    assert str(path) in told[-1]


def test_the_alembic_command_makes_a_store(path: Path) -> None:
    alembic(path, "upgrade", "head")
    assert HEAD in alembic(path, "current")
    with ttlstore.open(path, migrate=False) as store:
        assert store.create_collection("c").create({"id": "a"})
        assert store.check() == []


def test_down_to_nothing_and_up_again(path: Path) -> None:
    with ttlstore.open(path) as store:
        store.create_collection("c")
    schema = schema_in(path)
    alembic(path, "downgrade", "base")
    assert schema_in(path) == {}
    alembic(path, "upgrade", "head")
    assert schema_in(path) == schema
    alembic(path, "downgrade", "base")
    with ttlstore.open(path) as store:
        assert store.list_collections() == []
    assert schema_in(path) == schema


def test_the_sql_of_the_migrations_can_be_printed(path: Path) -> None:
    sql = alembic(path, "upgrade", "head", "--sql")
    assert not path.exists()
    by_hand = sqlite3.connect(":memory:")
    by_hand.executescript(sql)
    ttlstore.open(path).close()
    assert schema_of(by_hand) == schema_in(path)
    assert by_hand.execute("SELECT version_num FROM alembic_version").fetchall() == [(HEAD,)]
    by_hand.close()


def test_no_migration_is_missing(path: Path) -> None:
    """Alembic itself finds no difference between the declared schema and the migrated one."""
    ttlstore.open(path).close()
    assert "No new upgrade operations detected" in alembic(path, "check")


def test_the_command_says_what_it_needs() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "alembic", "upgrade", "head"], cwd=CHECKOUT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0
    assert "name the store to migrate: alembic -x db=app.db" in done.stdout + done.stderr
