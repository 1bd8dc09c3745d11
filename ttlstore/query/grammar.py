"""What Lark makes of grammar.lark: the terminals, the rules, and the table that tells what to do with each token."""

from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Any, Final, NamedTuple

SOURCE: Final = FilePath(__file__).with_name("grammar.lark")
STARTS: Final = ("query", "condition")
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
    """The grammar of the language, worked out."""
    # Not imported above: it takes 40 ms, and working out the table 100 more, which only those wait for who query.
    from lark import Lark
    from lark.lexer import Lexer

    class NoLexer(Lexer):
        """Lark's own would take time to be made; ours is in lexer.py."""

        def __init__(self, conf: object) -> None:
            pass

        def lex(self, lexer_state: object, parser_state: object) -> Iterator[Any]:
            raise NotImplementedError

    lark = Lark(SOURCE.read_text(encoding="utf-8"), parser="lalr", lexer=NoLexer, start=list(STARTS))
    tables: dict[str, Any] = {  # Lark leaves most of it without types
        start: lark.parse_interactive("", start=start).parser_state.parse_conf for start in STARTS
    }
    states = tables[STARTS[0]].states
    number_of_state = {state: number for number, state in enumerate(states)}
    number_of_rule = {rule: number for number, rule in enumerate(lark.rules)}
    actions: tuple[dict[str, int], ...] = tuple({} for _ in states)
    gotos: tuple[dict[str, int], ...] = tuple({} for _ in states)
    for number, row in enumerate(states.values()):
        for symbol, (_, argument) in row.items():
            if argument in number_of_rule:
                actions[number][END if symbol == "$END" else symbol] = ~number_of_rule[argument]
            else:
                (actions if symbol.isupper() else gotos)[number][symbol] = number_of_state[argument]
    for table in tables.values():
        end = number_of_state[table.end_state]
        actions[end][END] = end
    terminals = {terminal.name: terminal for terminal in lark.terminals}
    ignored = tuple(terminals.pop(name).pattern.to_regexp() for name in lark.ignore_tokens)
    in_order = sorted(terminals.values(), key=lambda terminal: (-terminal.priority, -terminal.pattern.max_width))
    return Grammar(
        tuple(map(_terminal, in_order)),
        ignored,
        tuple(map(_rule, lark.rules)),
        actions,
        gotos,
        {start: number_of_state[table.start_state] for start, table in tables.items()},
    )


def _terminal(terminal: Any) -> Terminal:
    word = terminal.pattern.value.upper()
    is_word = terminal.pattern.type == "str" and word.isalpha()
    return Terminal(terminal.name, terminal.pattern.to_regexp(), word if is_word else None)


def _rule(rule: Any) -> Rule:
    """As Lark makes trees: without the symbols that are filtered out, and with None for what is optional."""
    symbols = iter(range(len(rule.expansion)))
    children = [-1 if empty else next(symbols) for empty in rule.options.empty_indices] or list(symbols)
    children = [child for child in children if child < 0 or not _is_filtered_out(rule.expansion[child])]
    spread = [child for child in children if child >= 0 and _is_repetition(rule.expansion[child])]
    passes = rule.options.expand1 and rule.alias is None and len(children) == 1 and not spread
    name = None if passes or _is_repetition(rule.origin) else str(rule.alias or rule.origin.name)
    return Rule(str(rule.origin.name), len(rule.expansion), name, tuple(children), tuple(spread))


def _is_filtered_out(symbol: Any) -> bool:
    return bool(symbol.is_term and symbol.filter_out)


def _is_repetition(symbol: Any) -> bool:
    """Whether it is a part of a rule to which Lark gave a name of its own."""
    return not symbol.is_term and symbol.name.startswith("_")
