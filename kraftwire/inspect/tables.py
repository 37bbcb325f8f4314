"""Prints tables: aligned columns of plain text, or drawn by rich on a terminal.

Owns the layout; without a terminal nothing is wrapped, cut or coloured, so that other programs can
read it line by line.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TextIO

from kraftwire.printable import printable, printable_lines

__all__ = ["Table", "wants_colour", "write_table"]

_GAP = "  "


@dataclass(slots=True)
class Table:
    """A title, column heads and rows of text.

    The columns numbered in `right` are aligned to the right; those in `optional` are left out, in
    this order, where a terminal is too narrow.
    """

    title: str
    head: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    right: Iterable[int] = ()
    optional: Sequence[int] = ()

    def lines(self) -> list[str]:
        """Return the table as plain text."""
        right = set(self.right)
        rows, widths = [list(self.head), *map(list, self.rows)], self.widths()
        return [self.title, *(_line(row, widths, right) for row in rows)]

    def widths(self) -> list[int]:
        """Return the width of each column."""
        return [max(map(len, column)) for column in zip(self.head, *self.rows, strict=True)]


def _line(row: Sequence[str], widths: Sequence[int], right: set[int]) -> str:
    cells = [
        cell.rjust(width) if number in right else cell.ljust(width)
        for number, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return _GAP.join(cells).rstrip()


def wants_colour(stream: TextIO) -> bool:
    """Return whether a stream is a terminal that supports colours and whose user wants them."""
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def write_table(table: Table, stream: TextIO | None = None) -> None:
    """Write a table to a stream, by default standard output."""
    stream = stream or sys.stdout
    # Escape cells before their widths are counted.
    table.rows = [[printable(cell) for cell in row] for row in table.rows]
    if wants_colour(stream):
        _write_rich(table, stream)
    else:
        stream.write(printable_lines(table.lines()))


def _fitting(table: Table, width: int) -> list[int]:
    """Return the columns that fit a width; too many only if no more may be left out."""
    widths = table.widths()
    kept = list(range(len(widths)))
    for number in table.optional:
        if sum(widths[each] + len(_GAP) for each in kept) <= width:
            break
        kept.remove(number)
    return kept


def _write_rich(table: Table, stream: TextIO) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    console = Console(file=stream)
    right, kept = set(table.right), _fitting(table, console.width)
    drawn = RichTable(
        title=table.title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for number in kept:
        justify: Literal["left", "right"] = "right" if number in right else "left"
        drawn.add_column(table.head[number], justify=justify, overflow="fold")
    for row in table.rows:
        drawn.add_row(*(Text(row[number]) for number in kept))
    console.print(drawn)
