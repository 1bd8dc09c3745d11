"""Bring a store's schema to a revision, by the migrations that come with the package."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import sqlalchemy

from ttlstore import engine as engines
from ttlstore.engine import Engine
from ttlstore.errors import RevisionNotFound, SchemaOutdated, SchemaTooNew, command, shown
from ttlstore.schema import HEAD

if TYPE_CHECKING:
    from alembic.config import Config

Direction = Literal["upgrade", "downgrade"]


def ensure_schema(engine: Engine, *, migrate: bool) -> str | None:
    """See that the store has the schema of this version, and tell the revision it had.

    Raises SchemaOutdated or SchemaTooNew.
    """
    revision = engine.revision()
    if revision == HEAD:
        return revision
    _require_known(engine)
    if not migrate:
        raise SchemaOutdated(
            f"{engine.name} has schema {revision or 'none'} and this version of ttlstore needs {HEAD}: run "
            f"{command('migrate upgrade', engine.name)}"
        )
    return upgrade(engine)


def _require_known(engine: Engine) -> None:
    revision = engine.revision()
    if revision is not None and not is_known(revision):
        raise SchemaTooNew(
            f"{engine.name} was written by a newer version of ttlstore (its schema is {revision}, this version "
            f"knows {HEAD}): upgrade ttlstore"
        )


def upgrade(engine: Engine, revision: str = "head") -> str | None:
    """Upgrade the schema, as one transaction, and tell the revision it had; it may be another's work by then."""
    from alembic import command
    from alembic.runtime.migration import MigrationContext

    with engine.migrating() as connection:
        before = MigrationContext.configure(connection).get_current_revision()
        command.upgrade(config(connection), revision)
    return before


def is_known(revision: str) -> bool:
    """Whether the revision is one of this version's migrations."""
    return revision in {known.name for known in history()}


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


# --- by the name of the store, for command lines --------------------------------------------------------------------


class Revision(NamedTuple):
    """A version of the schema."""

    name: str
    description: str


def history() -> list[Revision]:
    """The revisions that this version knows, the newest first."""
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory.from_config(config()).walk_revisions()
    return [Revision(script.revision, script.doc) for script in scripts]


class Standing(NamedTuple):
    """Where a store stands."""

    store: str
    """Its name, as it may be shown: without a password."""
    revision: str | None
    """None: it has no schema yet."""


def init(target: str) -> tuple[Standing, Standing]:
    """Make a store, or upgrade an older one. Returns where it stood, and where it stands."""
    with _connected(target, create=True) as engine:
        return Standing(engine.name, ensure_schema(engine, migrate=True)), _standing(engine)


def current(target: str) -> Standing:
    """Where a store stands. Raises CannotOpen or NotAStore."""
    with _connected(target, create=False) as engine:
        return _standing(engine)


def planned(target: str, revision: str, *, direction: Direction) -> Standing:
    """Where a store stands that could be brought to a revision. Raises what doing it would."""
    _check_revision(revision)
    with _connected(target, create=False) as engine:
        _check_direction(engine, revision, direction)
        return _standing(engine)


def change(target: str, revision: str, *, direction: Direction) -> tuple[Standing, Standing]:
    """Bring a store to a revision, as one transaction. Returns where it stood, and where it stands.

    Raises RevisionNotFound or SchemaTooNew.
    """
    from alembic import command

    _check_revision(revision)
    with _connected(target, create=False) as engine:
        with engine.migrating() as connection:
            _check_direction(engine, revision, direction)
            before = _standing(engine)
            getattr(command, direction)(config(connection), revision)
        return before, _standing(engine)


def _standing(engine: Engine) -> Standing:
    return Standing(engine.name, engine.revision())


def script(target: str, revision: str, *, direction: Direction) -> str:
    """The SQL that would bring a store to a revision, or make one where none is. Changes nothing.

    Raises RevisionNotFound or SchemaTooNew.
    """
    from alembic import command

    _check_revision(revision)
    upgrading = direction == "upgrade"
    is_new = upgrading and "://" not in target and not os.path.lexists(target)
    # Of a store on a server, connecting makes nothing.
    with _connected(":memory:" if is_new else target, create=upgrading and engines.on_a_server(target)) as engine:
        _check_direction(engine, revision, direction)
        present = engine.revision() or "base"
        alembic = config()
        alembic.attributes.update(_of_scripts(engine))
    alembic.output_buffer = StringIO()
    getattr(command, direction)(alembic, f"{present}:{revision}", sql=True)
    return alembic.output_buffer.getvalue().strip()


def of_scripts(target: str | None) -> dict[str, Any]:
    """What a script of the `alembic` command goes by: a server where one is named, else a file."""
    if target is None or not engines.on_a_server(target):
        return {"dialect": "sqlite", "script_begins": ()}
    with _connected(target, create=True) as engine:
        return _of_scripts(engine)


def _of_scripts(engine: Engine) -> dict[str, Any]:
    return {"dialect": engine.dialect, "script_begins": engine.script_begins}


@contextmanager
def migrating(target: str) -> Iterator[sqlalchemy.Connection]:
    """A connection to the store for the `alembic` command, in a transaction that holds the write lock."""
    with _connected(target, create=True) as engine, engine.migrating() as connection:
        yield connection


@contextmanager
def _connected(target: str, *, create: bool) -> Iterator[Engine]:
    engine = engines.connect(target, clock=time.time, durability="full", busy_timeout=5.0, create=create)
    try:
        yield engine
    finally:
        engine.close()


def _check_revision(revision: str) -> None:
    if revision not in ("head", "base") and not is_known(revision):
        known = ", ".join(known.name for known in history())
        raise RevisionNotFound(f"there is no revision {shown(revision)}: it is head, base or one of {known}")


def _check_direction(engine: Engine, revision: str, direction: Direction) -> None:
    _require_known(engine)
    newest_first = [*(known.name for known in history()), "base"]
    here = newest_first.index(engine.revision() or "base")
    there = newest_first.index(HEAD if revision == "head" else revision)
    if (there > here) if direction == "upgrade" else (there < here):
        way, back = ("up", "downgrade") if direction == "upgrade" else ("down", "upgrade")
        raise RevisionNotFound(
            f"no way {way} leads from {newest_first[here]}, where {engine.name} stands, to {newest_first[there]}: "
            f"{back} it instead"
        )
