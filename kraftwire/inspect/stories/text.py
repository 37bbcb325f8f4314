"""Stories for people: one event per line, and tables that fit the width."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Mapping, Sequence
from typing import TextIO

from kraftwire.decode.text import BOLD, count_text, duration_text, paint, utc_text
from kraftwire.inspect.tables import wants_colour
from kraftwire.printable import printable, printable_lines
from kraftwire.story.events import Event

__all__ = ["WIDTH", "event_lines", "head_line", "width_of", "write_lines"]

# The default width of lines.
WIDTH = 80
_WIDTH_MIN = 60
_GAP = "  "
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
    rows = [_row(each, start) for each in events]
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


def _row(event: Event, start: float) -> tuple[str, str, str]:
    text = f"{event.who} {event.text}" if event.who else event.text
    if event.count > 1:
        again = duration_text(max(0.0, event.last - event.time))
        text += f" ({event.count:,} times in {again})"
    cells = (f"{event.time - start:+.3f}", event.subject, text)
    time, subject, text = map(printable, cells)
    return time, subject, text
