"""Tables of text: aligned columns that fit the width of a terminal, or that of COLUMNS.

In pipes and files nothing is shortened or wrapped, for those who search or cut their lines.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TextIO

from kraftwire.decode.text import BOLD, paint
from kraftwire.printable import printable, printable_lines

_WIDTH = 80
_WIDTH_MIN = 60

_GAP = "  "
# A column of fewer characters would show too little of its cells.
_COLUMN_MIN = 16


@dataclass(slots=True)
class Table:
    """A title, column heads and rows of text.

    The columns numbered in `right` are aligned to the right. Where the columns do not fit, those
    in `lists` wrap, those in `optional` are left out, the last of them first, and those in `names`
    are cut in the middle.
    """

    title: str
    head: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    right: Iterable[int] = ()
    names: Sequence[int] = ()
    lists: Sequence[int] = ()
    optional: Sequence[int] = ()


def wants_colour(stream: TextIO) -> bool:
    """Return whether a stream is a terminal that supports colours and whose user wants them."""
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def width_of(stream: TextIO) -> int:
    """Return the width of lines: COLUMNS of the environment or that of a terminal, else no limit.
    """
    columns = os.environ.get("COLUMNS", "")
    if not stream.isatty() and not (columns.isdecimal() and int(columns)):
        return sys.maxsize
    return max(_WIDTH_MIN, shutil.get_terminal_size((_WIDTH, 24)).columns)


def write_table(
    table: Table,
    stream: TextIO,
    width: int,
    *,
    rows_max: int | None = None,
    legend: str = "",
    footer: Sequence[str] = (),
) -> None:
    """Write a table, or only its first rows, and an empty line below it.

    A `legend` below the title explains symbols; the lines of a `footer` follow the rows.
    """
    is_coloured = wants_colour(stream)
    more = 0 if rows_max is None else max(0, len(table.rows) - rows_max)
    table.rows = table.rows[:rows_max]
    lines = fitted_lines(table, width)
    title = paint(next(lines), BOLD, is_wanted=is_coloured)
    notes = [f"and {more:,} more, --json has them"] if more else []
    # One by one: all lines of a table with wide names take more memory than the table.
    for line in chain((title, *textwrap.wrap(legend, width)), lines, notes, footer, ("",)):
        stream.write(printable_lines([line], is_painted=is_coloured))


def fitted_lines(table: Table, width: int) -> Iterator[str]:
    """Yield title, heads and rows within a width.

    Empty columns are left out. Where others are left out, a line says so.
    """
    rows = [[printable(cell) for cell in row] for row in table.rows]
    shown = [n for n in range(len(table.head)) if any(row[n] for row in rows)]
    widths = {n: max(len(table.head[n]), *(len(row[n]) for row in rows)) for n in shown}
    dropped = _fit(widths, table, width)
    yield table.title
    for row in [table.head, *rows]:
        yield from _row_lines(row, widths, table)
    if dropped:
        names = ", ".join(table.head[n] for n in sorted(dropped))
        yield from textwrap.wrap(f"not shown in {width} columns: {names}", width)


def cut_text(text: str, size: int) -> str:
    """Return a text of at most `size` characters, with an ellipsis in the middle if it is cut."""
    if len(text) <= size:
        return text
    head = (size - 1) // 2
    return f"{text[:head]}…{text[len(text) - (size - 1 - head) :]}"


def _fit(widths: dict[int, int], table: Table, width: int) -> list[int]:
    """Reduce the widths of columns until all fit; return the columns that are left out."""
    dropped = []
    _shrink(widths, table.lists, width)
    for number in reversed([n for n in table.optional if n in widths]):
        if _excess(widths, width) <= 0:
            break
        del widths[number]
        dropped.append(number)
    _shrink(widths, table.names, width)
    return dropped


def _excess(widths: dict[int, int], width: int) -> int:
    return sum(widths.values()) + len(_GAP) * (len(widths) - 1) - width


def _shrink(widths: dict[int, int], columns: Sequence[int], width: int) -> None:
    """Take room from the widest of some columns until all fit, or no more can be taken."""
    while _excess(widths, width) > 0:
        wide = [n for n in columns if widths.get(n, 0) > _COLUMN_MIN]
        if not wide:
            return
        widths[max(wide, key=lambda n: widths[n])] -= 1


def _row_lines(row: Sequence[str], widths: dict[int, int], table: Table) -> list[str]:
    parts = {
        n: textwrap.wrap(row[n], size, break_on_hyphens=False) or [""]
        if n in table.lists
        else [cut_text(row[n], size)]
        for n, size in widths.items()
    }
    right = set(table.right)
    lines = []
    for number in range(max(map(len, parts.values()), default=0)):
        cells = []
        for n, size in widths.items():
            text = parts[n][number] if number < len(parts[n]) else ""
            cells.append(text.rjust(size) if n in right else text.ljust(size))
        lines.append(_GAP.join(cells).rstrip())
    return lines
