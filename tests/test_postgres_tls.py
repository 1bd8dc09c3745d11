"""TLS to a PostgreSQL server, by the options of the URL: certificates are checked as they say.

The server out of the wheel speaks no TLS, so something before it does, as a proxy in front of a database would.
"""

import select
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlencode

import psycopg
import pytest
import trustme

import ttlstore
from tests.postgres import Server
from ttlstore import CannotOpen

REQUEST_BYTES = 8  # of the first packet, in which a client asks for TLS
ASKS_FOR_TLS = (80877103).to_bytes(4, "big")
CHUNK_BYTES = 65536
PASSWORD = "hunter2"


class Front:
    """Listens at a port of this machine, takes TLS off, if it has a certificate, and passes on what is left."""

    def __init__(self, server: Server, certificate: trustme.LeafCert | None) -> None:
        self.encrypted = 0  # connections
        self._server = server
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._has_certificate = certificate is not None
        if certificate is not None:
            certificate.configure_cert(self._context)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._listen, daemon=True).start()

    def url(self, host: str = "localhost", **options: str) -> str:
        of_server = psycopg.conninfo.conninfo_to_dict(self._server.url)
        # Not another address of the host's, at which nobody listens.
        options = {"hostaddr": "127.0.0.1", **options}
        user, database = of_server["user"], of_server["dbname"]
        password = of_server.get("password") or PASSWORD  # which a server that trusts everybody does not ask for
        return f"postgresql://{user}:{password}@{host}:{self.port}/{database}?{urlencode(options)}"

    def _listen(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            while client.recv(REQUEST_BYTES, socket.MSG_WAITALL)[4:] != ASKS_FOR_TLS:
                client.sendall(b"N")  # to other kinds of encryption
            client.sendall(b"S" if self._has_certificate else b"N")
            if not self._has_certificate:
                return
            with self._context.wrap_socket(client, server_side=True) as encrypted, self._connect() as server:
                self.encrypted += 1
                _pass_on(encrypted, server)

    def _connect(self) -> socket.socket:
        info = self._server.admin.info
        if not info.host.startswith("/"):
            return socket.create_connection((info.host, info.port))
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(f"{info.host}/.s.PGSQL.{info.port}")
        return connection

    def close(self) -> None:
        self._listener.close()


def _pass_on(client: ssl.SSLSocket, server: socket.socket) -> None:
    while True:
        ready = [client] if client.pending() else select.select([client, server], [], [])[0]
        for one, other in ((client, server), (server, client)):
            if one in ready:
                received = one.recv(CHUNK_BYTES)
                if not received:
                    return
                other.sendall(received)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def front(postgres: Server, authority: trustme.CA) -> Iterator[Front]:
    front = Front(postgres, authority.issue_cert("localhost"))
    yield front
    front.close()


def kept(authority: trustme.CA, path: Path) -> str:
    authority.cert_pem.write_to_path(path)
    return str(path)


def test_a_server_whose_certificate_is_right_is_used(
    front: Front, authority: trustme.CA, postgres: Server, tmp_path: Path
) -> None:
    trusted = kept(authority, tmp_path / "company's.pem")
    url = front.url(sslmode="verify-full", sslrootcert=trusted, schema=postgres.new_schema())
    with ttlstore.open(url) as store:
        written = store.create_collection("c").create({"id": "a", "text": "x" * 2 * CHUNK_BYTES})
        assert store.collection("c").read("a") == written
    assert front.encrypted > 0


@pytest.mark.parametrize("sslmode", ["verify-ca", "verify-full"])
def test_a_certificate_of_another_authority_is_refused_without_the_password(
    front: Front, tmp_path: Path, sslmode: str
) -> None:
    others = kept(trustme.CA(), tmp_path / "others.pem")
    with pytest.raises(CannotOpen, match=r"cannot be reached: .*certificate verify failed") as refused:
        ttlstore.open(front.url(sslmode=sslmode, sslrootcert=others))
    assert PASSWORD not in f"{refused.value} {refused.value.__cause__!r}"


def test_a_certificate_for_another_host_is_refused(front: Front, authority: trustme.CA, tmp_path: Path) -> None:
    trusted = kept(authority, tmp_path / "company.pem")
    with pytest.raises(CannotOpen, match=r'does not match host name "db\.example\.com"'):
        ttlstore.open(front.url("db.example.com", sslmode="verify-full", sslrootcert=trusted))


def test_certificates_that_are_not_there_are_named(front: Front, tmp_path: Path) -> None:
    with pytest.raises(CannotOpen, match=r"nowhere\.pem"):
        ttlstore.open(front.url(sslmode="verify-full", sslrootcert=str(tmp_path / "nowhere.pem")))


def test_a_server_without_tls_is_refused_if_it_is_required(postgres: Server) -> None:
    front = Front(postgres, None)
    with pytest.raises(CannotOpen, match="does not support SSL"):
        ttlstore.open(front.url(sslmode="require"))
    front.close()
