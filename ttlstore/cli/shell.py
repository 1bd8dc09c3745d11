"""The shell for queries: reads them, over as many lines as they take, and has them run."""

import atexit
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import click

from ttlstore.cli.collections import format_indexing
from ttlstore.cli.output import counted, json_text, message, show, show_facts
from ttlstore.cli.times import format_default_ttl
from ttlstore.errors import TtlStoreError

if TYPE_CHECKING:
    from ttlstore.collection import Collection

HISTORY_LINES = 1000
DESCRIBED_DOCUMENTS = 20  # whose properties are shown

HELP = """\
SELECT * FROM c WHERE c.total > 10;   a query runs when a line ends in a semicolon
c.total > 10;                         and so does a condition
\\d   describe the collection and its documents
\\?   this help
\\q   leave; so does Ctrl-D, while Ctrl-C stops a query"""


class Reader(Protocol):
    def __call__(self) -> str:
        """The next input, complete. Raises EOFError at the end, KeyboardInterrupt after Ctrl-C."""


def is_complete(text: str) -> bool:
    """Whether there is nothing to wait for: a query ends in a semicolon, a command is a line."""
    stripped = text.strip()
    return not stripped or stripped.startswith("\\") or stripped.endswith(";")


class Shell:
    """A conversation about one collection."""

    def __init__(self, collection: "Collection", run: Callable[[str], None]) -> None:
        self._collection = collection
        self._run = run

    def run(self) -> None:
        read = _reader(f"{self._collection.name}> ")
        click.echo(f"queries on {self._collection.name!r}; \\? for help, \\q to leave", err=True)
        while True:
            try:
                text = read().strip()
                if text == "\\q":
                    return
                self._answer(text)
            except KeyboardInterrupt:
                click.echo("", err=True)
            except EOFError:
                click.echo("", err=True)
                return
            except TtlStoreError as error:
                click.echo(f"Error: {message(error)}", err=True)

    def _answer(self, text: str) -> None:
        match text:
            case "\\d":
                self._describe()
            case "\\?":
                click.echo(HELP)
            case _ if text.startswith("\\"):
                click.echo(f"there is no {text}; \\? lists what there is", err=True)
            case _ if text not in ("", ";"):
                self._run(text)

    def _describe(self) -> None:
        collection = self._collection
        indexing, stats = collection.indexing, collection.stats()
        show_facts(
            {
                "collection": collection.name,
                "TTL": format_default_ttl(collection.default_ttl),
                "partition key": collection.partition_key,
                "indexing": format_indexing(indexing.mode, indexing.paths),
                "live": counted(stats.live_documents, "document"),
            }
        )
        kinds: dict[str, dict[str, None]] = {}
        for document, _ in collection.newest(limit=DESCRIBED_DOCUMENTS):
            for name, value in document.items():
                kinds.setdefault(name, {})[_kind(value)] = None
        if kinds:
            click.echo("")
        show(
            ({"property": _path(name), "of the newest documents": ", ".join(kind)} for name, kind in kinds.items()),
            "table",
            dict,
            empty="no documents yet",
        )


def _path(name: str) -> str:
    return f"c.{name}" if name.isidentifier() else f"c[{json_text(name)}]"


def _kind(value: object) -> str:
    """The name of a type as JSON has it."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


# --- how a line is read -----------------------------------------------------------------------------------------------


def _reader(prompt: str) -> Reader:
    """By prompt_toolkit if it is installed (the extra `shell`), else by what Python has."""
    try:
        return _prompt_toolkit_reader(prompt, history_file("history"))
    except ModuleNotFoundError:
        return _plain_reader(prompt, history_file("history.readline"))  # whose format is another


def history_file(name: str) -> str | None:
    """Where the history is kept; None: nowhere."""
    folder = click.get_app_dir("ttlstore")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError:
        return None
    return os.path.join(folder, name) if os.access(folder, os.W_OK) else None


def _prompt_toolkit_reader(prompt: str, history: str | None) -> Reader:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.application import get_app
    from prompt_toolkit.filters import Condition
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    session: PromptSession[str] = PromptSession(
        prompt,
        history=FileHistory(history) if history else InMemoryHistory(),
        # Enter adds a line until the text is complete.
        multiline=Condition(lambda: not is_complete(get_app().current_buffer.text)),
        prompt_continuation=_continuation(prompt),
    )
    return session.prompt


def _plain_reader(prompt: str, history: str | None) -> Reader:
    _edit_lines(history)

    def read() -> str:
        lines = [input(prompt)]
        while not is_complete("\n".join(lines)):
            lines.append(input(_continuation(prompt)))
        return "\n".join(lines)

    return read


def _continuation(prompt: str) -> str:
    return "-> ".rjust(len(prompt))


def _edit_lines(history: str | None) -> None:
    """Have input() edit lines and keep a history, where Python has what that takes."""
    try:
        import readline
    except ModuleNotFoundError:  # on Windows
        return
    readline.set_history_length(HISTORY_LINES)
    if history is None:
        return
    if os.path.exists(history):
        readline.read_history_file(history)
    atexit.register(readline.write_history_file, history)
