"""Runs over the tokens of a query by the table of the grammar, and builds what they say.

Lark's own does the same in three times the time. Here the symbols that only pass a child on, which is most of what an
operand goes through, are passed over at once: where they lead is remembered by what stands below and what follows.
"""

import sys
from collections.abc import Callable
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from ttlstore.query.grammar import Grammar, Rule
from ttlstore.query.lexer import NAME, Lexer

Token: TypeAlias = tuple[str, int]
"""A piece of the text, and where it stands."""


class Unexpected(Exception):  # it never leaves this package: the parser makes a QueryError of it
    """A token that cannot stand where it stands."""

    def __init__(self, terminal: str, token: Token, expected: set[str]) -> None:
        super().__init__(terminal)
        self.terminal = terminal
        self.token = token
        self.expected = expected


class _Reduction(NamedTuple):
    size: int
    origin: str
    build: Callable[[Any], Any]
    """Of the only value, or of a list of them."""
    jumps: dict[tuple[int, str], tuple[int, int]]
    """Where it leads to, by the state below and the terminal that follows: as far as was asked for."""


_REFUSED: Final = sys.maxsize  # an action, in the place of a state that follows: the terminal cannot stand here


class Automaton:
    def __init__(self, grammar: Grammar, builder: object) -> None:
        self._lexer = Lexer(grammar)
        self._actions = grammar.actions
        self._gotos = grammar.gotos
        self._starts = grammar.starts
        self._passing = {~number for number, rule in enumerate(grammar.rules) if _passes(rule)}
        jumps: dict[str, dict[tuple[int, str], tuple[int, int]]] = {rule.origin: {} for rule in grammar.rules}
        self._reductions = [
            _Reduction(rule.size, rule.origin, _build(rule, builder), jumps[rule.origin])
            for rule in reversed(grammar.rules)  # ~number is an index from the end
        ]

    def tree(self, text: str, start: str) -> Any:
        """What the builder makes of a text. Raises Unexpected, and what the builder raises."""
        actions, reductions = self._actions, self._reductions
        keyword_of = self._lexer.keyword.get
        state = self._starts[start]
        below = list[int]()  # the states before it, one for each value
        values = list[Any]()
        terminals = list[str]()
        for match in self._lexer.cut(text):
            accepted = actions[state]
            terminal: str = match.lastgroup  # type: ignore[assignment]  # one of the groups matches
            piece = match[terminal]
            if terminal == NAME:
                keyword = keyword_of(piece.upper())
                # A keyword out of place is a mistake, not a name, unless nothing but a name can follow.
                if keyword is not None and (keyword in accepted or "LPAR" in accepted or "_AS" in accepted):
                    terminal = keyword
            elif terminal not in accepted:
                terminal = self._lexer.fitting(terminal, piece, accepted)
            action = accepted.get(terminal, _REFUSED)
            while action < 0:
                size, origin, build, jumps = reductions[action]
                if size == 1:
                    values[-1] = build(values[-1])
                else:
                    children = values[-size:]
                    del values[-size:], below[1 - size :]
                    values.append(build(children))
                jump = jumps.get((below[-1], terminal))
                if jump is None:
                    jump = jumps[below[-1], terminal] = self._jump(below[-1], origin, terminal)
                state, action = jump
            if action == _REFUSED:
                raise self._unexpected(start, terminals, terminal, (piece, match.start()))
            below.append(state)
            values.append((piece, match.start()))
            terminals.append(terminal)
            state = action
        return values[0]

    def _jump(self, below: int, symbol: str, terminal: str) -> tuple[int, int]:
        """Where a symbol is more than passed on, and what to do there."""
        while True:
            state = self._gotos[below][symbol]
            action = self._actions[state].get(terminal, _REFUSED)
            if action not in self._passing:
                return state, action
            symbol = self._reductions[action].origin

    def _unexpected(self, start: str, before: list[str], terminal: str, token: Token) -> Unexpected:
        """What could stand there is asked for anew: before it fails, the automaton has closed what it can close."""
        stack = [self._starts[start]]
        for known in before:
            self._shift(stack, known)
        expected = {other for other in self._actions[stack[-1]] if self._shift(stack.copy(), other)}
        return Unexpected(terminal, token, expected)

    def _shift(self, stack: list[int], terminal: str) -> bool:
        """Go on by a terminal, without building anything. False if it cannot stand here."""
        while (action := self._actions[stack[-1]].get(terminal)) is not None:
            if action >= 0:
                stack.append(action)
                return True
            size, origin, _, _ = self._reductions[action]
            del stack[-size:]
            stack.append(self._gotos[stack[-1]][origin])
        return False


def _passes(rule: Rule) -> bool:
    """Whether it changes nothing but the name of a symbol."""
    return rule.size == 1 and rule.name is None and not rule.repeats


def _build(rule: Rule, builder: object) -> Callable[[Any], Any]:
    """What makes a value of those that a rule has matched: of a list of them, or of the only one."""
    assert rule.size, f"{rule.origin} matches nothing: make it optional where it stands"
    if rule.repeats:
        several = _repeated(rule)
    elif rule.name is None:
        several = itemgetter(*rule.children)
    else:
        method = getattr(builder, rule.name)
        if rule.size == 1 and rule.children == (0,):
            return method  # type: ignore[no-any-return]  # one of the builder's
        if rule.size == 1 and rule.children == (0, -1):
            return lambda value: method(value, None)
        several = _called(method, rule)
    return several if rule.size > 1 else lambda value: several([value])


def _repeated(rule: Rule) -> Callable[[list[Any]], list[Any]]:
    """The list of what is repeated, or that list with more."""
    own = rule.children[len(rule.spread) :]
    assert own == tuple(range(own[0], rule.size)), f"{rule.origin}: what is left out must stand before what is repeated"
    more = slice(own[0], None)
    if not rule.spread:
        return itemgetter(more)

    def extended(values: list[Any]) -> list[Any]:
        # In place: a list of thousands would be copied as often.
        found: list[Any] = values[0]
        found += values[more]
        return found

    return extended


def _called(method: Callable[..., Any], rule: Rule) -> Callable[[list[Any]], Any]:
    children, spread = rule.children, rule.spread
    first, *others = children
    if not others and not spread:
        return lambda values: method(values[first])
    if others == list(spread):  # the first, and a repetition
        (repetition,) = spread
        return lambda values: method(values[first], *values[repetition])
    if children == tuple(range(rule.size)) and not spread:
        return lambda values: method(*values)
    if not spread:
        chosen = itemgetter(*children)
        return lambda values: method(*chosen([*values, None]))  # -1 is None

    def call(values: list[Any]) -> Any:
        arguments = list[Any]()
        for child in children:
            if child in spread:
                arguments += values[child]
            else:
                arguments.append(None if child < 0 else values[child])
        return method(*arguments)

    return call
