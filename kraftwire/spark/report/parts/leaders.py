"""The leaders over time, and the gaps between them."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from bokeh.models import HoverTool

from kraftwire.spark.report.folder import (
    ClusterNames,
    Interval,
    ReportContext,
    ReportPart,
    TableFolder,
)
from kraftwire.spark.report.formatting import (
    duration,
    evidence,
    link,
    no_rows,
    plural,
    table,
    text,
    when,
)
from kraftwire.spark.report.plots import COLOURS, GAP, INK, LEFT, time_bars, time_figure

_SECOND_NS = 1_000_000_000
_NOBODY = "nobody"
_NOT_KNOWN = "not known"
# In place of a leader: nothing is known of the time.
NOT_RECORDED = "not recorded"
_TO_THE_END = "leads to the end"
_EVENT_ROWS = 80

# Kinds of events that the page lists; the CSV has all.
_CONCLUSIONS = ("epoch-known", "contradiction", "replica-files")
_QUIET = frozenset({*_CONCLUSIONS, "fetch", "disconnect", "reminder", "snapshot-written"})


def leaderships(context: ReportContext) -> list[dict[str, Any]]:
    """Return when each epoch of each cluster had which leader; without a leader the node is None.

    A time of which nothing was recorded has the node `NOT_RECORDED`, and no epoch. For a chosen
    interval: those who led in it, whenever they were elected.
    """
    columns = ["time_ns", "cluster", "kind", "epoch", "node", "details"]
    rows = TableFolder(context.folder.path).rows("raft_timeline", columns)
    found: list[dict[str, Any]] = []
    by_cluster: dict[str | None, list[dict[str, Any]]] = {}
    for row in (each for each in rows if each["kind"] == "not-recorded"):
        until = json.loads(row["details"])["until"]
        found.append(
            {
                "cluster": row["cluster"], "epoch": None, "node": NOT_RECORDED,
                "start": row["time_ns"], "end": round(until * _SECOND_NS),
                "ending": NOT_RECORDED,
            }
        )
    led = (row for row in rows if row["kind"] in ("leader", "epoch"))
    for row in sorted(led, key=lambda row: row["time_ns"]):
        by_cluster.setdefault(row["cluster"], []).append(row)
    for cluster, elected in by_cluster.items():
        last = _known_until(context, [row for row in rows if row["cluster"] == cluster])
        for index, row in enumerate(elected):
            details = json.loads(row["details"] or "{}")
            following = elected[index + 1]["time_ns"] if index + 1 < len(elected) else None
            ended = details.get("end")
            end = min(round(ended * _SECOND_NS) if ended else last, following or last)
            end = max(end, row["time_ns"])
            common = {"cluster": cluster, "epoch": row["epoch"]}
            found.append(
                {
                    **common,
                    "node": row["node"] or _NOT_KNOWN,
                    "start": row["time_ns"],
                    "end": end,
                    "ending": details.get("ending") or _TO_THE_END,
                }
            )
            if details.get("leaderless"):
                first, until = (round(each * _SECOND_NS) for each in details["leaderless"])
                found.append(
                    {**common, "node": None, "start": first, "end": until, "ending": "no leader"}
                )
    return _clipped(context, sorted(found, key=lambda row: (str(row["cluster"]), row["start"])))


def _known_until(context: ReportContext, events: list[dict[str, Any]]) -> int:
    """Return until when a leader is known to lead: to the end of the recording that has the last
    of the events.
    """
    latest = max(row["time_ns"] for row in events)
    ends = (start for start, _ in context.holes if start >= latest)
    return next(ends, context.extent[1] if context.extent else 0)


def _clipped(context: ReportContext, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the parts of leaderships that are in the chosen interval."""
    if context.folder.interval == Interval():
        return found
    if context.extent is None:
        return []
    first, last = context.extent
    inside = []
    for row in found:
        if row["start"] <= last and row["end"] >= first:
            is_led = row["node"] not in (None, NOT_RECORDED)
            ending = _TO_THE_END if row["end"] > last and is_led else row["ending"]
            start, end = max(row["start"], first), min(row["end"], last)
            inside.append({**row, "start": start, "end": end, "ending": ending})
    return inside


def leaders_part(context: ReportContext) -> ReportPart:
    """A bar for every leadership, red where there was no leader, and the events of the quorum."""
    part = ReportPart("leaders", "Who led when")
    found = leaderships(context)
    events = context.folder.table("raft_timeline")
    details = _replica_table(events.to_pylist()) + _event_table(context, events.to_pylist())
    if not found:
        nothing = "No leader is known." if len(events) else "Nothing of a KRaft quorum was seen."
        part.html = no_rows(context.folder, "raft_timeline", nothing)
        if len(events):
            part.data["timeline"] = events
            part.html += details
        return part
    clusters = ClusterNames(context.folder)
    # From the bottom: by cluster, the line without a leader and then its nodes, the first on top.
    lines = {
        _name(row, clusters): (
            row["cluster"] or "", row["node"] not in (None, NOT_RECORDED), row["node"] or ""
        )
        for row in found
    }
    names = sorted(lines, key=lambda name: lines[name][2], reverse=True)
    names.sort(key=lambda name: lines[name][:2])
    bars = [
        {
            "name": _name(row, clusters),
            "start": row["start"],
            "end": row["end"],
            "epoch": "" if row["epoch"] is None else str(row["epoch"]),
            "colour": _colour(row),
            "took": duration(row["end"] - row["start"]),
            "from": when(context, row["start"]),
            "ending": row["ending"],
        }
        for row in found
    ]
    plot = time_figure(context, 60 + 34 * len(names), y_range=names, min_border_left=LEFT)
    time_bars(
        plot, context.axis, bars,
        [("", "@name"), ("epoch", "@epoch"), ("from", "@from"), ("for", "@took"), ("", "@ending")],
    )  # fmt: skip
    for tool in plot.select(HoverTool):
        tool.point_policy = "follow_mouse"
    part.plots["leaders"] = plot
    part.data["leaders"] = pa.Table.from_pylist(found)
    part.data["timeline"] = events
    part.html = (
        "{{leaders}}<p class='note'>Red: no leader. Grey: not recorded. Colours distinguish "
        f"epochs. {link('leaders')}</p>"
        + _leadership_table(context, found)
        + details
    )
    return part


def _colour(row: dict[str, Any]) -> str:
    if row["node"] is None:
        return GAP
    return INK if row["node"] == NOT_RECORDED else COLOURS[(row["epoch"] or 0) % len(COLOURS)]


def _name(row: dict[str, Any], clusters: ClusterNames) -> str:
    if row["node"] == _NOT_KNOWN:
        return f"leader {_NOT_KNOWN}{clusters.after(row['cluster'])}"
    who = _NOBODY if row["node"] is None else f"node {row['node']}"
    if row["node"] == NOT_RECORDED:
        who = NOT_RECORDED
    return who + clusters.after(row["cluster"])


def _leadership_table(context: ReportContext, found: list[dict[str, Any]]) -> str:
    rows = [
        (
            text(row["epoch"]) if row["node"] is not None else "",
            text(row["node"]) if row["node"] is not None else '<b class="error">nobody</b>',
            when(context, row["start"]),
            duration(row["end"] - row["start"]),
            text(row["ending"]),
        )
        for row in found
    ]
    head = ("epoch", "leader", "from", "for", "how it ended")
    return table(head, rows[:60], right=(0, 1), rest=len(rows) - 60)


def _replica_table(events: list[dict[str, Any]]) -> str:
    """Return the replicas whose files are among the inputs, the furthest first; and what files say
    of epochs whose time is not known.
    """
    known = [row for row in events if row["kind"] in ("epoch-known", "contradiction")]
    html = "".join(
        f"<p>{text(_sentence(row))}</p>" for row in sorted(known, key=lambda row: row["kind"])
    )
    replicas = [
        (row, json.loads(row["details"])) for row in events if row["kind"] == "replica-files"
    ]
    if not replicas:
        return html
    lines = [
        (
            text(row["node"]),
            text(details["folder"]),
            text((details["end"] or {}).get("epoch")),
            text((details["end"] or {}).get("offset")),
            text(row["text"]),
        )
        for row, details in replicas
    ]
    head = ("node", "folder", "last epoch", "end offset", "may be kept?")
    return f"{html}<h3>Replicas on disk</h3>{table(head, lines, right=(0, 2, 3))}"


def _sentence(row: dict[str, Any]) -> str:
    if row["kind"] == "contradiction":
        return f"Contradiction: {row['text']}."
    who = f", leader {row['node']}," if row["node"] else ""
    return f"Epoch {row['epoch']}{who} {row['text']}."


def _event_table(context: ReportContext, events: list[dict[str, Any]]) -> str:
    shown = sorted((e for e in events if e["kind"] not in _QUIET), key=lambda e: e["time_ns"])
    rows = [
        (
            when(context, row["time_ns"]),
            text(row["epoch"]),
            text(row["node"]),
            text(row["text"]),
            evidence(row["file"], row["position"]),
        )
        for row in shown
    ]
    body = table(
        ("time (UTC)", "epoch", "node", "what happened", "where"),
        rows[:_EVENT_ROWS],
        right=(1, 2),
        rest=len(rows) - _EVENT_ROWS,
    )
    title = f"{plural(len(rows), 'event')} of the quorum {link('timeline')}"
    return f"<details><summary>{title}</summary>{body}</details>"
