"""The look of plots: one style, one time axis, colours for light and dark backgrounds.

Lines stop where nothing was seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bokeh.models import (
    BoxAnnotation,
    BoxZoomTool,
    ColumnDataSource,
    CustomJSTicker,
    CustomJSTickFormatter,
    HoverTool,
    PanTool,
    RangeTool,
    ResetTool,
    Span,
    WheelZoomTool,
)
from bokeh.plotting import figure

from kraftwire.spark.report.axis import TimeAxis
from kraftwire.spark.report.folder import ReportContext

# Distinguishable with colour blindness too (after Okabe and Ito), on white and on black.
COLOURS = ("#0a84c6", "#e08a00", "#14a37a", "#c66aa0", "#c8560a", "#6f86d6", "#8c8c2a", "#4fb0d0")
GAP = "#d33c3c"
# Readable on both; a script in the page sets it to the page's own text colour.
INK = "#7d7d7d"

_MS = 1_000_000
_SECOND_NS = 1_000_000_000
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


def _show_times(made: Any, context: ReportContext, columns: int = 1) -> None:
    """Put round times on the x axis, by the page's script, and show what is not recorded.

    `columns` is how many plots stand side by side.
    """
    axis = context.axis
    made.xaxis.ticker = CustomJSTicker(major_code=f"return timeTicks(cb_data.range, {columns})")
    made.xaxis.formatter = CustomJSTickFormatter(code="return tickText(index, ticks)")
    for hole in context.holes[:_HOLES_MAX]:
        left, right = (axis.place(each) / _MS for each in hole)
        made.add_layout(BoxAnnotation(left=left, right=right, fill_color=INK, fill_alpha=0.18))
    for place, _ in axis.joints[:_HOLES_MAX]:
        made.add_layout(
            Span(location=place / _MS, dimension="height", line_color=INK, line_dash="dashed")
        )


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


def time_figure(
    context: ReportContext, height: int, *, label: str = "", columns: int = 1, **more: Any
) -> Any:
    """Return an empty plot over time, one of `columns` side by side, that moves with the others."""
    tools = [PanTool(dimensions="width"), BoxZoomTool(dimensions="width"), ResetTool()]
    tools.append(WheelZoomTool(dimensions="width", modifiers={"ctrl": True}))
    made = _figure(height, x_range=context.times, tools=tools, **more)
    # Touch scrolls the page; only the overview can be dragged.
    made.toolbar.active_drag = None
    _show_times(made, context, columns)
    if label:
        made.yaxis.axis_label = label
    return made


def value_figure(height: int, **more: Any) -> Any:
    """Return an empty plot without a time axis."""
    made = _figure(height, tools="", **more)
    made.toolbar.active_drag = None
    return made


def overview(context: ReportContext, values: Mapping[int, float]) -> Any:
    """Return a strip of the whole time, in which an interval can be selected for all plots.

    `values` of buckets, by the places at which they begin.
    """
    axis = context.axis
    ends = axis.first / _MS, (axis.first + max(axis.length, _SECOND_NS)) / _MS
    made = _figure(92, x_range=ends, tools="", y_axis_type=None, min_border_left=LEFT)
    made.ygrid.grid_line_color = None
    _show_times(made, context)
    made.quad(
        left=[each / _MS for each in values],
        right=[each / _MS + axis.bucket_s * 1000 for each in values],
        top=list(values.values()), bottom=0, color=COLOURS[0], line_color=None, alpha=0.7,
    )  # fmt: skip
    chosen = RangeTool(x_range=context.times)
    chosen.overlay.fill_color, chosen.overlay.fill_alpha = COLOURS[1], 0.16
    chosen.overlay.line_color = COLOURS[1]
    made.add_tools(chosen)
    return made


def line_points(
    axis: TimeAxis, points: Iterable[tuple[int, float | None]], pause_ns: float
) -> tuple[list[float], list[float]]:
    """Return places and values of a line that stops at gaps, where the value is NaN.

    Points by time; a gap is longer than `pause_ns` or a value that is None. Units: points have
    nanoseconds, places bokeh's milliseconds.
    """
    places: list[float] = []
    values: list[float] = []
    before: int | None = None
    for time, value in points:
        if before is not None and time - before > pause_ns:
            places.append((axis.place(before) + 1) / _MS)
            values.append(_NAN)
        places.append(axis.place(time) / _MS)
        values.append(_NAN if value is None else value)
        before = time
    return places, values


def line_plot(
    made: Any,
    axis: TimeAxis,
    points: Sequence[tuple[int, float | None]],
    colour: str,
    pause_ns: float,
    *,
    holds: bool = False,
) -> Any:
    """Draw a line that stops at gaps, with a dot at every point without a neighbour.

    A value that `holds` until the next one makes steps.
    """
    places, values = line_points(axis, points, pause_ns)
    draw = made.step if holds else made.line
    more = {"mode": "after"} if holds else {"line_join": "round"}
    line = draw(places, values, line_color=colour, line_width=1.6, **more)
    lonely = [
        index
        for index, value in enumerate(values)
        if value == value
        and (index == 0 or values[index - 1] != values[index - 1])
        and (index + 1 == len(values) or values[index + 1] != values[index + 1])
    ]
    if lonely:
        made.scatter(
            [places[each] for each in lonely], [values[each] for each in lonely], size=4,
            fill_color=colour, line_color=None,
        )  # fmt: skip
    return line


def time_bars(
    made: Any,
    axis: TimeAxis,
    rows: Sequence[dict[str, Any]],
    tips: Sequence[tuple[str, str]],
) -> Any:
    """Draw bars over time: rows with name, start and end in nanoseconds, colour, and tooltips.

    A bar is always wide enough to be visible.
    """
    names = [name for name in rows[0] if name not in ("start", "end")]
    columns: dict[str, list[Any]] = {name: [row[name] for row in rows] for name in names}
    columns["left"] = [axis.place(row["start"]) / _MS for row in rows]
    columns["right"] = [axis.place(row["end"]) / _MS for row in rows]
    bar = made.hbar(
        y="name", left="left", right="right", height=0.62, fill_color="colour",
        line_color="colour", line_width=1.5, source=ColumnDataSource(columns),
    )  # fmt: skip
    made.add_tools(HoverTool(renderers=[bar], tooltips=list(tips)))
    made.ygrid.grid_line_color = None
    return bar
