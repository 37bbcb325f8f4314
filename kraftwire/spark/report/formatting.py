"""Formats numbers, times and names for readers, as escaped HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from kraftwire.printable import printable
from kraftwire.spark.report.folder import ReportContext, TableFolder

# The names of segments, snapshots and indexes.
_OFFSET = re.compile(r"\d{20}")

_SECOND_NS = 1_000_000_000
_NAME_MAX = 48
# Keep a number and its unit, or a time, on one line.
_NBSP = "\u00a0"
_NB_HYPHEN = "\u2011"


def text(value: object) -> str:
    """Return any value as escaped HTML; an empty string for None.

    Braces are escaped too: in the page they mark the places of plots.
    """
    return "" if value is None else escape(printable(str(value))).replace("{", "&#123;")


def clip(value: object, width: int = _NAME_MAX) -> str:
    """Shorten a long name in its centre. Not HTML."""
    name = "" if value is None else str(value)
    half = (width - 1) // 2
    return name if len(name) <= width else f"{name[:half]}…{name[-half:]}"


def count(value: float | None) -> str:
    """Return a number with thousands separators; a dash for None."""
    return "–" if value is None else f"{value:,.0f}"


def plural(number: int, noun: str) -> str:
    """``1 error``, ``2 errors``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def no_rows(folder: TableFolder, name: str, sentence: str) -> str:
    """Return what a table without rows says: a sentence, or that the run did not make it. HTML."""
    if folder.is_made(name):
        return f'<p class="none">{text(sentence)}</p>'
    return (
        f'<p class="none">Not known: the run did not make the table <code>{text(name)}</code>; '
        "it makes those that <code>--tables</code> names.</p>"
    )


def duration(nanoseconds: float | None) -> str:
    """Return a duration in a suitable unit."""
    if nanoseconds is None:
        return "–"
    seconds = nanoseconds / _SECOND_NS
    if seconds >= 3600:
        return f"{int(seconds // 3600)}{_NBSP}h {int(seconds % 3600 // 60)}{_NBSP}min"
    if seconds >= 60:
        return f"{int(seconds // 60)}{_NBSP}min {int(seconds % 60)}{_NBSP}s"
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * factor >= 1 or unit == "µs":
            return f"{seconds * factor:.3g}{_NBSP}{unit}"
    return ""


def size(number: float | None) -> str:
    """Return a size in a suitable unit."""
    if number is None:
        return "–"
    value = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.3g}{_NBSP}{unit}"
        value /= 1000
    return f"{value:.3g}{_NBSP}TB"


def nanoseconds(moment: datetime) -> int:
    """Convert a cell of a timestamp, which has microseconds. Not HTML."""
    return round(moment.timestamp() * 1_000_000) * 1000


def clock(time_ns: int | None, *, with_date: bool = False) -> str:
    """Return a time in UTC, with milliseconds."""
    if time_ns is None:
        return ""
    moment = datetime.fromtimestamp(time_ns // _SECOND_NS, UTC)
    form = "%Y-%m-%d %H:%M:%S" if with_date else "%H:%M:%S"
    return f"{moment.strftime(form)}.{time_ns % _SECOND_NS // 1_000_000:03d}"


def when(context: ReportContext, time_ns: int | None) -> str:
    """Return a time in UTC as tables show it: on one line, with its date where there are several.
    """
    shown = clock(time_ns, with_date=context.has_days)
    return shown.replace("-", _NB_HYPHEN).replace(" ", _NBSP)


def evidence(file: object, position: int | None) -> str:
    """Return the evidence: the end of the path, with the whole path as a tooltip. HTML.

    Log files are named by an offset, in the folder of a partition, in that of a node.
    """
    if not file:
        return ""
    *folders, name = str(file).split("/")
    offset = _OFFSET.match(name)
    if offset:
        name = "/".join((*folders[-2:], f"…{int(offset[0])}{name[offset.end() :]}"))
    at = "" if position is None else f" @{position:,}"
    return f'<span class="ev" title="{text(file)}">{text(clip(name))}{at}</span>'


def key(items: Iterable[tuple[str, str]]) -> str:
    """Return the legend of a plot: names with their colours. HTML."""
    chips = "".join(
        f'<span><i style="background:{colour}"></i>{text(clip(name, 28))}</span>'
        for name, colour in items
    )
    return f'<p class="key">{chips}</p>'


def link(name: str) -> str:
    """Return the link to a CSV file. HTML."""
    return f'<a class="csv" href="report/{text(name)}.csv">CSV</a>'


def table(
    head: Sequence[str], rows: Iterable[Sequence[Any]], *, right: Sequence[int] = (), rest: int = 0
) -> str:
    """Return a table. Cells are HTML already; columns `right` hold numbers; a last line names the
    number of omitted rows, `rest`.
    """
    cells = "".join(
        f'<th{_class(index, right)} scope="col">{text(name)}</th>'
        for index, name in enumerate(head)
    )
    body = [
        "<tr>"
        + "".join(
            f'<td{_class(index, right)} data-head="{text(head[index])}">{cell}</td>'
            for index, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    ]
    more = f'<p class="note">and {rest:,} more</p>' if rest > 0 else ""
    return (
        f'<div class="wide"><table><thead><tr>{cells}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>{more}"
    )


def _class(index: int, right: Sequence[int]) -> str:
    return ' class="num"' if index in right else ""
