"""Alembic's way into a store.

ttlstore passes the connection to migrate on. The `alembic` command names the store instead:

    alembic -x db=app.db upgrade head        (or TTLSTORE_DB=app.db alembic upgrade head)
"""

import os
from collections.abc import Iterable

import sqlalchemy
from alembic import context
from alembic.util import CommandError

from ttlstore.errors import TtlStoreError
from ttlstore.migrate import migrating, of_scripts
from ttlstore.schema import INDEXES_OF_COLLECTIONS, metadata


def is_ours(name: str | None, kind: str, parents: object) -> bool:
    """Whether migrations look after it: not the indexes that collections' settings ask for."""
    return kind != "index" or not (name or "").startswith(INDEXES_OF_COLLECTIONS)


def run(connection: sqlalchemy.Connection) -> None:
    context.configure(connection=connection, target_metadata=metadata, include_name=is_ours)
    with context.begin_transaction():
        context.run_migrations()


def write_script(dialect: str, script_begins: Iterable[str]) -> None:
    # A script to review must not stop half-way either.
    context.configure(dialect_name=dialect, target_metadata=metadata, literal_binds=True, transactional_ddl=True)
    with context.begin_transaction():
        for statement in script_begins:
            context.execute(statement)
        context.run_migrations()


given = context.config.attributes
named = context.get_x_argument(as_dictionary=True).get("db") or os.environ.get("TTLSTORE_DB")
try:
    if context.is_offline_mode():
        of_script = given or of_scripts(named)
        write_script(of_script["dialect"], of_script["script_begins"])
    elif given.get("connection") is not None:
        run(given["connection"])
    elif named:
        with migrating(named) as connection:
            run(connection)
    else:
        raise CommandError("name the store to migrate: alembic -x db=app.db …, or set TTLSTORE_DB")
except TtlStoreError as error:
    raise CommandError(str(error)) from error  # which Alembic says on one line
