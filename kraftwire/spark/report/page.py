"""Writes the report: one self-contained page for screens and print, and a CSV for each plot.

The page replaces an older one as a whole, so a reader never opens half of it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
from bokeh.document import Document
from bokeh.embed import components
from bokeh.models import Axis, Range1d
from bokeh.resources import Resources

from kraftwire import __version__
from kraftwire.errors import StorageError
from kraftwire.printable import spreadsheet_cell
from kraftwire.spark.paths import own_folder
from kraftwire.spark.report.axis import TimeAxis, densest, without_holes
from kraftwire.spark.report.folder import (
    Interval,
    ReportContext,
    ReportPart,
    TableFolder,
)
from kraftwire.spark.report.formatting import clock, text
from kraftwire.spark.report.parts.anomalies import anomalies_part
from kraftwire.spark.report.parts.connections import connections_part
from kraftwire.spark.report.parts.errors import errors_part
from kraftwire.spark.report.parts.groups import groups_part
from kraftwire.spark.report.parts.inputs import bad_part, inputs_part
from kraftwire.spark.report.parts.lag import lag_part
from kraftwire.spark.report.parts.latency import latency_part
from kraftwire.spark.report.parts.leaders import leaders_part
from kraftwire.spark.report.parts.throughput import throughput_part
from kraftwire.spark.report.parts.traffic import Traffic, read_traffic
from kraftwire.spark.report.plots import overview
from kraftwire.spark.report.style import SCRIPT, STYLE
from kraftwire.spark.report.summary import numbers, verdict
from kraftwire.spark.tables import TABLES

_SHELL = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline';
 img-src data:">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
{library}
</head>
<body>
<header>
<h1>{title}</h1>
<p class="when">{when}</p>
<p class="verdict">{verdict}</p>
<dl class="numbers">{numbers}</dl>
<nav>{nav}</nav>
</header>
<main>
{overview}
{parts}
</main>
<footer>{footer}</footer>
<script>const INK = {ink}, AXIS = {axis};{script}</script>
{plots}
</body>
</html>
"""

_MS = 1_000_000
_SECOND_NS = 1_000_000_000
_OVERVIEW = "overview"
# The page may hold payloads and names: it is for its owner to read and to pass on.
_OWN_FILE = 0o600


def page(
    *,
    title: str,
    when: str,
    verdict: str,
    numbers: Sequence[tuple[str, str, str]],
    overview: str,
    parts: Sequence[ReportPart],
    plots: dict[str, Any],
    axis: Mapping[str, Any],
    footer: str,
) -> str:
    """The HTML of the report.

    `title` and `when` are text; `verdict`, `numbers`, `overview` and `footer` are HTML;
    ``{{name}}`` in HTML stands for the plot of that name in `plots`, those of parts among them;
    `axis` is what the script knows of their time axis.
    """
    script, divs = _drawn(plots) if plots else ("", {})
    body = "".join(
        f'<section id="{part.id}"><h2>{text(part.title)}</h2>{_filled(part.html, divs)}</section>'
        for part in parts
    )
    figures = "".join(
        f"<div><dt>{text(what)}</dt><dd>{value}</dd><dd class='note'>{remark}</dd></div>"
        for value, what, remark in numbers
    )
    resources = Resources(mode="inline", components=["bokeh"])
    return _SHELL.format(
        title=text(title),
        when=text(when),
        style=STYLE,
        library=resources.render_js() if plots else "",
        verdict=verdict,
        numbers=figures,
        nav="".join(f'<a href="#{part.id}">{text(part.title)}</a>' for part in parts),
        overview=_filled(overview, divs),
        parts=body,
        footer=footer,
        ink=json.dumps(_ids(plots)),
        axis=json.dumps(axis),
        script=SCRIPT,
        plots=script,
    )


def _drawn(plots: dict[str, Any]) -> tuple[str, dict[str, str]]:
    """Return the script that draws plots, and the places for them."""
    document = Document()
    # Otherwise the models of all plots are looked for again at each plot.
    with document.models.freeze():
        for plot in plots.values():
            document.add_root(plot)
    return components(plots)


def _filled(html: str, divs: dict[str, str]) -> str:
    """Put plots in their places. Only known names of plots are replaced, and text from files has
    its braces escaped.
    """
    for name, div in divs.items():
        html = html.replace(f"{{{{{name}}}}}", f'<div class="plot">{div}</div>')
    return html


def _ids(plots: dict[str, Any]) -> list[str]:
    """Return the ids of axes, whose colours follow those of the page."""
    return [each.id for plot in plots.values() for each in plot.select(Axis)]


def write(folder: Path, interval: Interval | None = None) -> Path:
    """Write `report.html` and `report/*.csv` into a folder of tables; return the path of the page.

    Only the `interval` counts; anything with a duration counts if it overlaps the interval. CSV
    files of an earlier report are removed. Raises: StorageError if the folder has no table, or if
    one cannot be read.
    """
    if not any(any((folder / name).glob("*.parquet")) for name in TABLES):
        raise StorageError("no tables; kraftwire pipeline run writes them", file=str(folder))
    context = _context(TableFolder(folder, interval))
    traffic = read_traffic(context)
    _begin_at_densest(context, traffic)
    parts = [
        leaders_part(context),
        anomalies_part(context),
        lag_part(context),
        latency_part(context, traffic),
        throughput_part(context, traffic),
        errors_part(context, traffic),
        groups_part(context),
        connections_part(context),
        bad_part(context),
        inputs_part(context),
    ]
    _write_data(folder / "report", parts)
    return _save(folder / "report.html", _html(context, traffic, parts))


def _context(folder: TableFolder) -> ReportContext:
    extent = folder.extent()
    if extent is None:
        return ReportContext(folder, None, TimeAxis(0, 0), Range1d(0, 1))
    holes = folder.holes(extent)
    axis = without_holes(extent, holes)
    return ReportContext(folder, extent, axis, Range1d(*_whole(axis)), holes)


def _whole(axis: TimeAxis) -> tuple[float, float]:
    """Return the range of the whole axis, with margins. Units: bokeh's milliseconds."""
    first, length = axis.first / _MS, max(axis.length, _SECOND_NS) / _MS
    return first - length * 0.005, first + length * 1.005


def _script_axis(context: ReportContext) -> dict[str, Any]:
    """Return the axis as the page's script reads it. Units: milliseconds."""
    axis = context.axis
    return {
        "first": axis.first / _MS,
        "last": axis.last / _MS,
        "joints": [(place / _MS, length / _MS) for place, length in axis.joints],
        "days": context.has_days,
        "whole": _whole(axis),
    }


def _begin_at_densest(context: ReportContext, traffic: Traffic) -> None:
    """Let plots begin with the time of nearly all exchanges, where the rest is much longer."""
    width = context.axis.bucket_s * _SECOND_NS
    found = densest(traffic.exchanges, context.axis.length // width + 1)
    if found is not None:
        first, last = (context.axis.first + each * width for each in (found[0] - 1, found[1] + 2))
        context.times.start = max(context.times.start, first / _MS)
        context.times.end = min(context.times.end, last / _MS)


def _html(context: ReportContext, traffic: Traffic, parts: list[ReportPart]) -> str:
    plots: dict[str, Any] = {name: plot for part in parts for name, plot in part.plots.items()}
    above = ""
    if context.extent is not None and traffic.count:
        plots[_OVERVIEW] = _overview(context, traffic)
        cut = "Grey: not recorded; the dashed line stands for most of that time."
        above = (
            '<p class="interval"><span>Chosen interval (UTC): <b id="interval" '
            f'data-range="{context.times.id}"></b></span>'
            '<button id="all" type="button">All of it</button>'
            "<span class='note'>Drag the coloured field, or its edges: all plots follow."
            f"{f' {cut}' if context.axis.joints else ''}</span></p>"
            f"{{{{{_OVERVIEW}}}}}"
        )
    name = context.folder.path.resolve().name
    return page(
        title=f"Kafka traffic in {name}",
        when=_covered(context),
        verdict=verdict(context, traffic),
        numbers=numbers(context, traffic),
        overview=above,
        parts=parts,
        plots=plots,
        axis=_script_axis(context),
        footer=f"kraftwire {text(__version__)}. All times are UTC.",
    )


def _overview(context: ReportContext, traffic: Traffic) -> Any:
    sums = traffic.exchanges
    width = context.axis.bucket_s * _SECOND_NS
    return overview(context, {context.axis.first + at * width: sums[at] for at in sums})


def _covered(context: ReportContext) -> str:
    if context.extent is None:
        return "No frame has a time."
    chosen = context.folder.interval
    only = " (a chosen interval)" if chosen != Interval() else ""
    first, last = context.extent
    until = clock(last, with_date=context.has_days)
    return f"{clock(first, with_date=True)} to {until} UTC{only}"


def _write_data(folder: Path, parts: list[ReportPart]) -> None:
    own_folder(folder)
    for path in folder.glob("*.csv"):
        path.unlink()
    for part in parts:
        for name, table in part.data.items():
            pa_csv.write_csv(_flat(table), folder / f"{name}.csv")


def _flat(table: pa.Table) -> pa.Table:
    """Return a table as CSV holds it: without lists and bytes, of which only evidence has any, and
    with texts that no spreadsheet takes for formulas.
    """
    keep = [
        field.name
        for field in table.schema
        if not (pa.types.is_nested(field.type) or pa.types.is_binary(field.type))
    ]
    flat = table.select(keep)
    for at, field in enumerate(flat.schema):
        if pa.types.is_string(field.type):
            cells = [None if each is None else spreadsheet_cell(each) for each in
                     flat.column(at).to_pylist()]
            flat = flat.set_column(at, field, pa.array(cells, field.type))
    return flat


def _save(path: Path, html: str) -> Path:
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.touch(_OWN_FILE)
    aside.write_text(html, encoding="utf-8")
    aside.replace(path)
    return path
