"""Bring a store's schema to a revision, by the migrations that come with the package."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy

from ttlstore import engine as engines
from ttlstore.engine import Engine
from ttlstore.errors import SchemaOutdated, SchemaTooNew
from ttlstore.schema import HEAD

if TYPE_CHECKING:
    from alembic.config import Config


def ensure_schema(engine: Engine, *, migrate: bool) -> None:
    """See that the store has the schema of this version. Raises SchemaOutdated or SchemaTooNew."""
    revision = engine.revision()
    if revision == HEAD:
        return
    if revision is not None and not is_known(revision):
        raise SchemaTooNew(
            f"{engine.name} was written by a newer version of ttlstore (its schema is {revision}, this version "
            f"knows {HEAD}): upgrade ttlstore"
        )
    if not migrate:
        raise SchemaOutdated(
            f"{engine.name} has schema {revision or 'none'} and this version of ttlstore needs {HEAD}: run "
            f"'ttlstore migrate upgrade {engine.name}', or open it with migrate=True"
        )
    upgrade(engine)


def init(target: str) -> str | None:
    """Make a store, or upgrade an older one. Returns the revision it had; None: it is new."""
    engine = engines.connect(target, durability="full", busy_timeout=5.0)
    try:
        before = engine.revision()
        ensure_schema(engine, migrate=True)
    finally:
        engine.close()
    return before


def upgrade(engine: Engine, revision: str = "head") -> None:
    """Upgrade the schema, as one transaction. Does nothing where that was done already."""
    from alembic import command

    with engine.migrating() as connection:
        command.upgrade(config(connection), revision)


def is_known(revision: str) -> bool:
    """Whether the revision is one of this version's migrations."""
    from alembic.script import ScriptDirectory

    return revision in {script.revision for script in ScriptDirectory.from_config(config()).walk_revisions()}


def config(connection: sqlalchemy.Connection | None = None) -> "Config":
    """Alembic's configuration: where the migrations are, and the connection they run on."""
    from alembic.config import Config

    alembic = Config(attributes={"connection": connection})
    alembic.set_main_option("script_location", str(_location()).replace("%", "%%"))
    return alembic


def _location() -> Path:
    """In the package where it was installed from a wheel, beside it in a checkout."""
    package = Path(__file__).parent
    inside = package / "migrations"
    return inside if inside.is_dir() else package.parent / "migrations"


@contextmanager
def migrating(target: str) -> Iterator[sqlalchemy.Connection]:
    """A connection to the store for the `alembic` command, in a transaction that holds the write lock."""
    engine = engines.connect(target, durability="full", busy_timeout=5.0)
    try:
        with engine.migrating() as connection:
            yield connection
    finally:
        engine.close()
