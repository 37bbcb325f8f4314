"""Exchanges and bytes over time."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

from kraftwire.spark.report.folder import ReportContext, ReportPart
from kraftwire.spark.report.formatting import count, key, link, no_rows, table, text
from kraftwire.spark.report.parts.traffic import Traffic
from kraftwire.spark.report.plots import COLOURS, LEFT, line_plot, short_numbers, time_figure

_SECOND_NS = 1_000_000_000
_APIS_MAX = 5
_ERRORS_MAX = 20
_DIRECTIONS = ("requests", "responses")


def throughput_part(context: ReportContext, traffic: Traffic) -> ReportPart:
    """Requests per second by API, bytes per second in both directions, and errors."""
    part = ReportPart("throughput", "Throughput")
    if context.extent is None or not traffic.count:
        part.html = no_rows(context.folder, "exchanges", "There are no exchanges.")
        return part
    start, width = context.extent[0], context.bucket_s * _SECOND_NS
    last = (context.extent[1] - start) // width
    totals: Counter[str] = Counter()
    for (_, api), number in traffic.rate.items():
        totals[api] += number
    top = [api for api, _ in totals.most_common(_APIS_MAX)]
    middles = [(at, start + at * width + width // 2) for at in range(last + 1)]
    unknown = {at for at, _ in middles if _is_hole(context, start + at * width, width)}
    rates = {
        api: [(time, None if at in unknown else traffic.rate[at, api] / context.bucket_s)
              for at, time in middles]
        for api in top
    }  # fmt: skip
    plot = time_figure(context, 210, label="exchanges per second", min_border_left=LEFT)
    for index, points in enumerate(rates.values()):
        line_plot(plot, points, COLOURS[index], 1 << 62)
    flows = time_figure(context, 190, label="bytes per second", min_border_left=LEFT)
    for index, sums in enumerate((traffic.request_bytes, traffic.response_bytes)):
        flow = [(t, None if at in unknown else sums[at] / context.bucket_s) for at, t in middles]
        line_plot(flows, flow, COLOURS[index], 1 << 62)
    plot.y_range.start = flows.y_range.start = 0
    plot.yaxis.formatter = short_numbers()
    flows.yaxis.formatter = short_numbers()
    part.plots |= {"rate": plot, "bytes": flows}
    part.data["throughput"] = _data(traffic, start, width)
    rest = len(totals) - len(top)
    more = f" {rest} more APIs are in the CSV." if rest > 0 else ""
    apis = key(zip(top, COLOURS, strict=False))
    directions = key(zip(_DIRECTIONS, COLOURS, strict=False))
    part.html = (
        f"{apis}{{{{rate}}}}{directions}{{{{bytes}}}}"
        f"<p class='note'>Each point is {context.bucket_s} s.{_grey(context)}{more} "
        f"{link('throughput')}</p>"
        f"{_errors(traffic)}"
    )
    return part


def _is_hole(context: ReportContext, start: int, width: int) -> bool:
    """Return whether nothing of a bucket was recorded."""
    return any(first <= start and start + width <= last for first, last in context.holes)


def _grey(context: ReportContext) -> str:
    return " Grey: not recorded." if context.holes else ""


def _errors(traffic: Traffic) -> str:
    if not traffic.errors:
        return ""
    rows = [
        (text(api), text(error), count(number))
        for (api, error), number in traffic.errors.most_common(_ERRORS_MAX)
    ]
    body = table(
        ("API", "error", "responses"), rows, right=(2,), rest=len(traffic.errors) - len(rows)
    )
    return f"<details open><summary>Errors in responses</summary>{body}</details>"


def _data(traffic: Traffic, start: int, width: int) -> pa.Table:
    rows = [
        {
            "time_ns": start + at * width,
            "api": api,
            "exchanges": number,
            "request_bytes_all_apis": traffic.request_bytes[at],
            "response_bytes_all_apis": traffic.response_bytes[at],
        }
        for (at, api), number in sorted(traffic.rate.items())
    ]
    return pa.Table.from_pylist(rows)
