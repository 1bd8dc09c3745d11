"""The shell for queries, on a terminal."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import ttlstore
from tests.cli.terminal import Terminal
from tests.postgres import Server
from ttlstore.cli.shell import history_file, is_complete

# As where the extra `shell` is not installed.
WITHOUT_PROMPT_TOOLKIT = "import sys; sys.modules['prompt_toolkit'] = None; from ttlstore.start import main; main()"


@pytest.fixture(scope="module", params=["prompt_toolkit", "readline"])
def program(request: pytest.FixtureRequest) -> list[str]:
    return ["-m", "ttlstore"] if request.param == "prompt_toolkit" else ["-c", WITHOUT_PROMPT_TOOLKIT]


@pytest.fixture(scope="module")
def filled(kind: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[str]:
    with ExitStack() as places:
        if kind == "file":
            target = str(tmp_path_factory.mktemp("shell") / "app.db")
        else:
            postgres: Server = request.getfixturevalue("postgres")
            target = postgres.store_url(places.enter_context(postgres.schema()))
        with ttlstore.open(target) as store:
            carts = store.create_collection("carts", default_ttl=3600)
            carts.create_many({"id": f"c{n}", "total": n, "my note": None} for n in range(3))
        yield target


@pytest.fixture(scope="module")
def conversation(filled: str, program: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    home = str(tmp_path_factory.mktemp("home"))
    with Terminal("query", filled, "carts", program=program, env={"HOME": home}) as terminal:
        terminal.see(r"queries on 'carts'; \? for help, \q to leave")
        yield terminal


@pytest.fixture
def shell(conversation: Terminal) -> Terminal:
    """A shell that waits for input."""
    conversation.see("carts>")
    return conversation


def test_a_query_may_take_several_lines(shell: Terminal) -> None:
    shell.type("SELECT VALUE c.id\r")
    shell.see("->")
    shell.type("FROM c WHERE c.total > 1;\r")
    shell.see("c2")
    shell.see("1 result in ")


def test_a_mistake_does_not_end_the_shell(shell: Terminal) -> None:
    shell.type("SELECT * FORM c;\r")
    shell.see("Error: line 1, column 10: ")
    shell.see("carts>")
    shell.type("c.total >= 1;\r")
    shell.see("2 results in ")


def test_a_command_that_is_not_there_is_refused(shell: Terminal) -> None:
    shell.type("\\nope\r")
    shell.see("there is no \\nope; \\? lists what there is")


def test_the_shell_describes_the_collection(shell: Terminal) -> None:
    shell.type("\\d\r")
    shell.see("live           3 documents")
    shell.see('c["my note"]  null')


def test_the_shell_explains_itself(shell: Terminal) -> None:
    shell.type("\\?\r")
    shell.see("a query runs when a line ends in a semicolon")


def test_an_empty_line_asks_again(shell: Terminal) -> None:
    shell.type("\r")
    shell.see("carts>")
    shell.type(";\r")


def test_ctrl_c_clears_the_line_and_stays(shell: Terminal) -> None:
    shell.type("SELECT nonsense")
    shell.see("nonsense")
    shell.press_until("\x03", "carts>")
    shell.type("SELECT VALUE COUNT(1) FROM c;\r")
    shell.see("1 result in ")


def test_the_next_shell_remembers(filled: str, program: list[str], tmp_path: Path) -> None:
    for first, leave in (("SELECT VALUE 41 + 1;\r", "\x04"), ("\x1b[A\r", "\\q\r")):
        with Terminal("query", filled, "carts", program=program, env={"HOME": str(tmp_path)}) as shell:
            shell.see("carts>")
            shell.type(first)
            shell.see("42")
            shell.see("carts>")
            shell.type(leave)
            assert shell.exit_code() == 0


def test_a_history_is_for_its_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    file = history_file("history")
    assert file is not None
    assert Path(file).parent.stat().st_mode & 0o777 == 0o700


def test_a_home_that_cannot_be_written_has_no_history(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/dev/null")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    assert history_file("history") is None


@pytest.mark.parametrize(
    ("text", "complete"),
    [("", True), ("  \n", True), ("\\d", True), ("SELECT 1;", True), ("SELECT 1; \n", True), ("SELECT 1", False)],
)
def test_a_query_is_complete_with_its_semicolon(text: str, complete: bool) -> None:
    assert is_complete(text) is complete
