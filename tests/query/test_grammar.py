"""The language is what Lark reads in grammar.lark, though the parser goes by Lark's table in its own way."""

from collections.abc import Callable
from functools import cache
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from lark import Lark, Token

from tests.query import generating
from ttlstore.query import from_lark, grammar
from ttlstore.query.parser import parse
from ttlstore.query.syntax import Query
from ttlstore.query.tree import TreeBuilder


class AsLarkCallsIt:
    """The builder of the tree, for Lark's own parser, whose tokens are strings that know their place."""

    def __getattr__(self, name: str) -> Callable[[list[Any]], Any]:
        method = getattr(TreeBuilder(), name)
        return lambda children: method(*map(as_ours, children))


def as_ours(child: Any) -> Any:
    return (str(child), child.start_pos) if isinstance(child, Token) else child


@cache
def lark() -> Lark:
    text = from_lark.SOURCE.read_text(encoding="utf-8")
    return Lark(text, parser="lalr", start=list(from_lark.STARTS), transformer=AsLarkCallsIt())


def with_places(node: Any) -> Any:
    """A tree with all that is in it, also what does not count when two are compared."""
    if isinstance(node, tuple):
        return tuple(map(with_places, node))
    slots = getattr(type(node), "__slots__", None)
    if slots is None:
        return type(node), node
    return type(node), *(with_places(getattr(node, slot)) for slot in slots if slot not in ("parameters", "text"))


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(generating.queries)
@example("c.a - -1 + +c.b * - c.c")
@example("SELECT x FROM c.items[0] AS x JOIN y IN x.a JOIN z IN (SELECT VALUE 1) JOIN (SELECT VALUE y) AS w")
@example("SELECT TOP @n VALUE {a: [], 'b': {}, c: [1, 2, 3]} AS named")
@example("c.a NOT IN (1, 2, 3) OR c.a NOT BETWEEN 1 AND 2 AND c.a NOT LIKE 'a!%' ESCAPE '!' ?? NOT c.b")
@example("PI() > 3 AND CONTAINS(c.a, 'b', true) ? ARRAY(SELECT VALUE c.a) : EXISTS(SELECT VALUE c['a'].b.c[0])")
@example(
    "SELECT DISTINCT c.a, COUNT(1) n FROM c WHERE c.b GROUP BY c.a, c.b ORDER BY c.a ASC, c.b DESC OFFSET 1 LIMIT 2"
)
def test_the_parser_builds_what_larks_own_parser_builds(text: str) -> None:
    start = "query" if text.lstrip().upper().startswith("SELECT") else "condition"
    by_lark: Query = lark().parse(text, start=start)  # type: ignore[assignment]  # what the builder of the tree makes
    assert with_places(parse(text)) == with_places(by_lark)


def test_every_rule_has_its_method_in_the_builder_and_every_method_its_rule() -> None:
    methods = {name for name in vars(TreeBuilder) if not name.startswith("_")}
    assert {rule.name for rule in grammar.read().rules if rule.name is not None} == methods


def test_the_table_is_that_of_the_grammar() -> None:
    made = from_lark.as_json(from_lark.worked_out())
    assert made == grammar.TABLE.read_bytes(), "grammar.lark was changed, or Lark was: run `make grammar`"
    assert grammar.read() == from_lark.worked_out()
