"""Servers that crash"""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.faults import works
from tests.faults.ledger import Ledger
from tests.faults.places import Doomed
from tests.faults.trial import Trial, promise
from tests.faults.victim import Victim

NOW = 1_700_000_000.0
CLIENTS = 3


@pytest.fixture
def places(mortal: Any, trial: Trial) -> Iterator[list[Doomed]]:
    """A store for each client, all on one server: of each it is known what must be there."""
    places = [Doomed(trial, mortal) for _ in range(CLIENTS)]
    for place in places:
        with works.opened(place.target, NOW) as store:
            store.create_collection("c", default_ttl=60)
    yield places
    for place in places:
        place.clear()


def failed_calls(client: Victim, place: Doomed) -> int:
    """Kill the client. How many of its calls have failed, if all that it and others found is what was acknowledged."""
    told = place.settled(client.killed_after(0))
    if told[-1][0] == "about to":
        told.append(("lost", told[-1][1]))
    told.append(("found", works.seen_by_another(place.target, NOW), 0))
    ledger, lost, failures = Ledger(default_ttl=60), [], 0
    for word, said, *more in told:
        if word == "done":
            ledger.apply(said, NOW)
        elif word == "lost":
            lost = said
            failures += 1
        elif word == "found":
            if said != numbers(ledger):
                ledger.apply(lost, NOW)
                assert said == numbers(ledger), "what was acknowledged is lost, or a change is half there"
            failures += more[0]
    with works.opened(place.target, NOW, vacuum=False) as store:
        assert store.check() == []
    return failures


def numbers(ledger: Ledger) -> dict[str, int]:
    return {id: document["n"] for id, document in ledger.shown(NOW).items()}


@promise(
    "When a PostgreSQL server crashes under its clients, the calls under way raise ConnectionLost, and the clients go "
    "on as soon as it is back. Nothing that was acknowledged is lost and nothing is half there; a client that was idle "
    "meanwhile notices nothing.",
    share=4,
)
def test_a_server_that_crashes_under_its_clients(places: list[Doomed], trial: Trial) -> None:
    clients = [Victim(works.outlive, place.target, NOW, trial.random.getrandbits(32)) for place in places]
    with works.opened(places[0].target, NOW) as idle:
        for _ in trial.rounds(short=2):
            idle.collection("c").count()
            for client in clients:
                client.listens(0.3 * trial.random.random())
            trial.random.choice(places).crash()
            idle.collection("c").count()
    lost = [failed_calls(client, place) for client, place in zip(clients, places, strict=True)]
    trial.count(calls_failed=sum(lost))


@promise(
    "A client whose connections to PostgreSQL are cut, at whatever moment, raises ConnectionLost once; its next call "
    "works, and nothing acknowledged is lost.",
    share=2,
)
def test_connections_that_are_cut(places: list[Doomed], trial: Trial) -> None:
    place, cuts = places[0], 0
    client = Victim(works.outlive, place.target, NOW, trial.random.getrandbits(32))
    for _ in trial.rounds(short=20):
        client.listens(0.03 * trial.random.random())
        place.cut_connections()
        cuts += 1
    lost = failed_calls(client, place)
    assert 0 < lost <= cuts + 1, "one call of each at most, and the one that was killed"
    trial.count(cuts=cuts, calls_failed=lost)
