"""What a new text costs, shown by how many calls it takes and not by a stopwatch."""

import sys
from collections.abc import Callable

import ttlstore
from ttlstore.query.parser import parse
from ttlstore.unset import UNSET

TYPICAL = "SELECT c.id, c.total FROM c WHERE c.status = @status AND c.total > @least ORDER BY c.total DESC"


def calls(action: Callable[[], object]) -> int:
    """How many functions of Python's are called."""
    count = [0]

    def seen(frame: object, event: str, argument: object) -> None:
        count[0] += event == "call"

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        action()
    finally:
        sys.setprofile(before)
    return count[0]


def test_a_new_text_is_parsed_in_some_calls_for_each_token() -> None:
    parse(TYPICAL)  # the table is made, and where its symbols lead to is known
    assert calls(lambda: parse(f"{TYPICAL} -- new")) <= 100, "by Lark's own parser it was 340"
    assert calls(lambda: parse(TYPICAL)) <= 2


def test_a_value_in_a_condition_does_not_go_through_all_the_rules_it_could_be() -> None:
    def condition(terms: int) -> str:
        return " AND ".join(f"c.a{term} = {term}" for term in range(terms))

    parse(condition(40))
    costs = {terms: calls(lambda it=terms: parse(f"{condition(it)} -- new")) for terms in (20, 40)}  # type: ignore[misc]
    assert costs[40] - costs[20] <= 20 * 20, "by Lark's own parser it was 58 for each term"


def test_a_new_text_is_planned_in_some_calls() -> None:
    with ttlstore.open(":memory:", vacuum=False) as store:
        queries = store.create_collection("orders")._queries

        def ask(text: str) -> None:
            queries.run(text, {"status": "open", "least": 10}, UNSET, scan=False)

        ask(TYPICAL)
        assert calls(lambda: ask(TYPICAL)) <= 30
        assert calls(lambda: ask(f"{TYPICAL} -- another")) <= 275, "it was 554"
