"""Exchanges and bytes over time."""

from __future__ import annotations

from collections.abc import Mapping
from operator import add
from typing import Any

import pyarrow as pa

from kraftwire.spark.report.folder import ReportContext, ReportPart
from kraftwire.spark.report.formatting import link, no_rows
from kraftwire.spark.report.parts.over_time import bucket_time, by_name, draw_buckets, note
from kraftwire.spark.report.parts.traffic import Traffic, totals
from kraftwire.spark.report.plots import LEFT, short_numbers, time_figure


def throughput_part(context: ReportContext, traffic: Traffic) -> ReportPart:
    """Requests per second by API, and bytes per second in both directions."""
    part = ReportPart("throughput", "Throughput")
    if context.extent is None or not traffic.count:
        part.html = no_rows(context.folder, "exchanges", "There are no exchanges.")
        return part
    apis = by_name(traffic.rate, totals(traffic.rate, 1), add)
    flows = {"requests": traffic.request_bytes, "responses": traffic.response_bytes}
    part.plots["rate"], rate_key = _rates(context, 210, "exchanges per second", apis)
    part.plots["bytes"], bytes_key = _rates(context, 190, "bytes per second", flows)
    part.data["throughput"] = _data(context, traffic)
    part.html = (
        f"{rate_key}{{{{rate}}}}{bytes_key}{{{{bytes}}}}"
        f"<p class='note'>{note(context)} {link('throughput')}</p>"
    )
    return part


def _rates(
    context: ReportContext, height: int, label: str, sums: Mapping[str, Mapping[int, int]]
) -> tuple[Any, str]:
    """Return the plot and the legend of sums of buckets, by name, as rates."""
    plot = time_figure(context, height, label=label, min_border_left=LEFT)
    plot.y_range.start = 0
    plot.yaxis.formatter = short_numbers()
    seconds = context.axis.bucket_s
    rates = {
        name: {at: number / seconds for at, number in line.items()} for name, line in sums.items()
    }
    return plot, draw_buckets(context, plot, rates)


def _data(context: ReportContext, traffic: Traffic) -> pa.Table:
    rows = [
        {
            "time_ns": bucket_time(context, at),
            "api": api,
            "exchanges": number,
            "slowest_ns": traffic.slowest.get((at, api)),
            "request_bytes_all_apis": traffic.request_bytes[at],
            "response_bytes_all_apis": traffic.response_bytes[at],
        }
        for (at, api), number in sorted(traffic.rate.items())
    ]
    return pa.Table.from_pylist(rows)
