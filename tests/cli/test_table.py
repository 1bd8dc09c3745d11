import io
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from ttlstore.cli.table import Cut, RightAligned, Wrapped, table

TEXTS = st.text(max_size=60)
CELLS = st.one_of(TEXTS.map(Wrapped), TEXTS.map(Cut), st.text(max_size=9), st.integers(0, 10**6))


def printed(rows: list[dict[str, Any]], width: int) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, highlight=False, markup=False, emoji=False).print(table(rows, width))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_numbers_stand_to_the_right_and_texts_to_the_left() -> None:
    assert printed(
        [{"name": "a", "n": 1, "m": RightAligned("2.5")}, {"name": "long", "n": 1000, "m": RightAligned("1")}], 80
    ) == [
        "name      n    m",
        "────────────────",
        "a         1  2.5",
        "long  1,000    1",
    ]


def test_a_long_text_is_wrapped_between_words_or_cut() -> None:
    assert printed([{"id": "a", "text": Wrapped("one two three four five")}], 20)[2:] == [
        "a   one two three",
        "    four five",
    ]
    assert printed([{"id": "a", "text": Cut("one two three four five")}], 20)[2:] == ["a   one two three f…"]


def test_a_column_is_set_by_what_it_holds_not_by_its_first_cell() -> None:
    rows: list[dict[str, Any]] = [
        {"a": "", "b": ""},
        {"a": RightAligned("1000"), "b": RightAligned("7")},
        {"a": "", "b": Wrapped("two words")},
    ]
    assert printed(rows, 80)[2:] == ["", "1000  7", "      two words"]
    assert printed(rows, 11)[2:] == ["", "1000  7", "      two", "      words"]


def test_long_texts_share_the_room() -> None:
    row = {"first": Wrapped("one " * 9), "n": 1, "second": Wrapped("two " * 9)}
    assert printed([row], 44)[2:] == [
        "one one one one one  1  two two two two two",
        "one one one one         two two two two",
    ]


def test_a_screen_that_is_too_narrow_shows_the_values_one_by_one() -> None:
    assert printed([{"name": "a", "size": "1,000,000"}, {"name": "b", "size": "2"}], 12) == [
        "name  a",
        "size",
        "1,000,000",
        "",
        "name  b",
        "size  2",
    ]


def test_what_has_no_width_or_controls_the_terminal_is_written_out() -> None:
    assert printed([{"\x1b": "\x1b[31m\u202e\n"}], 80) == [r"\x1b", "─" * 16, r"\x1b[31m\u202e\n"]


@given(
    rows=st.lists(st.fixed_dictionaries({"first": CELLS, "second": CELLS, "third": CELLS}), min_size=1, max_size=4),
    width=st.integers(10, 90),
)
def test_no_line_is_wider_than_the_screen(rows: list[dict[str, Any]], width: int) -> None:
    assert max(map(cell_len, printed(rows, width))) <= width
