"""Tables that fit the screen: columns that need it are wrapped or cut, and below that records are shown one by one."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType

Row = Mapping[str, Any]

GAP = 2  # columns of the screen between two of the table
NARROW = 16  # what a column that is wrapped or cut must have at least


class Wrapped(str):
    """A text that may go on in the next line where the screen is too narrow."""


class RightAligned(str):
    """A text that stands to the right of its column, as numbers do."""


class Cut(str):
    """A text whose end may be left out where the screen is too narrow."""


def table(rows: Sequence[Row], width: int) -> "RenderableType":
    """A table of texts and, to the right of their columns, numbers; by the titles of the first row."""
    from rich import box
    from rich.table import Table

    widths = _widths(rows, width)
    if widths is None:
        return _one_by_one(rows)
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0))
    for title, fitting in zip(rows[0], widths, strict=True):
        value = _typical(rows, title)
        made.add_column(
            cell(title),
            width=fitting,
            justify="right" if isinstance(value, int | RightAligned) else "left",
            no_wrap=isinstance(value, Cut),
            overflow="ellipsis" if isinstance(value, Cut) else "fold",
        )
    for row in rows:
        made.add_row(*map(cell, row.values()))
    return made


def _typical(rows: Sequence[Row], title: str) -> object:
    """The cell that says how its column is set: one that may be wrapped, else the first that is not empty."""
    cells = [row[title] for row in rows if row[title] != ""]
    return next((cell for cell in cells if isinstance(cell, Wrapped)), cells[0] if cells else "")


def _widths(rows: Sequence[Row], width: int) -> list[int] | None:
    """The widths of the columns; None: they cannot fit. Each has what it must have, and they share the rest."""
    from rich.cells import cell_len

    wanted, needed = [], []
    for title in rows[0]:
        typical = _typical(rows, title)
        texts = [cell(row[title]) for row in rows]
        wanted.append(max(map(cell_len, (cell(title), *texts))))
        words = [cell_len(word) for word in cell(title).split()]
        if isinstance(typical, Wrapped):
            words += [min(cell_len(word), NARROW) for text in texts for word in text.split()]
        elif isinstance(typical, Cut):
            words.append(min(wanted[-1], NARROW))
        else:
            words += map(cell_len, texts)
        needed.append(max(words, default=0))
    spare = width - sum(needed) - GAP * (len(needed) - 1)
    if spare < 0:
        return None
    widths = needed
    while spare and (growing := [index for index, width in enumerate(widths) if width < wanted[index]]):
        share = max(spare // len(growing), 1)
        for index in growing:
            more = min(share, spare, wanted[index] - widths[index])
            widths[index] += more
            spare -= more
    return widths


def _one_by_one(rows: Sequence[Row]) -> str:
    return "\n\n".join("\n".join(facts(row)) for row in rows)


def facts(row: Row) -> list[str]:
    """Named values, a line each."""
    width = max(len(cell(name)) for name in row)
    return [f"{cell(name):<{width}}  {cell(value)}" for name, value in row.items()]


def cell(value: object) -> str:
    """A value as it is shown: harmless on a terminal, whatever a document contains."""
    text = f"{value:,}" if isinstance(value, int) else str(value)
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
