"""Many threads of many processes on the same documents, and the history of what each saw."""

import random
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import ttlstore
from tests.faults.victim import Tell
from tests.faults.works import Target
from ttlstore import Collection, DocumentExists, DocumentNotFound, PreconditionFailed, Store

OWN_TTL = 1
DEFAULTS = [1, 2, 3600, -1]
DOCUMENTS = 3  # of each kind: few, so that all meet

REFUSALS = (DocumentExists, DocumentNotFound, PreconditionFailed)


class Event(NamedTuple):
    """A call that came to an end, by the clock before and after it."""

    verb: str
    id: str
    start: float
    end: float
    result: Any
    """The etag of what was read or written, or None."""
    before: str | None = None
    """The etag that a conditional write took the place of."""


class Member:
    """One thread of the crowd."""

    def __init__(self, store: Store, seed: int) -> None:
        self.events: list[Event] = []
        self._store = store
        self._collection: Collection = store.collection("c")
        self._chance = random.Random(seed)

    def work(self, until: float) -> None:
        verbs: list[Callable[[], None]] = [self.count_up, self.swap, self.renew, self.read, self.read, self.look_around]
        while time.time() < until:
            self._chance.choice(verbs)()

    def count_up(self) -> None:
        id = self._one("counter")
        self._call("incr", id, lambda: self._collection.patch(id, [{"op": "incr", "path": "/n", "value": 1}]))

    def swap(self) -> None:
        """Read and replace: only over what was read."""
        document = self._collection.read(self._one("swapped"))
        etag = document["_etag"]
        document["n"] += 1
        self._call("swap", document["id"], lambda: self._collection.replace(document, if_match=etag), before=etag)

    def renew(self) -> None:
        kind = self._chance.choice(["own", "inherits"])
        id = self._one(kind)
        ttl = {"ttl": OWN_TTL} if kind == "own" else {}
        verb = self._chance.choice(["upsert", "create", "touch", "patch"])
        if verb == "touch":
            self._call("touch", id, lambda: self._collection.touch(id))
        elif verb == "patch":
            self._call("patch", id, lambda: self._collection.patch(id, [{"op": "set", "path": "/x", "value": 1}]))
        else:
            self._call(verb, id, lambda: getattr(self._collection, verb)({"id": id, **ttl}))

    def read(self) -> None:
        id = self._one(self._chance.choice(["own", "inherits", "counter", "swapped"]))
        self._call("read", id, lambda: self._collection.read(id))

    def look_around(self) -> None:
        """Iteration sees what reading does."""
        start = time.time()
        found = list(self._collection)
        end = time.time()
        self.events += [Event("read", document["id"], start, end, document["_etag"]) for document in found]

    def _one(self, kind: str) -> str:
        return f"{kind} {self._chance.randrange(DOCUMENTS)}"

    def _call(self, verb: str, id: str, call: Callable[[], Any], before: str | None = None) -> None:
        start = time.time()
        try:
            result = call()["_etag"]
        except REFUSALS:
            result = None
        self.events.append(Event(verb, id, start, time.time(), result, before))


def prepare(path: Target) -> None:
    with ttlstore.open(path) as store:
        collection = store.create_collection("c", default_ttl=DEFAULTS[0])
        for number in range(DOCUMENTS):
            collection.create({"id": f"counter {number}", "n": 0, "ttl": -1})
            collection.create({"id": f"swapped {number}", "n": 0, "ttl": -1})


def join(tell: Tell, path: Target, seed: int, threads: int, seconds: float) -> None:
    with ttlstore.open(path, durability="normal", busy_timeout=60) as store:
        until = time.time() + seconds
        members = [Member(store, seed + number) for number in range(threads)]
        running = [threading.Thread(target=member.work, args=(until,)) for member in members]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
    tell([event for member in members for event in member.events])


def rule(tell: Tell, path: Target, seed: int, seconds: float) -> None:
    """The one that changes the default, and vacuums by hand."""
    chance = random.Random(seed)
    with ttlstore.open(path, durability="normal", busy_timeout=60) as store:
        until = time.time() + seconds
        events = []
        while time.time() < until:
            default_ttl, start = chance.choice(DEFAULTS), time.time()
            store.collection("c").configure(default_ttl=default_ttl)
            events.append(Event("configure", "", start, time.time(), default_ttl))
            store.vacuum()
            threading.Event().wait(0.05 * chance.random())
    tell(events)
