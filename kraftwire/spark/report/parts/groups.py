"""Groups: their rebalances and their lag."""

from __future__ import annotations

from typing import Any

from kraftwire.spark.report.folder import ClusterNames, ReportContext, ReportPart
from kraftwire.spark.report.formatting import (
    clip,
    count,
    duration,
    evidence,
    key,
    link,
    nanoseconds,
    no_rows,
    table,
    text,
    when,
)
from kraftwire.spark.report.parts.lag import group_multiples
from kraftwire.spark.report.plots import COLOURS, time_bars, time_figure

_GROUPS_MAX = 20
_PROTOCOLS = dict(zip(("classic", "consumer", "share", "streams"), COLOURS, strict=False))


def groups_part(context: ReportContext) -> ReportPart:
    """A bar for each rebalance, a table of groups, small multiples of lag."""
    part = ReportPart("groups", "Groups and rebalances")
    rows = context.folder.rows("groups")
    lag = group_multiples(context, part)
    heading = "<h3>Lag of groups</h3>" if lag else ""
    if not rows:
        part.html = no_rows(context.folder, "groups", "No group rebalanced.") + heading + lag
        return part
    part.data["rebalances"] = context.folder.table("groups")
    clusters = ClusterNames(context.folder)
    by_group: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: row["start"]):
        name = f"{row['group_id']}{clusters.after(row['cluster'])}"
        by_group.setdefault(name, []).append(row)
    busiest = sorted(by_group, key=lambda name: (-len(by_group[name]), name))
    shown = sorted(busiest[:_GROUPS_MAX], reverse=True)
    part.plots["rebalances"] = _plot(context, shown, by_group)
    part.html = (
        f"{key(_seen(rows))}{{{{rebalances}}}}<p class='note'>From the first request of a "
        f"generation to the last response. {link('rebalances')}</p>"
        + _table(context, by_group, busiest)
        + heading
        + lag
    )
    return part


def _seen(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return the protocols of some rebalances with their colours."""
    protocols = {row["protocol"] for row in rows}
    return [each for each in _PROTOCOLS.items() if each[0] in protocols]


def _plot(
    context: ReportContext, shown: list[str], by_group: dict[str, list[dict[str, Any]]]
) -> Any:
    labels = {name: _unique(name, shown) for name in shown}
    bars = [
        {
            "name": labels[name],
            "start": nanoseconds(row["start"]),
            "end": nanoseconds(row["end"]),
            "colour": _PROTOCOLS.get(row["protocol"], COLOURS[4]),
            "generation": row["generation"],
            "members": row["members"],
            "took": duration(nanoseconds(row["end"]) - nanoseconds(row["start"])),
        }
        for name in shown
        for row in by_group[name]
    ]
    plot = time_figure(context, 50 + 24 * len(shown), y_range=[labels[name] for name in shown])
    tips = [("", "@name"), ("generation", "@generation"), ("members", "@members")]
    time_bars(plot, context.axis, bars, [*tips, ("took", "@took")])
    return plot


def _unique(name: str, names: list[str]) -> str:
    """Return a short label that no other name has."""
    short = clip(name, 24)
    same = [each for each in names if clip(each, 24) == short]
    return short if len(same) == 1 else f"{short} {same.index(name) + 1}"


def _table(
    context: ReportContext, by_group: dict[str, list[dict[str, Any]]], busiest: list[str]
) -> str:
    lines = []
    for name in busiest[:_GROUPS_MAX]:
        rows = by_group[name]
        longest = max(rows, key=lambda row: row["end"] - row["start"])
        lines.append(
            (
                text(clip(name)),
                text(rows[-1]["protocol"]),
                count(len(rows)),
                text(max(row["members"] or 0 for row in rows)),
                duration(nanoseconds(longest["end"]) - nanoseconds(longest["start"])),
                when(context, nanoseconds(longest["start"])),
                text(clip(next((r["reason"] for r in rows if r["reason"]), ""), 60)),
                evidence(longest["file"], longest["position"]),
            )
        )
    head = ("group", "protocol", "rebalances", "members", "longest", "began", "reason", "where")
    return table(head, lines, right=(2, 3, 4), rest=len(busiest) - len(lines))
