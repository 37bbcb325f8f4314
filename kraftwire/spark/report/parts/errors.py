"""Errors in responses, over time and as a table."""

from __future__ import annotations

from collections import Counter
from operator import add

import pyarrow as pa

from kraftwire.spark.report.folder import ReportContext, ReportPart
from kraftwire.spark.report.formatting import count, link, no_rows, table, text
from kraftwire.spark.report.parts.over_time import bucket_time, by_name, draw_buckets, note
from kraftwire.spark.report.parts.traffic import Traffic, totals
from kraftwire.spark.report.plots import LEFT, short_numbers, time_figure

_ROWS_MAX = 20


def errors_part(context: ReportContext, traffic: Traffic) -> ReportPart:
    """A line for each of the most frequent errors, and a table by API."""
    part = ReportPart("errors", "Errors")
    if not traffic.errors:
        part.html = no_rows(context.folder, "exchanges", "No response has an error.")
        return part
    sums: Counter[tuple[int, str]] = Counter()
    for (at, _, error), number in traffic.errors.items():
        sums[at, error] += number
    lines = by_name(sums, totals(sums, 1), add)
    plot = time_figure(context, 160, label="errors", min_border_left=LEFT)
    legend = draw_buckets(context, plot, lines)
    plot.y_range.start = 0
    plot.yaxis.formatter = short_numbers()
    part.plots["errors"] = plot
    part.data["errors"] = _data(context, traffic)
    part.html = (
        f"{legend}{{{{errors}}}}<p class='note'>{note(context)} {link('errors')}</p>"
        + _table(traffic)
    )
    return part


def _table(traffic: Traffic) -> str:
    by_api: Counter[tuple[str, str]] = Counter()
    for (_, api, error), number in traffic.errors.items():
        by_api[api, error] += number
    rows = [
        (text(api), text(error), count(number))
        for (api, error), number in by_api.most_common(_ROWS_MAX)
    ]
    return table(("API", "error", "responses"), rows, right=(2,), rest=len(by_api) - len(rows))


def _data(context: ReportContext, traffic: Traffic) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {"time_ns": bucket_time(context, at), "api": api, "error": error, "responses": number}
            for (at, api, error), number in sorted(traffic.errors.items())
        ]
    )
