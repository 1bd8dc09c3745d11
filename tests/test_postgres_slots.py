"""Whose turn it is where more threads want a connection than there are."""

import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.test_background_vacuum import until
from ttlstore import Store
from ttlstore.engine.postgres.connections import MAX_CONNECTIONS
from ttlstore.engine.postgres.slots import Slots

PATIENCE_SECONDS = 60


def free(slots: Slots) -> int:
    """How many can be taken."""
    taken = []
    while (slot := slots.take()) is not None:
        taken.append(slot)
    return len(taken)


def test_a_slot_that_is_given_back_goes_to_whoever_waits_and_not_to_whoever_asks_next() -> None:
    slots = Slots(1)
    slot = slots.take()
    assert slot is not None
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(slots.take, PATIENCE_SECONDS)
        until(lambda: len(slots._waiting) == 1)
        slots.give(slot)
        assert slots.take() is None
        assert waiting.result() is not None


def test_those_who_wait_come_in_the_order_in_which_they_asked() -> None:
    slots = Slots(1)
    slot = slots.take()
    assert slot is not None
    came = []

    def wait(number: int) -> None:
        taken = slots.take(PATIENCE_SECONDS)
        assert taken is not None
        came.append(number)
        slots.give(taken)

    threads = [threading.Thread(target=wait, args=(number,)) for number in range(10)]
    for number, thread in enumerate(threads, 1):
        thread.start()
        until(lambda number=number: len(slots._waiting) == number)  # type: ignore[misc]  # bound at once
    slots.give(slot)
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert came == list(range(10))


def test_a_slot_that_nobody_has_any_more_comes_back() -> None:
    slots = Slots(2)
    slots.take()
    assert free(slots) == 2


def test_who_gives_up_waiting_takes_no_slot_from_the_others() -> None:
    slots = Slots(1)
    slot = slots.take()
    assert slot is not None
    assert slots.take(0.01) is None
    slots.give(slot)
    del slot
    assert free(slots) == 1


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no such signals")
def test_an_exception_that_ends_the_wait_takes_no_slot_however_long_it_is_kept() -> None:
    class Alarm(Exception):
        pass

    def ring(*_: object) -> None:
        raise Alarm

    slots = Slots(1)
    slot = slots.take()
    assert slot is not None
    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(Alarm) as kept:
            slots.take(PATIENCE_SECONDS)
    finally:
        signal.signal(signal.SIGALRM, before)
    slots.give(slot)
    del slot
    assert free(slots) == 1, f"though {kept.value!r} knows of all that was there"


def test_more_threads_than_slots_never_have_more_than_there_are_and_lose_none() -> None:
    slots = Slots(3)
    had: list[int] = []
    in_use: set[object] = set()

    def work() -> int:
        times = 0
        for _ in range(500):
            slot = slots.take(PATIENCE_SECONDS)
            if slot is None:
                continue
            in_use.add(slot)
            had.append(len(in_use))
            in_use.remove(slot)
            slots.give(slot)
            del slot
            times += 1
        return times

    with ThreadPoolExecutor(12) as pool:
        times = [each.result() for each in [pool.submit(work) for _ in range(12)]]
    assert times == [500] * 12
    assert max(had) <= 3
    assert free(slots) == 3


def test_no_thread_of_many_is_kept_from_the_store(live: Store) -> None:
    collection = live.create_collection("c")
    collection.create({"id": "a"})
    threads = MAX_CONNECTIONS + 8
    answered = [0] * threads
    everybody, over = threading.Barrier(threads), threading.Event()
    connected = threading.Barrier(MAX_CONNECTIONS)

    def connect(_: int) -> None:
        with live.transaction():
            connected.wait(PATIENCE_SECONDS)

    with ThreadPoolExecutor(MAX_CONNECTIONS) as pool:  # that takes its time, in which those who have one are far ahead
        list(pool.map(connect, range(MAX_CONNECTIONS)))

    def read(number: int) -> None:
        everybody.wait(PATIENCE_SECONDS)
        while not over.is_set():
            collection.read("a")
            answered[number] += 1

    with ThreadPoolExecutor(threads) as pool:
        reading = [pool.submit(read, number) for number in range(threads)]
        until(lambda: max(answered) >= 200)
        over.set()
        for each in reading:
            each.result()
    # By turns: those who were kept out had two, or none, while the others had some thousand.
    assert min(answered) > max(answered) / 4
