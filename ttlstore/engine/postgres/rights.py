"""What a role must be granted to open a store on PostgreSQL, told before it fails for lack of it.

A schema that a role may not use is left out of its search path without a word: the store would seem not to be there.
"""

import psycopg

from ttlstore.engine.postgres.address import Address
from ttlstore.engine.postgres.errors import cannot_connect, said
from ttlstore.errors import CannotOpen
from ttlstore.schema import collections, documents

_TABLES = ["alembic_version", collections.name, documents.name]
_ASK = """
SELECT quote_ident(current_user), quote_ident(nspname), has_schema_privilege(pg_namespace.oid, 'USAGE'), ARRAY(
    SELECT relname::text FROM pg_class
    WHERE relnamespace = pg_namespace.oid AND relname = ANY(%s) AND NOT has_table_privilege(pg_class.oid, 'SELECT')
    ORDER BY relname
) FROM pg_namespace WHERE nspname = %s
"""


def is_there(raw: psycopg.Connection, address: Address) -> bool:
    """Whether there is a store, by its schema: the tables may have to be made, as after a downgrade.

    Raises CannotOpen if the role may not look into it. Whether it may write shows when it does.
    """
    try:
        found = raw.execute(_ASK, (_TABLES, address.schema), prepare=False).fetchone()
    except psycopg.Error as error:
        raise cannot_connect(error, address.name, address.password) from None
    if found is None:
        return False
    role, schema, may_use, unreadable = found
    if not may_use:
        raise CannotOpen(
            f"the role {role} may not use the schema of {address.name}: let its owner run "
            f"GRANT USAGE ON SCHEMA {schema} TO {role}"
        )
    if unreadable:
        raise CannotOpen(
            f"the role {role} may not read {', '.join(unreadable)} of {address.name}: let the owner run "
            f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}"
        )
    return True


def cannot_migrate(error: psycopg.Error, address: Address) -> CannotOpen:
    """For lack of a right to make or change the tables."""
    return CannotOpen(
        f"the tables of {address.name} cannot be made or upgraded by this role: {said(error)}; it must own those that "
        f'are there, and needs GRANT USAGE, CREATE ON SCHEMA "{address.schema}" or, if none, GRANT CREATE ON DATABASE'
    )
