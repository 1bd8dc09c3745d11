"""Cuts a query into tokens: by the terminals of the grammar, and by what the parser can take next.

Lark's own contextual lexer does the same in three times the time. It counts lines, which only errors need, and its
tokens are strings with nine attributes.
"""

import re
from collections.abc import Iterator
from typing import Any, ClassVar

from lark import UnexpectedCharacters
from lark.lexer import Lexer, PatternStr


class Token:
    """A piece of the text that is one terminal."""

    __slots__ = ("start_pos", "text", "type")

    # Lark copies these from the last token to the one it makes for the end.
    line: ClassVar[None] = None
    column: ClassVar[None] = None
    end_line: ClassVar[None] = None
    end_column: ClassVar[None] = None
    end_pos: ClassVar[None] = None

    def __init__(self, type: str, text: str, start_pos: int) -> None:
        self.type = type
        self.text = text
        self.start_pos = start_pos


class QueryLexer(Lexer):
    __future_interface__ = 2  # what `lex` gets: the states of lexer and parser

    def __init__(self, conf: Any) -> None:
        terminals = {terminal.name: terminal for terminal in conf.terminals}
        ignored = "|".join(terminals.pop(name).pattern.to_regexp() for name in conf.ignore)
        words = {
            name: terminal.pattern.value.upper()
            for name, terminal in terminals.items()
            if isinstance(terminal.pattern, PatternStr) and terminal.pattern.value.isalpha()
        }
        self._keywords = {word: name for name, word in words.items()}
        others = [terminal for name, terminal in terminals.items() if name not in words]
        others.sort(key=lambda terminal: (-terminal.priority, -terminal.pattern.max_width))
        self._patterns = {terminal.name: re.compile(terminal.pattern.to_regexp()) for terminal in others}
        either = "|".join(f"(?P<{name}>{pattern.pattern})" for name, pattern in self._patterns.items())
        # Possessive: a run of spaces before something unexpected must not be tried in all ways to cut it.
        self._ignored = re.compile(f"(?:{ignored})*+")
        self._token = re.compile(rf"{self._ignored.pattern}(?:{either}|(?P<END>\Z))")

    def lex(self, lexer_state: Any, parser_state: Any) -> Iterator[Any]:
        text: str = lexer_state.text.text
        states, stack = parser_state.parse_conf.states, parser_state.state_stack
        match_at, keyword_of = self._token.match, self._keywords.get
        position = 0
        while True:
            match = match_at(text, position)
            if match is None:
                raise self._stray(text, position)
            kind: str = match.lastgroup  # type: ignore[assignment]  # one of the groups matches
            if kind == "END":
                return
            piece, start, position = match[kind], match.start(kind), match.end()
            accepted = states[stack[-1]]
            if kind == "NAME":
                keyword = keyword_of(piece.upper())
                # A keyword out of place is a mistake, not a name, unless nothing but a name can follow.
                if keyword is not None and (keyword in accepted or "LPAR" in accepted or "_AS" in accepted):
                    kind = keyword
            elif kind not in accepted:
                kind = self._fitting(piece, kind, accepted)
            yield Token(kind, piece, start)

    def _fitting(self, piece: str, kind: str, accepted: Any) -> str:
        """The terminal that the parser can take, where more than one can be meant: - is an operator and a sign."""
        for name, pattern in self._patterns.items():
            if name in accepted and pattern.fullmatch(piece):
                return str(name)
        return kind

    def _stray(self, text: str, position: int) -> UnexpectedCharacters:
        """The error for characters that are no token."""
        skipped = self._ignored.match(text, position)
        at = position if skipped is None else skipped.end()
        return UnexpectedCharacters(text, at, 0, 0)  # type: ignore[no-untyped-call]  # Lark's
