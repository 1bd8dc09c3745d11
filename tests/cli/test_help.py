"""Every command explains itself, is on the page about the command line, and answers at once."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from tests.cli.conftest import Run
from ttlstore.cli import COMMANDS, cli

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


def commands(group: click.Group = cli, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    ctx = click.Context(group)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


EVERY = pytest.mark.parametrize(
    ("path", "command"), list(commands()), ids=lambda part: " ".join(part) if isinstance(part, tuple) else ""
)


def parameters(command: click.Command) -> list[click.Parameter]:
    return [param for param in command.params if param.name != "help"]


@EVERY
def test_a_command_says_what_it_does_with_examples(path: tuple[str, ...], command: click.Command) -> None:
    said = command.help or ""
    examples = re.findall(r"^ *(?:.* \| )?(ttlstore .*)$", said.partition("Examples:")[2], re.MULTILINE)
    assert examples
    assert all(example.startswith(f"ttlstore {' '.join(path)}") or path == ("import",) for example in examples)


@EVERY
def test_every_argument_and_option_says_what_it_is(path: tuple[str, ...], command: click.Command) -> None:
    assert [param.name for param in parameters(command) if not getattr(param, "help", None)] == []


@EVERY
def test_the_examples_name_options_that_are_there(path: tuple[str, ...], command: click.Command) -> None:
    known = {flag for _, each in commands() for param in parameters(each) for flag in param.opts}
    assert set(re.findall(r"(?<!\S)--[a-z-]+", command.help or "")) <= known


@EVERY
def test_the_page_has_a_section_with_every_option(path: tuple[str, ...], command: click.Command) -> None:
    section = sections()[" ".join(path)] if len(path) == 1 else sections()[path[0]]
    assert f"ttlstore {' '.join(path)} " in section.replace("\n", " ")
    flags = [param.opts[0] for param in parameters(command) if isinstance(param, click.Option)]
    assert [flag for flag in flags if not re.search(rf"{flag}(?![a-z-])", section)] == []


def test_the_page_has_no_section_about_what_is_not_there() -> None:
    assert set(sections()) == {name for family in COMMANDS.values() for name in family}


def sections() -> dict[str, str]:
    """The parts of the page about a command, by its name."""
    parts = re.split(r"^### `(.+)`$", PAGE.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_option_of_the_whole_program_is_on_the_page() -> None:
    options = [flag for param in cli.params for flag in param.opts]
    assert [flag for flag in options if flag not in PAGE.read_text()] == []


def test_help_imports_nothing_heavy() -> None:
    heavy = {"sqlalchemy", "alembic", "rich", "orjson", "sqlite3", "prompt_toolkit", "matplotlib"}
    for args in (["--help"], ["query", "--help"], ["forecast", "--help"], ["migrate", "upgrade", "--help"]):
        script = (
            "import sys\nfrom ttlstore.cli import cli\n"
            f"cli({args}, standalone_mode=False)\n"
            f"print(sorted({heavy} & set(sys.modules)))"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == "[]", args


def test_a_mistyped_command_is_refused_with_a_suggestion(run: Run) -> None:
    assert "collections" in run("collection", code=2).stderr


def test_version_is_that_of_the_package(run: Run) -> None:
    from importlib.metadata import version

    assert run("--version").stdout == f"ttlstore {version('ttlstore')}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(run: Run, shell: str) -> None:
    assert "_TTLSTORE_COMPLETE" in run("completion", shell).stdout


def completed(*words: str) -> list[str]:
    """What a shell offers for the last of the words."""
    *before, last = words
    found = ShellComplete(cli, {}, "ttlstore", "_TTLSTORE_COMPLETE").get_completions(before, last)
    return [item.value for item in found]


def test_commands_and_options_are_completed() -> None:
    assert completed("co") == ["collections", "copy", "completion"]
    assert completed("ls", "app.db", "carts", "--part") == ["--partition"]


def test_names_of_collections_are_completed(db: str, elsewhere: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert completed("ls", db, "ca") == ["carts"]
    assert completed("ls", db, "x") == []
    assert completed("ls", elsewhere, "ca") == []
    monkeypatch.setenv("TTLSTORE_DB", db)
    assert completed("ls", "ca") == ["carts"]


@pytest.mark.parametrize(
    "words",
    [
        ("ls", "ap"),
        ("backup", "app.db", "co"),
        ("copy", "app.db", "co"),
        ("import", "app.db", "carts", "ca"),
        ("export", "app.db", "carts", "ca"),
        ("put", "app.db", "carts", "ca"),
        ("patch", "app.db", "carts", "c1", "ca"),
        ("import", "app.db", "carts", "--errors", "re"),
        ("forecast", "app.db", "--png", "p"),
        ("migrate", "upgrade", "ap"),
    ],
    ids=" ".join,
)
def test_names_of_files_are_left_to_the_shell(words: tuple[str, ...]) -> None:
    (item,) = ShellComplete(cli, {}, "ttlstore", "_TTLSTORE_COMPLETE").get_completions(list(words[:-1]), words[-1])
    assert item.type == "file"


SECRET = "postgresql://someone:hunter2@127.0.0.1:1/app"


@pytest.mark.parametrize(
    "path", [path for path, command in commands() if not isinstance(command, click.Group)], ids=" ".join
)
def test_a_password_in_a_url_is_never_shown(
    path: tuple[str, ...], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _, command = next(each for each in commands() if each[0] == path)
    names = [param.name for param in command.params if isinstance(param, click.Argument) and param.required]
    if "db" not in names:
        return
    values = {"db": SECRET, "paths": "/a", "mode": "lazy", "revision": "base", "text": "SELECT * FROM c"}
    refused = run(*path, *(values.get(str(name), "x") for name in names), code=1, stdin="y\n")
    assert "hunter2" not in refused.output
