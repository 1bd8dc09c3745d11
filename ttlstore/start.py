"""Where the command line starts: little enough to be ready for Ctrl-C before anything large is imported."""

import io
import os
import signal
import sys
from types import FrameType

INTERRUPTED = 130  # the exit code of a program that Ctrl-C ended, by the shells' convention


def main() -> None:
    """Run the command line."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not in the background, where it is ignored
        signal.signal(signal.SIGINT, _interrupt)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # not closed, nor of another kind
            stream.reconfigure(errors="backslashreplace")  # an answer must not end a command that has written
    from ttlstore.cli import cli

    cli(prog_name="ttlstore")


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Ctrl-C: an exception for a command at work; the end at once before, and amid an import, which it could break."""
    working = False
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            working = False
            break
        working = working or frame.f_code.co_qualname == "Cli.invoke"
        frame = frame.f_back
    if working:
        raise KeyboardInterrupt
    os.write(2, b"\ninterrupted\n")
    os._exit(INTERRUPTED)
