"""Where a PostgreSQL store is, by its URL."""

import re
from difflib import get_close_matches
from typing import NamedTuple
from urllib.parse import quote, unquote, urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo

from ttlstore.errors import CannotOpen, shown

DEFAULT_SCHEMA = "ttlstore"  # not public: tables called "documents" are in many databases

_ENCODED = "special characters in a user, a password or any other part must be percent-encoded (@ is %40, / is %2F, "
_HOW = "% is %25), as urllib.parse.quote(password, safe='') does"


class Address(NamedTuple):
    """What to connect to."""

    conninfo: str
    """For libpq, which takes every option of the URL: TLS, timeouts, several hosts."""
    schema: str
    """Where in the database the tables are: `?schema=`, the one option that is not libpq's. May be a reserved word."""
    name: str
    """For messages. Made of the parts that are no secrets."""
    password: str | None

    def __repr__(self) -> str:
        return f"<Address {self.name}>"  # what shows the variables of a traceback shows this

    @classmethod
    def parse(cls, url: str) -> "Address":
        """Raises CannotOpen, which does not repeat the URL."""
        after_scheme = url.partition("://")[2]
        _check_ats(after_scheme)
        base, _, query = after_scheme.partition("?")
        options = [option for option in query.split("&") if option]
        schemas = [option.removeprefix("schema=") for option in options if option.startswith("schema=")]
        schema = unquote(schemas[-1]) if schemas else DEFAULT_SCHEMA
        passed_on = "&".join(option for option in options if not option.startswith("schema="))
        conninfo = f"postgresql://{base}?{passed_on}"
        found = _read(conninfo)
        # What libpq would take for a name of a database, a port or a schema may be where a password was meant to be.
        misread = "=" in base.rpartition("@")[2] or any("=" in schema for schema in schemas)
        if found is None or misread or not re.fullmatch("[0-9,]*", found.get("port", "")):
            raise CannotOpen(
                "the URL cannot be read; it should look like postgresql://user:password@host:5432/database, the port a "
                f"number, with options that libpq knows behind a ? if any{_meant(options)}; {_ENCODED}{_HOW}"
            )
        schema = _schema(schema)
        return cls(conninfo, schema, _name(found, schema), found.get("password"))


def _check_ats(after_scheme: str) -> None:
    """Refuse a URL in which a password may end elsewhere than its author thinks.

    libpq would read the rest of it as the host or the database, which are shown.
    """
    authority = re.split("[/?]", after_scheme, maxsplit=1)[0]
    if after_scheme.count("@") > ("@" in authority):
        raise CannotOpen(f"the only @ in a URL is the one before the host: {_ENCODED}{_HOW}")


def _meant(options: list[str]) -> str:
    """Names of options that are like those that libpq does not know, which are not repeated: they may be no names."""
    known = ["schema", *(option.keyword.decode() for option in Conninfo.get_defaults())]
    unknown = [name for name, _, _ in (option.partition("=") for option in options) if name not in known]
    meant = [like for name in unknown for like in get_close_matches(name, known, n=1)]
    return f" (is {' and '.join(meant)} meant?)" if meant else ""


def _schema(given: str) -> str:
    """In small letters, as PostgreSQL takes a name that is not quoted: the same store, however it is written."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,62}", given):
        raise CannotOpen(
            f"the schema in a URL must be letters, digits and _, at most 63 and no digit first, got {shown(given)}"
        )
    schema = given.lower()
    if schema.startswith("pg_") or schema == "information_schema":
        raise CannotOpen(f"the schema {schema} is PostgreSQL's own, as are all that begin with pg_: name another")
    return schema


def _read(conninfo: str) -> dict[str, str] | None:
    """The options that libpq finds; None if it cannot read it. Its error is not kept: it repeats what was read."""
    try:
        return {name: str(value) for name, value in conninfo_to_dict(conninfo).items()}
    except (psycopg.Error, UnicodeError):
        return None


def _name(found: dict[str, str], schema: str) -> str:
    user = f"{quote(found['user'], safe='')}@" if "user" in found else ""
    hosts, ports = found.get("host", "").split(","), found.get("port", "").split(",")
    options = {} if schema == DEFAULT_SCHEMA else {"schema": schema}
    if hosts[0].startswith("/"):  # the folder of a socket
        options, hosts = {"host": ",".join(hosts), **options}, [""] * len(hosts)
    if len(ports) == 1:  # for all of them
        ports *= len(hosts)
    servers = ",".join(map(_server, hosts, ports))
    query = f"?{urlencode(options, safe='/,')}" if options else ""
    return f"postgresql://{user}{servers}/{quote(found.get('dbname', ''), safe='')}{query}"


def _server(host: str, port: str) -> str:
    return (f"[{host}]" if ":" in host else host) + (f":{port}" if port else "")
