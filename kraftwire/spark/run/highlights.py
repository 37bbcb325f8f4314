"""The most important findings in the tables."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.dataset as ds

from kraftwire.spark.logs.packed import UNREAD_PACKINGS

__all__ = ["attention"]

_LINES_MAX = 10
_OF_A_KIND_MAX = 3
_SEVERITIES = ("error", "warning", "info")


def attention(folder: Path) -> list[str]:
    """Return a few lines, worst first; none if nothing stands out."""
    lines = [*_anomalies(folder), *_bad_input(folder), *_packed(folder), *_errors(folder)]
    return lines[:_LINES_MAX]


def _rows(folder: Path, table: str, columns: list[str]) -> list[dict[str, Any]]:
    """Return some columns of a table, without rows if it does not exist."""
    path = folder / table
    if not any(path.glob("*.parquet")):
        return []
    rows: list[dict[str, Any]] = ds.dataset(path).to_table(columns=columns).to_pylist()
    return rows


def _anomalies(folder: Path) -> list[str]:
    rows = _rows(folder, "anomalies", ["rule", "severity", "node", "detail", "time"])
    order = {name: at for at, name in enumerate(_SEVERITIES)}
    rows.sort(key=lambda row: (order.get(row["severity"], 9), str(row["time"])))
    counts = Counter((row["severity"], row["rule"]) for row in rows)
    lines = []
    for row in rows:
        count = counts.pop((row["severity"], row["rule"]), 0)
        if count:
            more = f" ({count:,} times)" if count > 1 else ""
            lines.append(f"{row['severity']}: {row['rule']}{more}: {row['detail']}")
    return lines


def _bad_input(folder: Path) -> list[str]:
    counts = _counts(folder, "bad_input", "id")
    return [
        f"bad input: {id}, {count:,} row{'' if count == 1 else 's'}"
        for id, count in counts[:_OF_A_KIND_MAX]
    ]


def _packed(folder: Path) -> list[str]:
    """Name compressions of which captures and logs are not read."""
    found = [each for each in _counts(folder, "files", "kind") if each[0] in UNREAD_PACKINGS]
    return [
        f"compressed with {kind}, which is not read: {count:,} file{'' if count == 1 else 's'}"
        for kind, count in found
    ]


def _errors(folder: Path) -> list[str]:
    counts = _counts(folder, "exchanges", "errors")
    return [f"responses with {name}: {count:,}" for name, count in counts[:_OF_A_KIND_MAX]]


def _counts(folder: Path, table: str, column: str) -> list[tuple[str, int]]:
    """Count the values of a column of strings, or of lists of them; most frequent first."""
    path = folder / table
    counts: Counter[str] = Counter()
    if any(path.glob("*.parquet")):
        for batch in ds.dataset(path).to_batches(columns=[column]):
            values = batch.column(0)
            if values.type.num_fields:
                values = pc.list_flatten(values)
            for each in pc.value_counts(values).to_pylist():
                counts[each["values"]] += each["counts"]
    return counts.most_common()
