"""Events and tables of stories: lines that fit a width, and their JSON form."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TextIO

from kraftwire.capture.recorded import TimeSpan
from kraftwire.decode.text import BOLD, count_text, duration_text, moment_text, paint, utc_text
from kraftwire.inspect.tables import wants_colour
from kraftwire.printable import printable, printable_lines
from kraftwire.story.events import Event, Events

_GAP = "  "
# A longer subject takes room from the text.
_SUBJECT_WIDTH_MAX = 20


def write_lines(stream: TextIO, lines: Sequence[str]) -> None:
    """Write lines that may have colours."""
    stream.write(printable_lines(lines, is_painted=wants_colour(stream)))


def head_line(
    title: str, start: float, end: float, events: Events, *, is_coloured: bool
) -> str:
    """Return the first line: the title, the duration of the story, and its beginning."""
    span = duration_text(max(0.0, end - start))
    if events.not_recorded:
        span += f", of which {duration_text(events.seconds(start, end))} are recorded,"
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
    colours = [(styles or {}).get(each.kind, "") for each in events]
    return row_lines(rows, colours, width=width, overflow=overflow, cell_max=_SUBJECT_WIDTH_MAX)


def row_lines(
    rows: Sequence[Sequence[str]],
    styles: Sequence[str],
    *,
    width: int,
    overflow: int,
    cell_max: int | None = None,
) -> list[str]:
    """Return a line for each row: a time, cells, and a text, which continues on the next line.

    `styles` are the colours of the texts. Cells longer than `cell_max` take room from the text;
    `overflow` counts the rows that are left out.
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    widths[1:] = [min(size, cell_max or size) for size in widths[1:]]
    indent = " " * sum(size + len(_GAP) for size in widths)
    lines = []
    for (time, *cells, text), style in zip(rows, styles, strict=True):
        padded = [cell.ljust(size) for cell, size in zip(cells, widths[1:], strict=True)]
        place = _GAP.join([time.rjust(widths[0]), *padded, ""])
        lines += wrapped_text(place, text, indent, width, style=style)
    if overflow:
        lines.append(f"and {count_text(overflow, 'more event')}")
    return lines


def wrapped_text(
    place: str, text: str, indent: str, width: int, *, style: str = ""
) -> list[str]:
    """Return lines of text beside a place, and below it with an indent.

    Words that fit a line stay whole. `style` is the colour of the text, empty for none.
    """
    parts = textwrap.wrap(place + text, width, break_on_hyphens=False, subsequent_indent=indent)
    starts = [place if parts[0].startswith(place) else "", *([indent] * len(parts[1:]))]
    return [
        start + paint(part[len(start) :], style, is_wanted=bool(style))
        for start, part in zip(starts, parts, strict=True)
    ]


def _row(event: Event, start: float, end: float) -> tuple[str, str, str]:
    text = f"{event.who} {event.text}" if event.who else event.text
    if event.count > 1:
        again = duration_text(max(0.0, event.last - event.time))
        text += f" ({event.count:,} times in {again})"
    return moment_text(event.time, start, end), event.subject, text


def spans_to_json(spans: Iterable[TimeSpan]) -> list[dict[str, float]]:
    """Return times as JSON objects."""
    return [{"from": start, "to": end} for start, end in spans]
