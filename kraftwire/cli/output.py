"""What commands print: lines that are safe to show, on standard output or standard error.

No other module of the command line prints text, so that no name of a peer or a file reaches a
terminal without its control characters escaped.
"""

from __future__ import annotations

import sys
from typing import TextIO

from kraftwire.printable import printable, printable_painted


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
