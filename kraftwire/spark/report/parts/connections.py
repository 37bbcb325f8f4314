"""Connections: who talked to whom, for how long, and what went wrong on the way."""

from __future__ import annotations

from collections import Counter
from typing import Any

from kraftwire.spark.report.folder import ReportContext, ReportPart
from kraftwire.spark.report.formatting import (
    clip,
    count,
    duration,
    evidence,
    link,
    nanoseconds,
    no_rows,
    plural,
    size,
    table,
    text,
)
from kraftwire.spark.report.plots import COLOURS, time_bars, time_figure

_SHOWN = 25
_PROTOCOL_COLOURS = {"kafka": COLOURS[0], "tls": COLOURS[2]}


def connections_part(context: ReportContext) -> ReportPart:
    """The busiest over time, and their figures."""
    part = ReportPart("connections", "Connections")
    rows = context.folder.rows("connections")
    if not rows:
        part.html = no_rows(context.folder, "connections", "There are no connections.")
        return part
    part.data["connections"] = context.folder.table("connections")
    busiest = sorted(rows, key=_weight, reverse=True)[:_SHOWN]
    for number, row in enumerate(busiest, 1):
        row["number"] = number
    timed = [row for row in busiest if row["first_time"] and row["last_time"]]
    if timed:
        part.plots["connections"] = _plot(context, timed)
    kinds = Counter(row["protocol"] or "unknown" for row in rows)
    protocols = ", ".join(f"{number:,} {text(kind)}" for kind, number in kinds.most_common())
    is_cut = len(busiest) < len(rows)
    which = f" The {len(busiest)} with the most bytes:" if is_cut else ""
    part.html = (
        f"<p>{plural(len(rows), 'connection')}: {protocols}.{which}</p>"
        + ("{{connections}}" if timed else "")
        + "<p class='note'>Numbered by bytes, as in the table below. Blue: Kafka, green: TLS, "
        + f"other: unknown. {link('connections')}</p>"
        + _table(busiest, len(rows))
    )
    return part


def _weight(row: dict[str, Any]) -> tuple[int, int]:
    return (row["client_bytes"] or 0) + (row["server_bytes"] or 0), row["frames"] or 0


def _plot(context: ReportContext, rows: list[dict[str, Any]]) -> Any:
    rows = sorted(rows, key=lambda row: row["first_time"], reverse=True)
    names = [f"{row['number']}  {clip(row['server'], 24)}" for row in rows]
    bars = [
        {
            "name": name,
            "connection": row["connection"],
            "start": nanoseconds(row["first_time"]),
            "end": nanoseconds(row["last_time"]),
            "frames": count(row["frames"]),
            "colour": _PROTOCOL_COLOURS.get(row["protocol"], COLOURS[1]),
            "took": duration(nanoseconds(row["last_time"]) - nanoseconds(row["first_time"])),
            "software": row["software"] or "",
        }
        for name, row in zip(names, rows, strict=True)
    ]
    plot = time_figure(context, 40 + 14 * len(names), y_range=names)
    plot.yaxis.major_label_text_font_size = "9px"
    time_bars(
        plot, context.axis, bars,
        [("", "@connection"), ("for", "@took"), ("frames", "@frames"), ("client", "@software")],
    )  # fmt: skip
    return plot


def _table(rows: list[dict[str, Any]], total: int) -> str:
    lines = [
        (
            count(row["number"]),
            text(clip(row["client"], 28)),
            text(clip(row["server"], 28)),
            text(row["protocol"]),
            size(row["client_bytes"]),
            size(row["server_bytes"]),
            count(row["frames"]),
            duration(row["round_trip_ns"] or None),
            size(row["retransmitted"]),
            size(row["gap_bytes"]),
            text(clip(row["tls_name"] or row["software"], 30)),
            text(row["closed_by"]),
            evidence(row["file"], row["position"]),
        )
        for row in rows
    ]
    head = (
        "", "client", "server", "protocol", "sent", "received", "frames", "round trip",
        "sent again", "not captured",
        "software", "closed by", "where",
    )  # fmt: skip
    body = table(head, lines, right=(0, 4, 5, 6, 7, 8, 9), rest=total - len(rows))
    return f"<details><summary>Their figures</summary>{body}</details>"
