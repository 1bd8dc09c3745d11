"""The order of results: by ORDER BY, beside conditions or not, whatever serves it and however often it is asked."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.query.test_plan import check_both_ways
from ttlstore import IndexingPolicy, Store
from ttlstore.testing import FakeClock

LONG = "x" * 120
# Few enough that some are often the same. What is longer than an index holds; and what is as long, and is no string.
VALUES: list[Any] = ["", "open", LONG, LONG + "a", '"' * 60, 1, -2.5, True, None, ["s"], [LONG], {"a": 1}, {"a": LONG}]
UNINDEXED, *INDEXED = [
    IndexingPolicy(),
    IndexingPolicy(paths=("/s",)),
    IndexingPolicy(paths=("/s", "/n")),
    IndexingPolicy(paths=(("/s", "/n"),)),
    IndexingPolicy(paths=(("/n", "/s"),)),
    IndexingPolicy(paths=(("/s", "/n", "/k"), "/k")),
]

values = st.sampled_from(VALUES)
bodies = st.fixed_dictionaries({}, optional={"s": values, "n": values, "k": values})
equalities = st.lists(st.tuples(st.sampled_from("snk"), values), max_size=2, unique_by=lambda pair: pair[0])
orders = st.lists(
    st.tuples(st.sampled_from("snk"), st.sampled_from(["", " DESC"])), max_size=3, unique_by=lambda pair: pair[0]
)


@st.composite
def queries(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """Equality with some values, and an order by some paths: the same ones, or others."""
    parameters = {name: value for name, value in draw(equalities) if type(value) not in (list, dict)}
    conditions = [f"c.{name} = @{name}" for name in parameters] + draw(st.sampled_from([[], ["ABS(1) = 1"]]))
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    by = ", ".join(f"c.{name}{direction}" for name, direction in draw(orders))
    window = draw(st.sampled_from(["", "", " OFFSET 1 LIMIT 3"]))
    return f"SELECT VALUE c.id FROM c{where}{f' ORDER BY {by}' if by else ''}{window}", parameters


@settings(max_examples=60)
@given(
    documents=st.lists(bodies, min_size=6, max_size=14),
    asked=st.lists(queries(), min_size=3, max_size=6),
    policy=st.sampled_from([UNINDEXED, *INDEXED]),
    size=st.integers(1, 4),
)
def test_results_come_in_the_same_order_by_an_index_or_without(
    store: Store,
    clock: FakeClock,
    documents: list[dict[str, Any]],
    asked: list[tuple[str, dict[str, Any]]],
    policy: IndexingPolicy,
    size: int,
) -> None:
    check_both_ways(store, clock, documents, asked, policy, None, size)


@pytest.mark.parametrize("policy", [UNINDEXED, INDEXED[0]], ids=["unindexed", "indexed"])
@pytest.mark.parametrize("kind_of_value", [list, lambda text: {"a": text}, str], ids=["arrays", "objects", "strings"])
def test_what_is_equal_comes_in_the_order_of_writing_however_long_it_is(
    store: Store, clock: FakeClock, kind_of_value: Any, policy: IndexingPolicy
) -> None:
    texts = ["x" * (200 if number % 2 and kind_of_value is not str else 3) for number in range(12)]
    documents = [{"s": [text] if kind_of_value is list else kind_of_value(text)} for text in texts]
    asked: list[tuple[str, dict[str, Any]]] = [
        (f"SELECT {top}VALUE c.id FROM c ORDER BY c.s{direction}", {})
        for top, direction in product(("", "TOP 3 "), ("", " DESC"))
    ]
    check_both_ways(store, clock, documents, asked, policy, None, 2)


@pytest.mark.parametrize("policy", [UNINDEXED, *INDEXED])
def test_the_direction_counts_of_what_has_one_value_only(
    store: Store, clock: FakeClock, policy: IndexingPolicy
) -> None:
    asked: list[tuple[str, dict[str, Any]]] = [
        (f"SELECT VALUE c.id FROM c WHERE {where} ORDER BY {by}{window}", {})
        for where, by, window in product(
            ("c.s = 'open'", "c.s = 'open' AND c.n = 1", "c.s = 'open' AND ABS(c.n) > -1"),
            ("c.s DESC", "c.n, c.s DESC", "c.n DESC, c.s", "c.n DESC, c.s DESC"),
            ("", " OFFSET 2 LIMIT 3"),
        )
    ]
    check_both_ways(store, clock, [{"s": "open", "n": 1}] * 9, asked, policy, None, 2)
