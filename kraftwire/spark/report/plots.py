"""The look of plots: one style, one time axis, colours for light and dark backgrounds.

Lines stop where nothing was seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from bokeh.models import (
    BoxAnnotation,
    BoxZoomTool,
    ColumnDataSource,
    CustomJSTickFormatter,
    DatetimeTickFormatter,
    HoverTool,
    PanTool,
    RangeTool,
    ResetTool,
    WheelZoomTool,
)
from bokeh.plotting import figure

from kraftwire.spark.report.folder import ReportContext

# Distinguishable with colour blindness too (after Okabe and Ito), on white and on black.
COLOURS = ("#0a84c6", "#e08a00", "#14a37a", "#c66aa0", "#c8560a", "#6f86d6", "#8c8c2a", "#4fb0d0")
GAP = "#d33c3c"
# Readable on both; a script in the page sets it to the page's own text colour.
INK = "#7d7d7d"

_MS = 1_000_000
# Times without a recording that are drawn.
_HOLES_MAX = 200
_NAN = float("nan")

_BORDERS: dict[str, Any] = {
    "min_border_left": 8, "min_border_right": 12, "min_border_top": 6, "min_border_bottom": 4,
}  # fmt: skip
# The same width for all plots, so that equal times are aligned.
LEFT = 66

# Thousands as k, millions as M.
_SHORT = """
const size = Math.abs(tick)
const [factor, unit] = size >= 1e9 ? [1e9, " G"] : size >= 1e6 ? [1e6, " M"]
                     : size >= 1e4 ? [1e3, " k"] : [1, ""]
return +(tick / factor).toPrecision(4) + unit
"""


def _clock() -> DatetimeTickFormatter:
    """Return a formatter for time axes."""
    return DatetimeTickFormatter(
        milliseconds="%H:%M:%S.%3N", seconds="%H:%M:%S", minsec="%H:%M:%S", minutes="%H:%M",
        hourmin="%H:%M", hours="%H:%M", days="%m-%d", months="%Y-%m", years="%Y",
    )  # fmt: skip


def short_numbers() -> CustomJSTickFormatter:
    """Return a formatter for axes with counts."""
    return CustomJSTickFormatter(code=_SHORT)


def _figure(height: int, **more: Any) -> Any:
    made = figure(
        height=height, sizing_mode="stretch_width", output_backend="svg", toolbar_location=None,
        background_fill_color=None, border_fill_color=None, outline_line_color=None,
        **{**_BORDERS, **more},
    )  # fmt: skip
    for axis in made.axis:
        axis.axis_line_color = axis.major_tick_line_color = INK
        axis.minor_tick_line_color = None
        axis.major_label_text_color = axis.axis_label_text_color = INK
        axis.major_label_text_font = axis.axis_label_text_font = "system-ui, sans-serif"
        axis.major_label_text_font_size = axis.axis_label_text_font_size = "11px"
        axis.axis_label_text_font_style = "normal"
    for grid in made.grid:
        grid.grid_line_color, grid.grid_line_alpha = INK, 0.22
    return made


def time_figure(context: ReportContext, height: int, *, label: str = "", **more: Any) -> Any:
    """Return an empty plot over time that moves with the others."""
    tools = [PanTool(dimensions="width"), BoxZoomTool(dimensions="width"), ResetTool()]
    tools.append(WheelZoomTool(dimensions="width", modifiers={"ctrl": True}))
    made = _figure(height, x_range=context.times, x_axis_type="datetime", tools=tools, **more)
    # Touch scrolls the page; only the overview can be dragged.
    made.toolbar.active_drag = None
    made.xaxis.formatter = _clock()
    made.xaxis.ticker.desired_num_ticks = 5
    if label:
        made.yaxis.axis_label = label
    for start, end in context.holes[:_HOLES_MAX]:
        made.add_layout(
            BoxAnnotation(left=start / _MS, right=end / _MS, fill_color=INK, fill_alpha=0.18)
        )
    return made


def value_figure(height: int, **more: Any) -> Any:
    """Return an empty plot without a time axis."""
    made = _figure(height, tools="", **more)
    made.toolbar.active_drag = None
    return made


def overview(context: ReportContext, times: Sequence[int], values: Sequence[float]) -> Any:
    """Return a strip of the whole time, in which an interval can be selected for all plots."""
    extent = context.extent or (0, 1)
    made = _figure(
        92, x_range=(extent[0] / _MS, extent[1] / _MS), x_axis_type="datetime", tools="",
        y_axis_type=None, min_border_left=LEFT,
    )  # fmt: skip
    made.ygrid.grid_line_color = None
    made.xaxis.formatter = _clock()
    made.xaxis.ticker.desired_num_ticks = 5
    made.vbar(
        x=[(each + context.bucket_s * 500_000_000) / _MS for each in times],
        top=list(values), bottom=0,
        width=context.bucket_s * 1000, color=COLOURS[0], line_color=None, alpha=0.7,
    )  # fmt: skip
    chosen = RangeTool(x_range=context.times)
    chosen.overlay.fill_color, chosen.overlay.fill_alpha = COLOURS[1], 0.16
    chosen.overlay.line_color = COLOURS[1]
    made.add_tools(chosen)
    return made


def line_points(
    points: Iterable[tuple[int, float | None]], pause_ns: float
) -> tuple[list[float], list[float]]:
    """Return times and values of a line that stops at gaps, where the value is NaN.

    Points by time, in nanoseconds; a gap is longer than `pause_ns` or a value that is None.
    """
    times: list[float] = []
    values: list[float] = []
    before: int | None = None
    for time, value in points:
        if before is not None and time - before > pause_ns:
            times.append((before + 1) / _MS)
            values.append(_NAN)
        times.append(time / _MS)
        values.append(_NAN if value is None else value)
        before = time
    return times, values


def line_plot(
    made: Any,
    points: Sequence[tuple[int, float | None]],
    colour: str,
    pause_ns: float,
    *,
    holds: bool = False,
) -> Any:
    """Draw a line that stops at gaps, with a dot at every point without a neighbour.

    A value that `holds` until the next one makes steps.
    """
    times, values = line_points(points, pause_ns)
    draw = made.step if holds else made.line
    more = {"mode": "after"} if holds else {"line_join": "round"}
    line = draw(times, values, line_color=colour, line_width=1.6, **more)
    lonely = [
        index
        for index, value in enumerate(values)
        if value == value
        and (index == 0 or values[index - 1] != values[index - 1])
        and (index + 1 == len(values) or values[index + 1] != values[index + 1])
    ]
    if lonely:
        made.scatter(
            [times[each] for each in lonely], [values[each] for each in lonely], size=4,
            fill_color=colour, line_color=None,
        )  # fmt: skip
    return line


def time_bars(made: Any, rows: Sequence[dict[str, Any]], tips: Sequence[tuple[str, str]]) -> Any:
    """Draw bars over time: rows with name, start and end in nanoseconds, colour, and tooltips.

    A bar is always wide enough to be visible.
    """
    names = [name for name in rows[0] if name not in ("start", "end")]
    columns: dict[str, list[Any]] = {name: [row[name] for row in rows] for name in names}
    columns["left"] = [row["start"] / _MS for row in rows]
    columns["right"] = [row["end"] / _MS for row in rows]
    bar = made.hbar(
        y="name", left="left", right="right", height=0.62, fill_color="colour",
        line_color="colour", line_width=1.5, source=ColumnDataSource(columns),
    )  # fmt: skip
    made.add_tools(HoverTool(renderers=[bar], tooltips=list(tips)))
    made.ygrid.grid_line_color = None
    return bar
