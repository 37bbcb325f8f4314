"""The standard streams: what commands print on them, and streams that are closed or stuck.

Printed lines are safe to show. No other module of the command line prints text, so that no name of
a peer or a file reaches a terminal without its control characters escaped.
"""

from __future__ import annotations

import os
import sys
from typing import TextIO

from kraftwire.printable import printable, printable_painted

# Name -> how /dev/null is opened for it, and what the program does with it. Standard input is
# opened for writing and standard output for reading, so that using them is the error that it was;
# messages to a closed standard error go nowhere.
_STREAMS = {
    "stdin": (os.O_WRONLY, "r"),
    "stdout": (os.O_RDONLY, "w"),
    "stderr": (os.O_WRONLY, "w"),
}


def put(*lines: str) -> None:
    """Print lines on standard output."""
    _write(sys.stdout, [printable(line) for line in lines])


def put_columns(*lines: str) -> None:
    """Print lines whose columns end with tabs."""
    _write(sys.stdout, ["\t".join(map(printable, line.split("\t"))) for line in lines])


def put_painted(*lines: str) -> None:
    """Print lines with this program's colours; see `printable_painted`."""
    _write(sys.stdout, [printable_painted(line) for line in lines])


def say(*lines: str) -> None:
    """Print lines on standard error."""
    _write(sys.stderr, [printable(line) for line in lines])


def say_over(line: str) -> None:
    """Replace the last line on standard error, a terminal; an empty line clears it."""
    sys.stderr.write(f"\r{printable(line)}" if line else "\r\x1b[K")
    sys.stderr.flush()


def _write(stream: TextIO, lines: list[str]) -> None:
    stream.write("".join(line + "\n" for line in lines))
    # Errors and output keep their order where both go to one place.
    stream.flush()


def replace_closed() -> None:
    """Give `sys` a stream in place of each that was closed when the program started.

    It fails when it is used, as the closed stream would, and keeps the next file that is opened
    from getting the stream's descriptor.
    """
    for name, (flags, mode) in _STREAMS.items():
        if getattr(sys, name) is None:
            # The lowest free descriptor is that of the closed stream.
            descriptor = os.open(os.devnull, flags)
            stream = open(descriptor, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


def is_output_stuck() -> bool:
    """Whether standard output accepts neither its buffered bytes nor an empty write."""
    try:
        sys.stdout.flush()
        os.write(sys.stdout.fileno(), b"")
    except (OSError, ValueError):
        return True
    return False


def drop_output() -> None:
    """Discard what is still buffered: flushing it at exit would fail a second time."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return  # not a real file: there is nothing to flush to
