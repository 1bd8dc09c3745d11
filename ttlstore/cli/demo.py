"""`demo`: a guided tour on a real file, in real time."""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

from ttlstore.cli.output import console, counted
from ttlstore.cli.table import Wrapped, table
from ttlstore.cli.times import format_default_ttl, format_left, format_time
from ttlstore.errors import DocumentNotFound

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ttlstore.collection import Collection
    from ttlstore.store import Store
    from ttlstore.ttl import Clock

DEFAULT_SECONDS = 4
SHORT_SECONDS = 2
TOUCHED_AFTER_SECONDS = 3.0
WATCHED_SECONDS = 7.5  # half a second more than the touched document lives
FRAME_SECONDS = 0.1

# The three settings of a collection and the three of a document: the whole contract in nine documents.
SETTINGS = {"archive": None, "sessions": -1, "carts": DEFAULT_SECONDS}
TTLS = {"plain": None, "forever": -1, "short": SHORT_SECONDS}
TOUCHED = ("carts", "touched")


@click.command("demo")
def demo_command() -> None:
    """A guided tour: watch documents expire, and see why. Takes ten seconds.

    \b
    Examples:
      ttlstore demo
    """
    with tempfile.TemporaryDirectory(prefix="ttlstore-demo-") as folder:
        Tour(os.path.join(folder, "demo.db"), time.time, time.sleep).run()
    click.echo("\nThe file of this tour is removed.")


class Tour:
    """The tour, by a clock and a way to let time pass."""

    def __init__(self, path: str, clock: "Clock", sleep: Callable[[float], None]) -> None:
        self._path = path
        self._clock = clock
        self._sleep = sleep
        self._console = console()
        self._reasons: dict[tuple[str, str], str] = {}  # of each document's fate, by collection and id

    def run(self) -> None:
        import ttlstore

        self._say(f"ttlstore keeps JSON documents in one SQLite file. Here it is {self._path}.")
        with ttlstore.open(self._path, clock=self._clock, vacuum=False) as store:
            self._create(store)
            self._write(store)
            self._watch(store)
            self._explain(store)
            self._change_setting(store)
        self._say_what_next()

    def _create(self, store: "Store") -> None:
        self._heading("1. Three collections, with the three settings that TTL has")
        for name, default_ttl in SETTINGS.items():
            store.create_collection(name, default_ttl=default_ttl)
            self._say(f"   {name:<9} TTL {format_default_ttl(default_ttl)}")

    def _write(self, store: "Store") -> None:
        self._heading("2. In each the same three documents: no ttl, ttl -1 (never) and ttl 2 (seconds)")
        with store.transaction():
            for collection in store.list_collections():
                for id, ttl in TTLS.items():
                    collection.create({"id": id, "ttl": ttl})
            store.collection(TOUCHED[0]).create({"id": TOUCHED[1]})
        self._say("   and one more, carts/touched, that will be touched on the way.")
        for collection, id in _documents(store):
            self._reasons[collection.name, id] = collection.expiry(id).reason

    def _watch(self, store: "Store") -> None:
        self._heading(f"3. Watch: now it is {format_time(self._clock())}")
        if not self._console.is_terminal:
            for _ in self._frames(store):
                pass
            self._console.print(self._picture(store, WATCHED_SECONDS))
            return
        from rich.live import Live

        with Live(console=self._console, auto_refresh=False) as live:
            for seconds in self._frames(store):
                live.update(self._picture(store, seconds), refresh=True)

    def _frames(self, store: "Store") -> Iterator[float]:
        """Let the time pass, frame by frame, and tell what happens at the moment it does."""
        start = self._clock()
        there = set(self._reasons)
        touched = False
        while (seconds := self._clock() - start) < WATCHED_SECONDS:
            if not touched and seconds >= TOUCHED_AFTER_SECONDS:
                store.collection(TOUCHED[0]).touch(TOUCHED[1])
                touched = True
                self._say(f"   {seconds:4.1f} s  {'/'.join(TOUCHED)} is touched: its countdown starts again")
            for name, id in sorted(there):
                if id not in store.collection(name):
                    there.remove((name, id))
                    self._say(f"   {seconds:4.1f} s  {name}/{id} is gone: it {self._reasons[name, id]}")
            yield seconds
            self._sleep(FRAME_SECONDS)

    def _picture(self, store: "Store", seconds: float) -> "RenderableType":
        return table(
            [
                {
                    "document": f"{name}/{id}",
                    f"left at {seconds:.1f} s": _left(store.collection(name), id),
                    "because it": Wrapped(reason),
                }
                for (name, id), reason in self._reasons.items()
            ],
            self._console.width,
        )

    def _explain(self, store: "Store") -> None:
        there = [f"{collection.name}/{id}" for collection, id in _documents(store)]
        self._heading(f"4. Still there: {', '.join(there)}")
        self._say("   archive keeps even its document with ttl 2: there TTL is off.")
        self._say("   What is gone is gone for every reader from its millisecond on, deleted yet or not:")
        store.collection("carts").create({"id": "short", "note": "the id was free at once"})
        self._say("   carts.create({'id': 'short'}) just succeeded.")

    def _change_setting(self, store: "Store") -> None:
        self._heading("5. A collection's setting holds at once, for all of its documents")
        for name, default_ttl in (("archive", SHORT_SECONDS), ("archive", None)):
            collection = store.collection(name)
            before = len(collection)
            collection.configure(default_ttl=default_ttl)
            setting = f"{name}: TTL {format_default_ttl(default_ttl):<4}"
            change = f"{counted(before, 'document')} before, {len(collection)} after"
            self._say(f"   {setting} {change}, no row rewritten")

    def _say_what_next(self) -> None:
        self._heading("Try next")
        program = "ttlstore" if shutil.which("ttlstore") else os.path.relpath(sys.argv[0])
        for command in (
            "init app.db",
            "create app.db carts --ttl 90s",
            """put app.db carts '{"id": "c1", "items": ["tea"]}'""",
            "ls app.db carts",
            "get app.db carts c1 --expiry",
            "--help",
        ):
            self._say(f"   {program} {command}")

    def _heading(self, text: str) -> None:
        self._console.print(f"\n{text}", style="bold")

    def _say(self, text: str) -> None:
        self._console.print(text)


def _documents(store: "Store") -> Iterator[tuple["Collection", str]]:
    for collection in store.list_collections():
        for document in collection:
            yield collection, document["id"]


def _left(collection: "Collection", id: str) -> str:
    try:
        return format_left(collection.expiry(id).seconds_left)
    except DocumentNotFound:
        return "gone"
