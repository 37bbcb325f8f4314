"""Writes the report: reads the tables, fills the parts, saves the page and a CSV for each plot.

The page replaces an older one as a whole, so a reader never opens half of it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
from bokeh.models import Range1d

from kraftwire import __version__
from kraftwire.errors import StorageError
from kraftwire.spark.report.folder import Folder, Interval, span_of
from kraftwire.spark.report.page import page
from kraftwire.spark.report.part import Context, Part
from kraftwire.spark.report.parts.anomalies import anomalies_part
from kraftwire.spark.report.parts.connections import connections_part
from kraftwire.spark.report.parts.groups import groups_part
from kraftwire.spark.report.parts.inputs import bad_part, inputs_part
from kraftwire.spark.report.parts.lag import lag_part
from kraftwire.spark.report.parts.latency import latency_part
from kraftwire.spark.report.parts.leaders import leaders_part
from kraftwire.spark.report.parts.throughput import throughput_part
from kraftwire.spark.report.parts.traffic import Traffic, read_traffic
from kraftwire.spark.report.plots import overview
from kraftwire.spark.report.summary import numbers, verdict
from kraftwire.spark.report.words import clock, text
from kraftwire.spark.tables import TABLES

__all__ = ["write"]

_MS = 1_000_000
_SECOND_NS = 1_000_000_000
_OVERVIEW = "overview"


def write(folder: Path, interval: Interval | None = None) -> Path:
    """Write `report.html` and `report/*.csv` into a folder of tables; return the path of the page.

    Only the `interval` counts; anything with a duration counts if it overlaps the interval. CSV
    files of an earlier report are removed. Raises: StorageError if the folder has no table, or if
    one cannot be read.
    """
    if not any(any((folder / name).glob("*.parquet")) for name in TABLES):
        raise StorageError("no tables; kraftwire pipeline run writes them", file=str(folder))
    context = _context(Folder(folder, interval))
    traffic = read_traffic(context)
    parts = [
        leaders_part(context),
        anomalies_part(context),
        lag_part(context),
        latency_part(traffic),
        throughput_part(context, traffic),
        groups_part(context),
        connections_part(context),
        bad_part(context),
        inputs_part(context),
    ]
    _write_data(folder / "report", parts)
    return _save(folder / "report.html", _html(context, traffic, parts))


def _context(folder: Folder) -> Context:
    extent = folder.extent()
    if extent is None:
        return Context(folder, None, 1, Range1d(0, 1))
    # Bokeh counts milliseconds.
    first, last = extent[0] / _MS, max(extent[1], extent[0] + _SECOND_NS) / _MS
    margin = (last - first) * 0.005
    times = Range1d(first - margin, last + margin)
    return Context(folder, extent, span_of(extent), times)


def _html(context: Context, traffic: Traffic, parts: list[Part]) -> str:
    plots: dict[str, Any] = {name: plot for part in parts for name, plot in part.plots.items()}
    above = ""
    if context.extent is not None and traffic.count:
        plots[_OVERVIEW] = _overview(context, traffic)
        above = (
            '<p class="interval"><span>Chosen interval (UTC): <b id="interval" '
            f'data-range="{context.times.id}"></b></span>'
            '<button id="all" type="button">All of it</button>'
            '<span class="note">Drag the coloured field, or its edges: all plots follow.</span></p>'
            f"{{{{{_OVERVIEW}}}}}"
        )
    name = context.folder.path.resolve().name
    return page(
        title=f"Kafka traffic in {name}",
        when=_when(context),
        verdict=verdict(context, traffic),
        numbers=numbers(context, traffic),
        overview=above,
        parts=parts,
        plots=plots,
        footer=f"kraftwire {text(__version__)}. All times are UTC.",
    )


def _overview(context: Context, traffic: Traffic) -> Any:
    extent = context.extent or (0, 1)
    sums: dict[int, int] = {}
    for (at, _), number in traffic.rate.items():
        sums[at] = sums.get(at, 0) + number
    spans = sorted(sums)
    times = [extent[0] + each * context.span * _SECOND_NS for each in spans]
    return overview(context, times, [sums[each] for each in spans])


def _when(context: Context) -> str:
    if context.extent is None:
        return "No frame has a time."
    first, last = context.extent
    chosen = context.folder.interval
    only = " (a chosen interval)" if chosen != Interval() else ""
    same_day = first // (86_400 * _SECOND_NS) == last // (86_400 * _SECOND_NS)
    until = clock(last, with_date=not same_day)
    return f"{clock(first, with_date=True)} to {until} UTC{only}"


def _write_data(folder: Path, parts: list[Part]) -> None:
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.csv"):
        path.unlink()
    for part in parts:
        for name, table in part.data.items():
            pa_csv.write_csv(_flat(table), folder / f"{name}.csv")


def _flat(table: pa.Table) -> pa.Table:
    """Return a table without lists and bytes, which CSV lacks; only evidence has any."""
    keep = [
        field.name
        for field in table.schema
        if not (pa.types.is_nested(field.type) or pa.types.is_binary(field.type))
    ]
    return table.select(keep)


def _save(path: Path, html: str) -> Path:
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_text(html, encoding="utf-8")
    aside.replace(path)
    return path
