"""Where a PostgreSQL store is, by its URL."""

import re
from typing import NamedTuple
from urllib.parse import quote, unquote, urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict

from ttlstore.errors import CannotOpen, shown

DEFAULT_SCHEMA = "ttlstore"  # not public: tables called "documents" are in many databases


class Address(NamedTuple):
    """What to connect to."""

    conninfo: str
    """For libpq, which takes every option of the URL: TLS, timeouts, several hosts."""
    schema: str
    """Where in the database the tables are: `?schema=`, the one option that is not libpq's."""
    name: str
    """For messages. Made of the parts that are no secrets."""
    password: str | None

    @classmethod
    def parse(cls, url: str) -> "Address":
        """Raises CannotOpen, which does not repeat the URL."""
        url = re.sub(r"^postgresql\+psycopg://", "postgresql://", url)
        base, _, query = url.partition("?")
        options = [option for option in query.split("&") if option]
        schemas = [unquote(option.removeprefix("schema=")) for option in options if option.startswith("schema=")]
        schema = schemas[-1] if schemas else DEFAULT_SCHEMA
        conninfo = "?".join([base, "&".join(option for option in options if not option.startswith("schema="))])
        try:
            found = {name: str(value) for name, value in conninfo_to_dict(conninfo).items()}
        except psycopg.Error:
            raise CannotOpen(
                "the URL cannot be read; it should look like postgresql://user@host:5432/database"
            ) from None
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,62}", schema):
            raise CannotOpen(
                f"the schema in a URL must be letters, digits and _, at most 63 and no digit first, got {shown(schema)}"
            )
        return cls(conninfo, schema, _name(found, schema), found.get("password"))


def _name(found: dict[str, str], schema: str) -> str:
    user = f"{quote(found['user'], safe='')}@" if "user" in found else ""
    host, port = found.get("host", ""), f":{found['port']}" if "port" in found else ""
    options = {} if schema == DEFAULT_SCHEMA else {"schema": schema}
    if host.startswith("/"):  # the folder of a socket
        options, host = {"host": host, **options}, ""
    query = f"?{urlencode(options, safe='/')}" if options else ""
    return f"postgresql://{user}{host}{port}/{quote(found.get('dbname', ''), safe='')}{query}"
