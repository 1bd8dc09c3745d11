"""The command line as a process of its own, on a pseudo-terminal."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

PATIENCE_SECONDS = 20.0  # after which a test fails that waits for an output
AGAIN_SECONDS = 3.0  # after which a person presses a key again

_ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07]*\x07|[@-Z\\^_=>])")


class Terminal:
    """A command that runs on a terminal of its own, with Ctrl-C and all that."""

    def __init__(
        self,
        *args: str,
        columns: int = 100,
        env: dict[str, str] | None = None,
        program: Sequence[str] = ("-m", "ttlstore"),
    ) -> None:
        self._screen, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        # The first terminal that the leader of a session opens is the one whose Ctrl-C it gets.
        self._process = subprocess.Popen(
            ["sh", "-c", 'exec "$@" <"$0" >"$0" 2>&1', os.ttyname(slave), sys.executable, *program, *args],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "TERM": "xterm", "TZ": "UTC", "PROMPT_TOOLKIT_NO_CPR": "1", **(env or {})},
        )
        self._slave = slave  # stays open: what was printed last must not be lost when the command ends
        self.raw = ""
        self._seen = 0  # of the text

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._slave)
        os.close(self._screen)

    @property
    def text(self) -> str:
        """What was printed so far, without colours and the like."""
        return _ESCAPES.sub("", self.raw).replace("\r\n", "\n")

    def type(self, keys: str) -> None:
        os.write(self._screen, keys.encode())

    def see(self, text: str) -> None:
        """Wait until it is there, after what was seen before."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (found := self.text.find(text, self._seen)) < 0:
            assert time.monotonic() < deadline, f"{text!r} is not in {self.text!r}"
            ended = self._process.poll() is not None
            assert self._read() or not ended, f"ended without {text!r}: {self.text!r}"
        self._seen = found + len(text)

    def press_until(self, key: str, text: str) -> None:
        """As a person would, again after a while if nothing comes of it.

        Python's readline misses a Ctrl-C that comes after it has echoed a key and before it waits for the next.
        """
        before = len(self.text)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while text not in self.text[before:]:
            assert time.monotonic() < deadline, f"{text!r} is not in {self.text!r}"
            self.type(key)
            again = time.monotonic() + AGAIN_SECONDS
            while text not in self.text[before:] and time.monotonic() < again:
                self._read()
        self.see(text)

    def exit_code(self) -> int:
        """Wait for the end."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._process.poll() is None:
            assert time.monotonic() < deadline, f"did not end: {self.text!r}"
            self._read()
        while self._read():
            pass
        return self._process.returncode

    def send_signal(self, number: int) -> None:
        self._process.send_signal(number)

    def _read(self) -> bool:
        if not select.select([self._screen], [], [], 0.05)[0]:
            return False
        self.raw += os.read(self._screen, 65536).decode(errors="replace")
        return True
