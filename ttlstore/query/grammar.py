"""What Lark makes of grammar.lark: the terminals, the rules, and the table that tells what to do with each token.

It is made ahead, by `make grammar`, and kept in grammar.json: to work it out takes Lark 150 ms, to read it one.
"""

from pathlib import Path as FilePath
from typing import Final, NamedTuple

import orjson

TABLE: Final = FilePath(__file__).with_name("grammar.json")
END: Final = "END"  # the terminal after the last


class Terminal(NamedTuple):
    name: str
    pattern: str
    """A regular expression."""
    word: str | None
    """The keyword in capitals, if it is one."""


class Rule(NamedTuple):
    """What is made of the symbols that a rule matches."""

    origin: str
    """The symbol that it makes of them."""
    size: int
    """How many symbols it matches."""
    name: str | None
    """Of the builder's method that takes the children; None: the only child is passed on, of a repetition all are."""
    children: tuple[int, ...]
    """Which of the symbols; -1 stands for one that was left out, and is None."""
    spread: tuple[int, ...]
    """Those of them that are repetitions: each is several children."""

    @property
    def repeats(self) -> bool:
        return self.origin.startswith("_")


class Grammar(NamedTuple):
    terminals: tuple[Terminal, ...]
    """In the order in which they are to be tried."""
    ignored: tuple[str, ...]
    """The patterns of what may stand between them."""
    rules: tuple[Rule, ...]
    actions: tuple[dict[str, int], ...]
    """By state and terminal: the state that follows on the terminal, or ~n to reduce by rule n first."""
    gotos: tuple[dict[str, int], ...]
    """By state and symbol: the state that follows when a rule has made the symbol."""
    starts: dict[str, int]
    """The state to begin with, by symbol. The state after the whole takes END."""


def read() -> Grammar:
    """The grammar of the language."""
    terminals, ignored, rules, actions, gotos, starts = orjson.loads(TABLE.read_bytes())
    return Grammar(
        tuple(Terminal(*terminal) for terminal in terminals),
        tuple(ignored),
        tuple(
            Rule(origin, size, name, tuple(children), tuple(spread)) for origin, size, name, children, spread in rules
        ),
        tuple(actions),
        tuple(gotos),
        starts,
    )
