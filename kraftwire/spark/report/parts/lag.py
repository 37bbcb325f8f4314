"""Lag of replicas and of groups: a small plot for each, without a line where nothing was seen."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kraftwire.spark.report.folder import ClusterNames, ReportContext, ReportPart
from kraftwire.spark.report.formatting import clip, count, link, nanoseconds, no_rows, text
from kraftwire.spark.report.plots import COLOURS, line_plot, short_numbers, time_figure

_PLOTS_MAX = 12
# A replica fetches twice a second; after this long without a Fetch its line stops.
_PAUSE_NS = 3_000_000_000
# A group commits every five seconds (auto.commit.interval.ms); six of these without one, and
# without anything new in the partition, say nothing about it.
_COMMIT_PAUSE_NS = 30_000_000_000


def largest_lag(context: ReportContext) -> int | None:
    """Return the largest lag of any replica; None if none fetched."""
    table = context.folder.table("replica_lag", ["lag_max"])
    found: int | None = pc.max(table["lag_max"]).as_py()
    return found


def lag_part(context: ReportContext) -> ReportPart:
    """Small multiples on one time axis."""
    part = ReportPart("lag", "Lag of replicas")
    clusters = ClusterNames(context.folder)
    table = _worst(_with_topic(context.folder.table("replica_lag"), clusters))
    if not table.num_rows:
        part.html = no_rows(
            context.folder, "replica_lag", "No replica fetched: there is no lag to show."
        )
        return part
    part.data["replica_lag"] = table
    part.html = _multiples(
        context,
        part,
        table,
        "lag_max",
        pause_ns=_PAUSE_NS,
        note="Records behind the leader, the maximum of each second; each plot has a scale of its "
        f"own. No line: the replica did not fetch; it led or was down. {link('replica_lag')}",
    )
    return part


def _with_topic(table: pa.Table, clusters: ClusterNames) -> pa.Table:
    """Add the column `of`: the topic, and its cluster where there are several."""
    topic = pc.coalesce(table["topic"], table["topic_id"], pa.scalar("unknown topic"))
    if clusters.are_several:
        after = [clusters.after(each) for each in table["cluster"].to_pylist()]
        topic = pc.binary_join_element_wise(topic, pa.array(after, pa.string()), "")
    return table.append_column("of", topic)


def _worst(table: pa.Table) -> pa.Table:
    """Return the largest lag of each replica in each second, over the partitions of each topic."""
    grouped = table.group_by(["bucket", "of", "replica_id"]).aggregate(
        [("lag_max", "max"), ("behind_ms", "max"), ("fetches", "sum")]
    )
    names = [name.removesuffix("_max").removesuffix("_sum") for name in grouped.column_names]
    names = [{"lag": "lag_max", "lag_max_max": "lag_max"}.get(name, name) for name in names]
    who = pc.binary_join_element_wise(
        "replica ", pc.cast(grouped["replica_id"], pa.string()), " of ", grouped["of"], ""
    )
    return grouped.rename_columns(names).append_column("name", who).sort_by("bucket")


def _multiples(
    context: ReportContext,
    part: ReportPart,
    table: pa.Table,
    column: str,
    *,
    pause_ns: int,
    note: str,
) -> str:
    peaks = table.group_by("name").aggregate([(column, "max")]).to_pylist()
    peaks.sort(key=lambda row: (-(row[f"{column}_max"] or 0), row["name"]))
    shown = sorted(row["name"] for row in peaks[:_PLOTS_MAX])
    cells = []
    for index, name in enumerate(shown):
        rows = table.filter(pc.equal(table["name"], name)).select(["bucket", column]).to_pylist()
        points = [(nanoseconds(row["bucket"]), row[column]) for row in rows]
        peak = max((value or 0 for _, value in points), default=0)
        # A line of zeros must not lie on the axis, where it would look like no line.
        top = max(peak, 4)
        plot = time_figure(context, 116, columns=3, y_range=(-0.08 * top, 1.08 * top))
        plot.yaxis.ticker.desired_num_ticks = 3
        plot.yaxis.formatter = short_numbers()
        colour = COLOURS[index % len(COLOURS)]
        line_plot(plot, context.axis, points, colour, pause_ns, holds=pause_ns != _PAUSE_NS)
        key = f"{part.id}-{column}-{index}"
        part.plots[key] = plot
        cells.append(
            f"<figure><figcaption>{text(clip(name))} <span>max {count(peak)}</span></figcaption>"
            f"{{{{{key}}}}}</figure>"
        )
    rest = len(peaks) - len(shown)
    more = f"<p class='note'>and {rest:,} with smaller lags, in the CSV</p>" if rest else ""
    return f"<div class='multiples'>{''.join(cells)}</div>{more}<p class='note'>{note}</p>"


def group_multiples(context: ReportContext, part: ReportPart) -> str:
    """Return the lag of groups, summed over the partitions of a topic; empty if there is none."""
    table = context.folder.table("group_lag")
    if not table.num_rows:
        return ""
    last = _carried(_with_topic(table, ClusterNames(context.folder)))
    part.data["group_lag"] = last
    return _multiples(
        context,
        part,
        last,
        "lag",
        pause_ns=_COMMIT_PAUSE_NS,
        note="Records that a group has not committed, all partitions of the topic. "
        f"{link('group_lag')}",
    )


def _carried(table: pa.Table) -> pa.Table:
    """Sum over partitions: each one's lag holds until its next row."""
    rows = sorted(
        table.select(["bucket", "group_id", "of", "partition", "lag"]).to_pylist(),
        key=lambda row: row["bucket"],
    )
    lags: dict[tuple[str, str], dict[int, int]] = {}
    sums: dict[tuple[str, Any], int] = {}
    for row in rows:
        key = row["group_id"], row["of"]
        if row["lag"] is None:
            continue
        lags.setdefault(key, {})[row["partition"]] = row["lag"]
        sums[f"{key[0]} on {key[1]}", row["bucket"]] = sum(lags[key].values())
    schema = pa.schema(
        [("name", pa.string()), ("bucket", table.schema.field("bucket").type), ("lag", pa.int64())]
    )
    found = [{"name": name, "bucket": at, "lag": lag} for (name, at), lag in sums.items()]
    return pa.Table.from_pylist(found, schema)
