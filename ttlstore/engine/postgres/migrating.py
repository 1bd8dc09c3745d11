"""The connection on which PostgreSQL's tables are made or upgraded: by one process at a time, all or nothing."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import sqlalchemy

from ttlstore.engine.postgres.address import Address
from ttlstore.engine.postgres.connections import LOCKS
from ttlstore.engine.postgres.errors import translated
from ttlstore.engine.postgres.rights import cannot_migrate

PATIENCE = "60s"  # whatever an application's patience with a write: another may be migrating


@contextmanager
def migrating(raw: psycopg.Connection, address: Address, busy_timeout: float) -> Iterator[sqlalchemy.Connection]:
    """A transaction with the schema's lock; it and the connection end with the block."""
    raw.autocommit = False
    engine = sqlalchemy.create_engine("postgresql+psycopg://", creator=lambda: raw, poolclass=sqlalchemy.StaticPool)
    try:
        with engine.begin() as connection:
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{PATIENCE}'")
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(%s::int, hashtext(%s))", (LOCKS, address.schema))
            there = connection.exec_driver_sql("SELECT to_regnamespace(%s) IS NOT NULL", (address.schema,)).scalar()
            if not there:  # not IF NOT EXISTS, which asks for a permission that nobody needs to use a schema
                connection.exec_driver_sql(f'CREATE SCHEMA "{address.schema}"')
            yield connection
    except sqlalchemy.exc.DBAPIError as error:
        if isinstance(error.orig, psycopg.errors.InsufficientPrivilege):
            raise cannot_migrate(error.orig, address) from error
        if isinstance(error.orig, psycopg.Error):
            raise translated(error.orig, address.name, busy_timeout, lost=raw.broken) from error
        raise
    finally:
        raw.close()
