"""Latency, throughput and errors, by API and over time: all from one pass over the exchanges.

Latencies are counted in buckets 4.5 % wide, so memory does not grow with the exchanges.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftwire.spark.report.axis import TimeAxis
from kraftwire.spark.report.folder import ReportContext

_COLUMNS = (
    "time_ns", "api_name", "client_id", "latency_ns", "wait_ns", "service_ns", "request_size",
    "response_size", "errors",
)  # fmt: skip
_BUCKETS_PER_DOUBLING = 16
_SECOND_NS = 1_000_000_000


@dataclass(slots=True)
class Latencies:
    """A histogram. Units: nanoseconds; sixteen buckets per doubling."""

    counts: Counter[int] = field(default_factory=Counter)
    highest: int = 0

    def merge(self, other: Latencies) -> None:
        """Add the values of another one."""
        self.counts.update(other.counts)
        self.highest = max(self.highest, other.highest)

    @property
    def total(self) -> int:
        """Return the number of values."""
        return self.counts.total()

    def quantile(self, share: float) -> float | None:
        """Return the value that `share` of them do not exceed; None if there are none."""
        wanted = share * self.total
        seen = 0
        for each in sorted(self.counts):
            seen += self.counts[each]
            if seen >= wanted:
                return float(min(2 ** ((each + 0.5) / _BUCKETS_PER_DOUBLING), self.highest))
        return None


@dataclass(slots=True)
class Traffic:
    """Sums over the exchanges of the interval.

    `latency` by (API, client) without a Fetch's wait, `wait` of Fetches by client; `rate` and
    `slowest` (nanoseconds) by (bucket, API), `errors` by (bucket, API, error), `request_bytes` and
    `response_bytes` by bucket. Buckets count from the start of the axis.
    """

    count: int = 0
    latency: dict[tuple[str, str], Latencies] = field(
        default_factory=lambda: defaultdict(Latencies)
    )
    wait: dict[str, Latencies] = field(default_factory=lambda: defaultdict(Latencies))
    rate: Counter[tuple[int, str]] = field(default_factory=Counter)
    slowest: dict[tuple[int, str], int] = field(default_factory=dict)
    request_bytes: Counter[int] = field(default_factory=Counter)
    response_bytes: Counter[int] = field(default_factory=Counter)
    errors: Counter[tuple[int, str, str]] = field(default_factory=Counter)

    @property
    def exchanges(self) -> Counter[int]:
        """Return the number of exchanges in each bucket."""
        return totals(self.rate, 0)

    def by_api(self) -> dict[str, Latencies]:
        """Return the latency by API alone."""
        merged: dict[str, Latencies] = defaultdict(Latencies)
        for (api, _), one in self.latency.items():
            merged[api].merge(one)
        return merged


def totals(counts: Mapping[Any, int], part: int) -> Counter[Any]:
    """Return the sums of counts by one part of their keys."""
    sums: Counter[Any] = Counter()
    for key, number in counts.items():
        sums[key[part]] += number
    return sums


def read_traffic(context: ReportContext) -> Traffic:
    """Read all of the exchanges, a piece at a time."""
    traffic = Traffic()
    if context.extent is None:
        return traffic
    for batch in context.folder.batches("exchanges", _COLUMNS):
        table = pa.Table.from_batches([batch])
        table = table.filter(pc.greater(table["time_ns"], 0))
        if table.num_rows:
            _add(traffic, table, context.axis)
    return traffic


def _add(traffic: Traffic, table: pa.Table, axis: TimeAxis) -> None:
    traffic.count += table.num_rows
    api = pc.fill_null(table["api_name"], "unknown")
    client = pc.fill_null(table["client_id"], "(no client id)")
    places = axis.places(table["time_ns"].to_numpy())
    bucket = pa.array((places - axis.first) // (axis.bucket_s * _SECOND_NS))
    rows = pa.table(
        {
            "api": api,
            "client": client,
            "bucket": bucket,
            "service": pc.coalesce(table["service_ns"], table["latency_ns"]),
            "wait": table["wait_ns"],
            "request_bytes": table["request_size"],
            "response_bytes": table["response_size"],
        }
    )
    grouped = rows.group_by(["bucket", "api"])
    for row in grouped.aggregate([([], "count_all"), ("service", "max")]).to_pylist():
        at, slowest = (row["bucket"], row["api"]), row["service_max"]
        traffic.rate[at] += row["count_all"]
        if slowest is not None:
            traffic.slowest[at] = max(slowest, traffic.slowest.get(at, 0))
    sums = rows.group_by("bucket").aggregate([("request_bytes", "sum"), ("response_bytes", "sum")])
    for row in sums.to_pylist():
        traffic.request_bytes[row["bucket"]] += row["request_bytes_sum"] or 0
        traffic.response_bytes[row["bucket"]] += row["response_bytes_sum"] or 0
    for row in _latency_buckets(rows, "service", ["api", "client"]):
        _count(traffic.latency[str(row["api"]), str(row["client"])], row)
    fetches = rows.filter(pc.greater(pc.fill_null(rows["wait"], 0), 0))
    for row in _latency_buckets(fetches, "wait", ["client"]):
        _count(traffic.wait[str(row["client"])], row)
    _add_errors(traffic, rows.append_column("errors", table["errors"]))


def _add_errors(traffic: Traffic, rows: pa.Table) -> None:
    refused = rows.filter(pc.greater(pc.fill_null(pc.list_value_length(rows["errors"]), 0), 0))
    for row in refused.select(["bucket", "api", "errors"]).to_pylist():
        for error in row["errors"]:
            traffic.errors[row["bucket"], row["api"], error] += 1


def _latency_buckets(rows: pa.Table, column: str, keys: list[str]) -> list[dict[str, object]]:
    known = rows.filter(pc.is_valid(rows[column]))
    if not known.num_rows:
        return []
    values = np.maximum(known[column].to_numpy(), 1)
    classes = np.floor(np.log2(values) * _BUCKETS_PER_DOUBLING).astype(np.int64)
    known = known.append_column("class", pa.array(classes))
    grouped = known.group_by([*keys, "class"]).aggregate([([], "count_all"), (column, "max")])
    found: list[dict[str, object]] = grouped.rename_columns(
        [*keys, "class", "number", "highest"]
    ).to_pylist()
    return found


def _count(into: Latencies, row: dict[str, object]) -> None:
    into.counts[int(str(row["class"]))] += int(str(row["number"]))
    into.highest = max(into.highest, int(str(row["highest"])))
