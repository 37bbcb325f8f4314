"""Lines over time, with a point for each bucket of the axis, for several parts of the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from kraftwire.spark.report.folder import ReportContext
from kraftwire.spark.report.formatting import key
from kraftwire.spark.report.plots import COLOURS, line_plot

_SECOND_NS = 1_000_000_000
_LINES_MAX = 5
OTHERS = "others"


def bucket_time(context: ReportContext, at: int) -> int:
    """Return the time at which a bucket begins, in nanoseconds since the epoch."""
    return context.axis.time(context.axis.first + at * context.axis.bucket_s * _SECOND_NS)


def by_name(
    values: Mapping[tuple[int, str], int], counts: Counter[str], add: Callable[[int, int], int]
) -> dict[str, dict[int, int]]:
    """Return values of (bucket, name) as lines: those with the largest counts, and the others,
    whose values in one bucket are added by `add`.
    """
    lines: dict[str, dict[int, int]] = {name: {} for name, _ in counts.most_common(_LINES_MAX)}
    for (at, name), value in values.items():
        line = lines.setdefault(name if name in lines else OTHERS, {})
        line[at] = add(line[at], value) if at in line else value
    return lines


def draw_buckets(
    context: ReportContext,
    plot: Any,
    lines: Mapping[str, Mapping[int, float]],
    *,
    absent: float | None = 0,
) -> str:
    """Draw lines by name; return their legend, as HTML.

    A bucket without a value is `absent`; a line stops at what is not recorded, and at None.
    """
    axis = context.axis
    width = axis.bucket_s * _SECOND_NS
    holes = [(axis.place(start), axis.place(end)) for start, end in context.holes]
    times: list[tuple[int, int | None]] = []
    for at, begin in enumerate(range(axis.first, axis.first + axis.length + 1, width)):
        is_hole = any(start <= begin and begin + width <= end for start, end in holes)
        times.append((axis.time(begin + width // 2), None if is_hole else at))
    for values, colour in zip(lines.values(), COLOURS, strict=False):
        points = [(time, None if at is None else values.get(at, absent)) for time, at in times]
        line_plot(plot, axis, points, colour, 1 << 62)
    return key(zip(lines, COLOURS, strict=False))


def note(context: ReportContext) -> str:
    """Return what a point is, as HTML."""
    grey = " Grey: not recorded." if context.holes else ""
    return f"Each point is {context.axis.bucket_s} s.{grey}"
