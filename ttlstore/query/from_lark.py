"""Makes grammar.json of grammar.lark, for those who change the language: `make grammar`. The store needs no Lark.

The same grammar makes the same file, so that a change of it shows what it changes.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any, Final

import orjson
from lark import Lark
from lark.lexer import Lexer

from ttlstore.query.grammar import END, TABLE, Grammar, Rule, Terminal

SOURCE: Final = FilePath(__file__).with_name("grammar.lark")
STARTS: Final = ("query", "condition")


class _NoLexer(Lexer):
    """Ours is in lexer.py."""

    def __init__(self, conf: object) -> None:
        pass

    def lex(self, lexer_state: object, parser_state: object) -> Iterator[Any]:
        raise NotImplementedError


def worked_out() -> Grammar:
    lark = Lark(SOURCE.read_text(encoding="utf-8"), parser="lalr", lexer=_NoLexer, start=list(STARTS))
    tables: dict[str, Any] = {  # Lark leaves most of it without types
        start: lark.parse_interactive("", start=start).parser_state.parse_conf for start in STARTS
    }
    states = _in_order(tables[STARTS[0]].states, [table.start_state for table in tables.values()])
    rules = sorted(lark.rules, key=str)
    number_of_state = {state: number for number, state in enumerate(states)}
    number_of_rule = {rule: number for number, rule in enumerate(rules)}
    actions: tuple[dict[str, int], ...] = tuple({} for _ in states)
    gotos: tuple[dict[str, int], ...] = tuple({} for _ in states)
    for number, row in enumerate(states.values()):
        for symbol, (_, argument) in sorted(row.items()):
            if argument in number_of_rule:
                actions[number][END if symbol == "$END" else symbol] = ~number_of_rule[argument]
            else:
                (actions if symbol.isupper() else gotos)[number][symbol] = number_of_state[argument]
    for table in tables.values():
        end = number_of_state[table.end_state]
        actions[end][END] = end
    terminals = {terminal.name: terminal for terminal in lark.terminals}
    ignored = tuple(terminals.pop(name).pattern.to_regexp() for name in lark.ignore_tokens)
    return Grammar(
        tuple(map(_terminal, sorted(terminals.values(), key=_turn))),
        ignored,
        tuple(map(_rule, rules)),
        actions,
        gotos,
        {start: number_of_state[table.start_state] for start, table in tables.items()},
    )


def as_json(grammar: Grammar) -> bytes:
    """A line for each of its parts, as `grammar.read` takes them."""
    parts = [
        b"[\n" + b",\n".join(map(orjson.dumps, part)) + b"\n]" if isinstance(part, tuple) else orjson.dumps(part)
        for part in map(_plain, grammar)
    ]
    return b"[" + b",\n".join(parts) + b"]\n"


def _plain(part: Any) -> Any:
    """Tuples with names are not JSON, plain ones are."""
    return tuple(tuple(each) if isinstance(each, tuple) else each for each in part) if isinstance(part, tuple) else part


def _in_order(states: Mapping[Any, Mapping[str, Any]], starts: list[Any]) -> dict[Any, Mapping[str, Any]]:
    """The states as they are come to from the starts: Lark has them in another order each time."""
    found = dict.fromkeys(starts)
    waiting = list(starts)
    for state in waiting:
        for _, (_, argument) in sorted(states[state].items()):
            if argument in states and argument not in found:
                found[argument] = None
                waiting.append(argument)
    return {state: states[state] for state in found}


def _turn(terminal: Any) -> tuple[Any, ...]:
    """When it is to be tried: what matters more, and then what may be longer, is tried before the others."""
    return -terminal.priority, -terminal.pattern.max_width, terminal.name


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


if __name__ == "__main__":
    TABLE.write_bytes(as_json(worked_out()))
