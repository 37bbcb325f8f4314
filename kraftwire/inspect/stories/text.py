"""Events and tables of stories: lines that fit a width, and their JSON form."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from kraftwire.decode.text import BOLD, count_text, duration_text, moment_text, paint, utc_text
from kraftwire.inspect.tables import Table, wants_colour
from kraftwire.printable import printable, printable_lines
from kraftwire.story.events import Event, Events

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


# The default width of lines.
WIDTH = 80
_WIDTH_MIN = 60
# A longer subject takes room from the text.
_SUBJECT_WIDTH_MAX = 20


def width_of(stream: TextIO) -> int:
    """Return the width of lines: that of a terminal, else 80 columns."""
    if not stream.isatty():
        return WIDTH
    return max(_WIDTH_MIN, shutil.get_terminal_size((WIDTH, 24)).columns)


def write_lines(stream: TextIO, lines: Sequence[str]) -> None:
    """Write lines that may have colours."""
    stream.write(printable_lines(lines, is_painted=wants_colour(stream)))


def head_line(title: str, start: float, end: float, *, is_coloured: bool) -> str:
    """Return the first line: the title, the duration of the story, and its beginning."""
    span = duration_text(max(0.0, end - start))
    head = paint(title, BOLD, is_wanted=is_coloured)
    return f"{head}: {span} from {utc_text(round(start * 1000))}"


def event_lines(
    events: Sequence[Event],
    start: float,
    *,
    width: int,
    styles: Mapping[str, str] | None = None,
    overflow: int = 0,
) -> list[str]:
    """Return a line for each event: seconds since the start, subject, member or client, and text.

    Long text continues on the next line. `styles` are the colours of kinds, None for no colours.
    """
    end = max((each.last for each in events), default=start)
    rows = [_row(each, start, max(end, start)) for each in events]
    if not rows:
        return []
    times = max(len(time) for time, _, _ in rows)
    subjects = min(max(len(subject) for _, subject, _ in rows), _SUBJECT_WIDTH_MAX)
    indent = " " * (times + len(_GAP) + subjects + len(_GAP))
    lines = []
    for event, (time, subject, text) in zip(events, rows, strict=True):
        place = f"{time.rjust(times)}{_GAP}{subject.ljust(subjects)}{_GAP}"
        style = (styles or {}).get(event.kind, "")
        parts = textwrap.wrap(
            place + text, width, break_on_hyphens=False, subsequent_indent=indent
        )
        head = parts[0][: len(place)] if parts[0].startswith(place) else ""
        shown = [head + paint(parts[0][len(head) :], style, is_wanted=bool(style))]
        shown += [
            indent + paint(part[len(indent) :], style, is_wanted=bool(style)) for part in parts[1:]
        ]
        lines += shown
    if overflow:
        lines.append(f"and {count_text(overflow, 'more event')}")
    return lines


def _row(event: Event, start: float, end: float) -> tuple[str, str, str]:
    text = f"{event.who} {event.text}" if event.who else event.text
    if event.count > 1:
        again = duration_text(max(0.0, event.last - event.time))
        text += f" ({event.count:,} times in {again})"
    cells = (moment_text(event.time, start, end), event.subject, text)
    time, subject, text = map(printable, cells)
    return time, subject, text


def events_to_json(events: Events, *, subject: str, who: str, number: str) -> list[dict[str, Any]]:
    """Return the events in order of time. The arguments are the keys for an event's attributes."""

    def to_json(event: Event) -> dict[str, Any]:
        return {
            "time": event.time,
            "kind": event.kind,
            subject: event.subject,
            who: event.who or None,
            number: event.number,
            "text": event.text,
            "details": event.details,
            "count": event.count,
            "last": event.last,
        }

    return [to_json(each) for each in events.in_order()]
