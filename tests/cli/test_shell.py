"""The shell for queries, on a terminal."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import ttlstore
from tests.cli.terminal import Terminal
from ttlstore.cli.shell import is_complete

# As where the extra `shell` is not installed.
WITHOUT_PROMPT_TOOLKIT = "import sys; sys.modules['prompt_toolkit'] = None; from ttlstore.cli import main; main()"


@pytest.fixture(params=["prompt_toolkit", "readline"])
def program(request: pytest.FixtureRequest) -> list[str]:
    return ["-m", "ttlstore"] if request.param == "prompt_toolkit" else ["-c", WITHOUT_PROMPT_TOOLKIT]


@pytest.fixture
def filled(db: str) -> str:
    with ttlstore.open(db) as store:
        store.collection("carts").create_many({"id": f"c{n}", "total": n, "my note": None} for n in range(3))
    return db


@pytest.fixture
def shell(filled: str, program: list[str], tmp_path: Path) -> Iterator[Terminal]:
    with Terminal("query", filled, "carts", program=program, env={"HOME": str(tmp_path)}) as terminal:
        terminal.see(r"queries on 'carts'; \? for help, \q to leave")
        terminal.see("carts> ")
        yield terminal


def test_a_query_may_take_several_lines(shell: Terminal) -> None:
    shell.type("SELECT VALUE c.id\r")
    shell.see("-> ")
    shell.type("FROM c WHERE c.total > 0;\r")
    shell.see("2 results in ")
    shell.type("\\q\r")
    assert shell.exit_code() == 0
    assert "c1" in shell.text
    assert "c0" not in shell.text


def test_a_mistake_does_not_end_the_shell(shell: Terminal) -> None:
    shell.type("SELECT * FORM c;\r")
    shell.see("Error: line 1, column 10: ")
    shell.type("\\nope\r")
    shell.see("there is no \\nope")
    shell.type("c.total = 2;\r")
    shell.see("1 result in ")
    shell.type("\x04")
    assert shell.exit_code() == 0


def test_the_shell_describes_the_collection_and_itself(shell: Terminal) -> None:
    shell.type("\\d\r")
    shell.see("live           3 documents")
    shell.see('c["my note"]  null')
    shell.type("\\?\r")
    shell.see("a query runs when a line ends in a semicolon")


def test_ctrl_c_clears_the_line_and_stays(shell: Terminal) -> None:
    shell.type("SELECT nonsense")
    shell.see("nonsense")
    shell.type("\x03")
    shell.type("SELECT VALUE COUNT(1) FROM c;\r")
    shell.see("1 result in ")
    shell.type("\\q\r")
    assert shell.exit_code() == 0


def test_the_next_shell_remembers(filled: str, program: list[str], tmp_path: Path) -> None:
    for keys in ("SELECT VALUE 41 + 1;\r\\q\r", "\x1b[A\x1b[A\r\\q\r"):
        with Terminal("query", filled, "carts", program=program, env={"HOME": str(tmp_path)}) as shell:
            shell.see("carts> ")
            shell.type(keys)
            assert shell.exit_code() == 0
            assert "42" in shell.text


def test_a_home_that_cannot_be_written_is_no_obstacle(filled: str, program: list[str]) -> None:
    with Terminal("query", filled, "carts", program=program, env={"HOME": "/dev/null"}) as shell:
        shell.see("carts> ")
        shell.type("SELECT VALUE 41 + 1;\r\\q\r")
        assert shell.exit_code() == 0
        assert "42" in shell.text


@pytest.mark.parametrize(
    ("text", "complete"),
    [("", True), ("  \n", True), ("\\d", True), ("SELECT 1;", True), ("SELECT 1; \n", True), ("SELECT 1", False)],
)
def test_a_query_is_complete_with_its_semicolon(text: str, complete: bool) -> None:
    assert is_complete(text) is complete
