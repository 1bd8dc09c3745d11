"""Cuts a query into tokens: by the terminals of the grammar, and by what can stand at the spot.

Where a token ends does not depend on the spot, only which terminal it is. So one regular expression cuts all of them.
"""

import re
from collections.abc import Container, Iterator
from typing import Final

from ttlstore.query.grammar import END, Grammar

NAME: Final = "NAME"  # what keywords look like
STRAY: Final = "STRAY"  # a character that begins no token


class Lexer:
    def __init__(self, grammar: Grammar) -> None:
        self.keyword: Final = {
            terminal.word: terminal.name for terminal in grammar.terminals if terminal.word is not None
        }
        self._patterns = {
            terminal.name: re.compile(terminal.pattern) for terminal in grammar.terminals if terminal.word is None
        }
        # Possessive: a run of spaces before something unexpected must not be tried in all ways to cut it.
        ignored = f"(?:{'|'.join(grammar.ignored)})*+"
        either = "|".join(f"(?P<{name}>{pattern.pattern})" for name, pattern in self._patterns.items())
        self._ignored = re.compile(ignored)
        self._token = re.compile(rf"(?:{either}|(?P<{END}>\Z)|(?P<{STRAY}>(?s:.))){ignored}")

    def cut(self, text: str) -> Iterator[re.Match[str]]:
        """One match for each token, the last for the end. Its only group is named for the first terminal that fits."""
        return self._token.finditer(text, self._ignored.match(text).end())  # type: ignore[union-attr]  # it fits nothing too

    def fitting(self, terminal: str, piece: str, accepted: Container[str]) -> str:
        """The terminal that can stand here, where more than one can be meant: - is an operator and a sign."""
        if terminal != STRAY:
            for name, pattern in self._patterns.items():
                if name in accepted and pattern.fullmatch(piece):
                    return name
        return terminal
