"""Redis over loopback: a redis-server of the benchmark's own, with its append-only file, if one is on PATH."""

import shlex
import shutil
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import orjson
import redis

from benchmarks.peers import TTL_SECONDS, Document, Durability, Peer, bytes_below

START_SECONDS = 10.0
PAGE_KEYS = 1000

if shutil.which("redis-server") is None:
    raise ImportError("there is no redis-server on PATH")


class Redis(Peer):
    package = "redis"
    in_a_server = True

    @classmethod
    @contextmanager
    def serving(cls, folder: Path, durability: Durability) -> Iterator[None]:
        with closing(socket.create_server(("127.0.0.1", 0))) as free:
            port = free.getsockname()[1]
        (folder / "port").write_text(str(port))
        fsync = "always" if durability == "full" else "everysec"
        command = f'redis-server --bind 127.0.0.1 --port {port} --save "" --appendonly yes --appendfsync {fsync} --dir'
        server = subprocess.Popen([*shlex.split(command), str(folder)], stdout=subprocess.DEVNULL)
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            with suppress(redis.ConnectionError):
                redis.Redis(port=port).ping()
                break
            time.sleep(0.02)
        yield
        server.terminate()
        server.wait()

    def __init__(self, folder: Path, durability: Durability) -> None:
        self.folder = folder
        self.client: Any = redis.Redis(port=int((folder / "port").read_text()))

    def load(self, documents: list[Document]) -> None:
        self.load_expiring(documents, TTL_SECONDS)

    def load_expiring(self, documents: list[Document], seconds: int) -> None:
        with self.client.pipeline(transaction=False) as pipeline:
            for document in documents:
                pipeline.set(document["id"], orjson.dumps(document), ex=seconds)
            pipeline.execute()

    def read(self, id: str) -> Document | None:
        found = self.client.get(id)
        return None if found is None else orjson.loads(found)

    def upsert(self, document: Document) -> None:
        self.client.set(document["id"], orjson.dumps(document), ex=TTL_SECONDS)

    def all(self) -> Iterable[Document]:
        for keys in self._pages():
            yield from (orjson.loads(found) for found in self.client.mget(keys) if found is not None)

    def _pages(self) -> Iterator[list[bytes]]:
        cursor = None
        while cursor != 0:
            cursor, keys = self.client.scan(cursor or 0, count=PAGE_KEYS)
            if keys:
                yield keys

    def count(self) -> int:
        count: int = self.client.dbsize()
        return count

    def size(self) -> int:
        return bytes_below(self.folder)

    def close(self) -> None:
        self.client.close()
