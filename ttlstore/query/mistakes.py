"""What is wrong with a query, and where: the line with a caret under the spot."""

from ttlstore.errors import QueryError

_WIDTH = 76  # characters of a line that are shown: with what stands around them, a line of a terminal
_NAME = 40  # characters of a name that are shown


class Mistake(Exception):  # it never leaves this package: `located` makes a QueryError of it
    """Something wrong at a place in the text."""

    def __init__(self, at: int, message: str) -> None:
        super().__init__(message)
        self.at = at
        self.message = message


def clipped(name: str) -> str:
    """A name for a message, without its end if it is very long."""
    return name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"


def located(text: str, at: int, message: str) -> QueryError:
    """The error for a user, who sees the spot."""
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    line = text[start:] if end < 0 else text[start:end]
    number, column = text.count("\n", 0, at) + 1, at - start + 1
    shown, caret = _window(line, column - 1)
    error = QueryError(f"line {number}, column {column}: {message}\n  {shown}\n  {' ' * caret}^")
    error.line, error.column = number, column
    return error


def _window(line: str, column: int) -> tuple[str, int]:
    """The part of a line around a column, and where the column is in it."""
    line = "".join(char if char.isprintable() else " " for char in line[: column + _WIDTH])
    first = max(0, column - _WIDTH // 2)
    part = line[first : first + _WIDTH].rstrip()
    lead = "…" if first else ""
    return lead + part + ("…" if first + _WIDTH < len(line) else ""), len(lead) + column - first
