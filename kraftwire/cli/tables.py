"""Lays out text: tables whose last column wraps to the width of the output, headings, colours.

Without a terminal nothing is coloured, nor wrapped unless COLUMNS is set, so that other programs
can read it line by line.
"""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterable, Sequence

import click

from kraftwire.cli.output import put, put_painted
from kraftwire.inspect.tables import width_of

_GAP = "  "
_LAST_COLUMN_WIDTH_MIN = 24


def show(lines: Iterable[str]) -> None:
    """Print lines, without colour unless standard output is a terminal that wants it."""
    if sys.stdout.isatty() and "NO_COLOR" not in os.environ:
        put_painted(*lines)
    else:
        put(*map(click.unstyle, lines))


def heading(text: str) -> str:
    """Return a line that stands out on a terminal."""
    return click.style(text, bold=True)


def paragraph(text: str, *, first: str = "", indent: str = "") -> list[str]:
    """Wrap text to the terminal; `first` precedes it, `indent` precedes its other lines."""
    return textwrap.wrap(
        text,
        max(width_of(sys.stdout), len(indent) + _LAST_COLUMN_WIDTH_MIN),
        initial_indent=first,
        subsequent_indent=indent,
        break_on_hyphens=False,
    ) or [first]


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Iterable[int] = ()
) -> list[str]:
    """Return lines of columns below their titles; those numbered in `right` are right-aligned.

    Every row has as many cells as `head`; the last column wraps.
    """
    to_right = set(right)
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [click.style(_line(head, widths, to_right)[0], underline=True)]
    for row in rows:
        lines += _line(row, widths, to_right)
    return lines


def _line(cells: Sequence[str], widths: list[int], right: set[int]) -> list[str]:
    parts = [
        cell.rjust(width) if number in right else cell.ljust(width)
        for number, (cell, width) in enumerate(zip(cells[:-1], widths[:-1], strict=True))
    ]
    first = "".join(part + _GAP for part in parts)
    if not cells[-1]:
        return [first.rstrip()]
    return paragraph(cells[-1], first=first, indent=" " * len(first))
