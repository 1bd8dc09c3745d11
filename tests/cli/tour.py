"""Records what the commands in the docs print: `python -m tests.cli.tour`, or `make docs`.

In a block of `console`, the lines after `$` are run and what follows each is replaced with what it prints. A page is
one session in a folder of its own, by a clock that `$ sleep 1h` moves. What differs from run to run is made the same.
"""

import os
import re
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from click.testing import CliRunner

from ttlstore.cli import cli
from ttlstore.cli.times import parse_duration
from ttlstore.testing import FakeClock

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [DOCS / "tour.md", DOCS / "cli.md"]
START = 1_893_499_200.0  # the first of January 2030, noon in UTC

SAME_EVERYWHERE = (
    (r'("+_etag"+: ?"+)\w+', r"\g<1>5d0f3c2a9b7e41861"),
    (r"(results?) in (\d+ ms|\d+\.\d s)", r"\1 in 2 ms"),
    (r" in \d+\.\d s( \([\d,]+ a second\))?", " in 0.1 s"),
    (r"SQLite [\d.]+", "SQLite 3.46.1"),
    (r"(?m)^(size +)[\d.]+ KiB(, of which [\d.]+ KiB unused)?", r"\g<1>48.0 KiB"),
    (r"gave [\d.]+ (B|KiB) back", "gave 4.0 KiB back"),
    (r"(schema +)\w+", r"\g<1>0001"),
    (r"(copied .*,) [\d.]+ KiB", r"\1 48.0 KiB"),
)


class Session:
    """A folder, a clock and a user who types."""

    def __init__(self) -> None:
        self.clock = FakeClock(START)

    def type(self, line: str) -> str:
        """What a line of the shell prints: commands with pipes between them, and perhaps a file at the end."""
        words = shlex.split(line)
        file = words.pop() if words[-2:-1] == [">"] else None
        *before, last = _split(words[:-1] if file else words, "|")
        text, shown = "", ""
        for command in before:
            text, errors, _ = self._run(command, text)
            shown += errors
        text, errors, both = self._run(last, text)
        if file:
            Path(file).write_text(text)
        shown += errors if file else both
        for pattern, same in SAME_EVERYWHERE:
            shown = re.sub(pattern, same, shown)
        return "".join(f"{line.rstrip()}\n" for line in shown.splitlines())

    def _run(self, words: list[str], stdin: str) -> tuple[str, str, str]:
        """What a command prints: to stdout, to stderr, and both as a terminal shows them."""
        if words[0] == "sleep":
            self.clock.advance(parse_duration(words[1]))
            return "", "", ""
        if words[0] == "ttlstore":
            result = CliRunner().invoke(cli, words[1:], input=stdin, prog_name="ttlstore")
            if result.exception is not None and not isinstance(result.exception, SystemExit):
                raise result.exception
            return result.stdout, result.stderr, result.output
        stdout = subprocess.run(words, input=stdin, capture_output=True, text=True, check=True).stdout
        return stdout, "", stdout


def _split(words: list[str], separator: str) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for word in words:
        if word == separator:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


@contextmanager
def session() -> Iterator[Session]:
    """A session in a new folder, in UTC."""
    made = Session()
    before = os.getcwd()
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.dict(os.environ, {"TZ": "UTC"}),
        patch("ttlstore.cli.opening.clock", made.clock),
    ):
        for variable in ("TTLSTORE_DB", "COLUMNS"):
            os.environ.pop(variable, None)
        time.tzset()
        os.chdir(folder)
        try:
            yield made
        finally:
            os.chdir(before)
    time.tzset()


def recorded(page: str) -> str:
    """The page, with what its commands print now."""
    with session() as user:
        return re.sub(
            r"^```console\n(.*?)^```$",
            lambda block: f"```console\n{_recorded_block(block[1], user)}```",
            page,
            flags=re.MULTILINE | re.DOTALL,
        )


def _recorded_block(block: str, user: Session) -> str:
    lines = re.findall(r"^\$ (.*)$", block, re.MULTILINE)
    return "".join(f"$ {line}\n{user.type(line)}" for line in lines)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(recorded(page.read_text()))
