"""Response times by API and by client; a Fetch's wait for data is shown separately."""

from __future__ import annotations

import pyarrow as pa
from bokeh.models import ColumnDataSource, CustomJSTickFormatter, HoverTool

from kraftwire.spark.report.folder import ReportContext, ReportPart
from kraftwire.spark.report.formatting import clip, count, duration, link, no_rows, table, text
from kraftwire.spark.report.parts.over_time import by_name, draw_buckets, note
from kraftwire.spark.report.parts.traffic import Latencies, Traffic, totals
from kraftwire.spark.report.plots import COLOURS, LEFT, time_figure, value_figure

_APIS_MAX = 20
_ROWS_MAX = 25
# A percentile of fewer says nothing.
_EXCHANGES_MIN = 5
_SHARES = (0.5, 0.95, 0.99)
_TICKS = """
const s = tick / 1e9
if (s >= 1) return s + " s"
return s >= 1e-3 ? +(s * 1e3).toPrecision(3) + " ms" : +(s * 1e6).toPrecision(3) + " µs"
"""


def latency_part(context: ReportContext, traffic: Traffic) -> ReportPart:
    """From the median to the 99th percentile of each API, and a table by client."""
    part = ReportPart("latency", "Latency")
    by_api = _by_api(traffic)
    if not by_api:
        part.html = no_rows(
            context.folder, "exchanges", "No request was captured together with its response."
        )
        return part
    part.data["latency"] = _data(traffic)
    part.plots["latency"] = _plot(by_api)
    part.html = (
        "{{latency}}<p class='note'>From the median (dot) to the 99th percentile, a dash for the "
        "slowest, on a logarithmic axis; a Fetch without the time that it waited for data, which "
        f"has a bar of its own. Within 5 %. {link('latency')}</p>"
        + _over_time(context, part, traffic)
        + _client_table(traffic)
    )
    return part


def _by_api(traffic: Traffic) -> list[tuple[str, Latencies]]:
    merged = traffic.by_api()
    for one in traffic.wait.values():
        merged["Fetch: its wait"].merge(one)
    rows = sorted(merged.items(), key=lambda row: -row[1].total)[:_APIS_MAX]
    return sorted(rows, key=lambda row: row[1].quantile(0.99) or 0)


def _plot(by_api: list[tuple[str, Latencies]]) -> object:
    names = [name for name, _ in by_api]
    low = [one.quantile(0.5) or 1 for _, one in by_api]
    high = [one.quantile(0.99) or 1 for _, one in by_api]
    source = ColumnDataSource(
        {
            "name": names, "low": low, "high": high,
            "most": [max(one.highest, 1) for _, one in by_api],
            "p50": [duration(each) for each in low], "p99": [duration(each) for each in high],
            "max": [duration(one.highest) for _, one in by_api],
            "number": [count(one.total) for _, one in by_api],
            "colour": [COLOURS[1] if "wait" in name else COLOURS[0] for name in names],
        }
    )  # fmt: skip
    plot = value_figure(
        64 + 22 * len(names), y_range=names, x_axis_type="log",
        x_range=(max(min(low) / 2, 1), max(one.highest for _, one in by_api) * 2),
    )  # fmt: skip
    bar = plot.hbar(
        y="name", left="low", right="high", height=0.5, fill_color="colour", line_color=None,
        fill_alpha=0.55, source=source,
    )  # fmt: skip
    dot = plot.scatter(x="low", y="name", size=7, color="colour", source=source)
    plot.scatter(
        x="most", y="name", size=8, marker="dash", angle=1.5708, line_color="colour", line_width=2,
        source=source,
    )  # fmt: skip
    plot.xaxis.formatter = CustomJSTickFormatter(code=_TICKS)
    plot.xaxis.ticker.desired_num_ticks = 5
    plot.xaxis.ticker.num_minor_ticks = 0
    tips = [
        ("", "@name"),
        ("exchanges", "@number"),
        ("median", "@p50"),
        ("99 %", "@p99"),
        ("max", "@max"),
    ]
    plot.add_tools(HoverTool(renderers=[bar, dot], tooltips=tips))
    return plot


def _over_time(context: ReportContext, part: ReportPart, traffic: Traffic) -> str:
    """Add the plot of the slowest response of each bucket; return its HTML."""
    lines = by_name(traffic.slowest, totals(traffic.rate, 1), max)
    plot = time_figure(context, 190, label="slowest", y_axis_type="log", min_border_left=LEFT)
    plot.yaxis.formatter = CustomJSTickFormatter(code=_TICKS)
    plot.yaxis.ticker.desired_num_ticks = 4
    plot.yaxis.ticker.num_minor_ticks = 0
    legend = draw_buckets(context, plot, lines, absent=None)
    part.plots["slowest"] = plot
    return (
        f"<h3>Slowest responses over time</h3>{legend}{{{{slowest}}}}"
        f"<p class='note'>{note(context)} No line: no response. {link('throughput')}</p>"
    )


def _client_table(traffic: Traffic) -> str:
    rows = sorted(traffic.latency.items(), key=lambda row: -(row[1].quantile(0.99) or 0))
    busy = [row for row in rows if row[1].total >= _EXCHANGES_MIN] or rows
    lines = [
        (
            text(clip(client, 36)),
            text(api),
            count(one.total),
            *(duration(one.quantile(share)) for share in _SHARES),
            duration(one.highest),
        )
        for (api, client), one in busy[:_ROWS_MAX]
    ]
    head = ("client", "API", "exchanges", "median", "95 %", "99 %", "max")
    body = table(head, lines, right=(2, 3, 4, 5, 6), rest=len(busy) - len(lines))
    only = f", of at least {_EXCHANGES_MIN} exchanges" if len(busy) < len(rows) else ""
    title = f"By client and API{only}, the slowest first"
    return f"<details open><summary>{title}</summary>{body}</details>"


def _data(traffic: Traffic) -> pa.Table:
    rows = [_numbers(api, client, "service", one) for (api, client), one in traffic.latency.items()]
    rows += [_numbers("Fetch", client, "wait", one) for client, one in traffic.wait.items()]
    return pa.Table.from_pylist(rows)


def _numbers(api: str, client: str, what: str, one: Latencies) -> dict[str, object]:
    return {
        "api": api,
        "client": client,
        "what": what,
        "exchanges": one.total,
        **{f"p{round(share * 100)}_ns": one.quantile(share) for share in _SHARES},
        "max_ns": one.highest,
    }
