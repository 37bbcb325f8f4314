"""Findings of the rules, with evidence."""

from __future__ import annotations

from typing import Any

from kraftwire.spark.report.folder import ClusterNames, ReportContext, ReportPart
from kraftwire.spark.report.formatting import (
    clip,
    duration,
    evidence,
    link,
    nanoseconds,
    no_rows,
    table,
    text,
    when,
)

_ORDER = {"error": 0, "warning": 1, "info": 2}
_ROWS_MAX = 60


def found_anomalies(context: ReportContext) -> list[dict[str, Any]]:
    """Return the rows of the table, worst first."""
    rows = context.folder.rows("anomalies")
    rows.sort(key=lambda row: (_ORDER.get(row["severity"], 9), str(row["time"]), row["rule"]))
    return rows


def anomalies_part(context: ReportContext) -> ReportPart:
    """One line per finding."""
    part = ReportPart("anomalies", "Anomalies")
    rows = found_anomalies(context)
    if not rows:
        part.html = no_rows(context.folder, "anomalies", "No rule found anything.")
        return part
    part.data["anomalies"] = context.folder.table("anomalies")
    clusters = ClusterNames(context.folder)
    lines = [
        (
            f'<b class="{text(row["severity"])}">{text(row["severity"])}</b>',
            text(row["rule"]),
            when(context, nanoseconds(row["time"]) if row["time"] else None),
            _lasted(row),
            text(clip(row["node"], 32)) + text(clusters.after(row["cluster"])),
            text(clip(row["detail"], 400)),
            evidence(row["file"], row["position"]),
        )
        for row in rows[:_ROWS_MAX]
    ]
    head = ("", "rule", "time (UTC)", "for", "who", "what", "where")
    part.html = table(head, lines, rest=len(rows) - _ROWS_MAX) + (
        f"<p class='note'>Where: the file, and the byte position in it. {link('anomalies')}</p>"
    )
    return part


def _lasted(row: dict[str, Any]) -> str:
    start, end = row["time"], row["end_time"]
    if start is None or end is None or end == start:
        return ""
    return duration(nanoseconds(end) - nanoseconds(start))
