"""Tables that fit a width: long texts continue on the next line of their cell.

Owns the distribution of room among columns. Nothing is cut off.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TextIO

from kraftwire.decode.text import BOLD, paint
from kraftwire.inspect.tables import Table, wants_colour
from kraftwire.printable import printable, printable_lines

__all__ = ["fitted_lines", "write_fitted"]

_GAP = "  "
_COLUMN_MIN = 8


def write_fitted(
    table: Table,
    stream: TextIO,
    width: int,
    *,
    rows_max: int | None = None,
    legend: str = "",
) -> None:
    """Write a table, or only its first rows, and an empty line below it.

    A `legend` below the title explains symbols.
    """
    is_coloured = wants_colour(stream)
    more = 0 if rows_max is None else max(0, len(table.rows) - rows_max)
    table.rows = table.rows[:rows_max]
    lines = fitted_lines(table, width)
    lines[0] = paint(lines[0], BOLD, is_wanted=is_coloured)
    lines[1:1] = textwrap.wrap(legend, width)
    if more:
        lines.append(f"and {more:,} more, --json has them")
    stream.write(printable_lines([*lines, ""], is_painted=is_coloured))


def fitted_lines(table: Table, width: int) -> list[str]:
    """Return title, heads and rows within a width.

    Columns of `table.optional` wrap, the widest first; no other column does. Empty columns are left
    out.
    """
    rows = [[printable(cell) for cell in row] for row in table.rows]
    kept = [n for n in range(len(table.head)) if any(row[n] for row in rows)]
    heads = [table.head[n] for n in kept]
    cells = [[row[n] for n in kept] for row in rows]
    flexible = [at for at, n in enumerate(kept) if n in table.optional]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    _shrink(widths, flexible, width)
    right = {at for at, n in enumerate(kept) if n in set(table.right)}
    lines = [table.title]
    for row in [heads, *cells]:
        lines += _wrapped(row, widths, right)
    return lines


def _shrink(widths: list[int], flexible: Sequence[int], width: int) -> None:
    """Take room from the widest flexible column until all fit, or no more can be taken."""
    while sum(widths) + len(_GAP) * (len(widths) - 1) > width:
        wide = [at for at in flexible if widths[at] > _COLUMN_MIN]
        if not wide:
            return
        widths[max(wide, key=lambda at: widths[at])] -= 1


def _wrapped(row: Sequence[str], widths: Sequence[int], right: set[int]) -> list[str]:
    parts = [
        textwrap.wrap(cell, size, break_on_hyphens=False) or [""]
        for cell, size in zip(row, widths, strict=True)
    ]
    lines = []
    for number in range(max(map(len, parts))):
        cells = []
        for at, (part, size) in enumerate(zip(parts, widths, strict=True)):
            text = part[number] if number < len(part) else ""
            cells.append(text.rjust(size) if at in right else text.ljust(size))
        lines.append(_GAP.join(cells).rstrip())
    return lines
