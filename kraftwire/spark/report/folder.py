"""The tables of a folder, read in pieces: only the requested columns and the chosen interval.

Owns how a table is found. A missing table has no rows; the report says that it was not made.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from bokeh.models import Range1d

from kraftwire.capture.recorded import Recordings
from kraftwire.errors import StorageError
from kraftwire.spark.report.axis import TimeAxis, TimeSpan
from kraftwire.spark.run.small import count_rows
from kraftwire.spark.tables import TABLES
from kraftwire.spark.tables.files import recorded_of

_TABLES = ("raft_timeline", "replica_lag", "groups", "group_lag")
_LETTERS = 6

_BATCH_ROWS = 131_072
_SECOND_NS = 1_000_000_000
_DAY_NS = 86_400 * _SECOND_NS

# Rows with a duration: the columns of their start and end. They belong to every interval that they
# overlap.
_LASTING = {
    "anomalies": ("time", "end_time"),
    "connections": ("first_time", "last_time"),
    "groups": ("start", "end"),
}

# Columns that place a row on the time axis: without them there is nothing to draw.
_NEEDED = {
    "group_lag": ("bucket",),
    "groups": ("start", "end"),
    "raft_timeline": ("time_ns",),
    "replica_lag": ("bucket",),
}


class ClusterNames:
    """The clusters in the tables of a folder."""

    def __init__(self, folder: TableFolder) -> None:
        self._all: set[str | None] = set()
        for name in _TABLES:
            self._all.update(folder.table(name, ["cluster"])["cluster"].unique().to_pylist())

    @property
    def are_several(self) -> bool:
        """Whether there is more than one cluster."""
        return len(self._all - {None}) > 1

    def after(self, cluster: str | None) -> str:
        """Return the words after the name of something in a cluster; none if there is only one."""
        if not self.are_several:
            return ""
        return f" in {cluster[:_LETTERS]}…" if cluster else " in an unknown cluster"


@dataclass(frozen=True, slots=True)
class ReportContext:
    """Data that all parts share.

    `extent` is the time that the report covers, in nanoseconds since the epoch; `axis` is that of
    every plot over time, and `times` its visible range, so that plots move together. If nothing
    has a time, extent is None. `holes` are the parts of the extent that no capture recorded, none
    where nothing is known of captures.
    """

    folder: TableFolder
    extent: TimeSpan | None
    axis: TimeAxis
    times: Range1d
    holes: list[TimeSpan] = field(default_factory=list)

    @property
    def has_days(self) -> bool:
        """Return whether the extent has more than one day, so that times need their dates."""
        return self.axis.first // _DAY_NS != self.axis.last // _DAY_NS

    @property
    def recorded_ns(self) -> int:
        """Return how much of the extent is recorded, in nanoseconds."""
        first, last = self.extent or (0, 0)
        return last - first - sum(end - start for start, end in self.holes)


@dataclass(slots=True)
class ReportPart:
    """A part of the report.

    `plots` are bokeh models by name; ``{{name}}`` in `html` is where one goes. `data` are
    the tables of the plots by the names of their CSV files.
    """

    id: str
    title: str
    html: str = ""
    plots: dict[str, Any] = field(default_factory=dict)
    data: dict[str, pa.Table] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Interval:
    """From `start` to before `end`, nanoseconds since the epoch; None for no limit."""

    start: int | None = None
    end: int | None = None


class TableFolder:
    """The tables of a run.

    `path` is the folder of the tables; only rows in the `interval` are read. Rows without the time
    at which they are drawn are omitted.
    """

    def __init__(self, path: Path, interval: Interval | None = None) -> None:
        self.path = path
        self.interval = interval or Interval()

    def is_made(self, name: str) -> bool:
        """Whether the run made a table, with rows or without: `--tables` chooses some."""
        return (self.path / name).is_dir()

    def has(self, name: str) -> bool:
        """Whether a table has any rows."""
        return any(batch.num_rows for batch in self.batches(name, TABLES[name].arrow.names[:1]))

    def batches(self, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield some columns of a table, in pieces of bounded size."""
        files = sorted(str(each) for each in (self.path / name).glob("*.parquet"))
        if not files:
            return
        schema = TABLES[name].arrow
        dataset = ds.dataset(files, schema=schema, format="parquet")
        try:
            yield from dataset.to_batches(
                columns=list(columns),
                filter=self._filter(name, schema),
                batch_size=_BATCH_ROWS,
                # The default is sixteen pieces of four files; this keeps memory flat.
                batch_readahead=1,
                fragment_readahead=1,
            )
        except pa.ArrowException as error:
            where, problem = str(self.path / name), str(error).splitlines()[0]
            raise StorageError(f"not a table of the pipeline: {problem}", file=where) from error

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return some columns of a table at once; for tables that are small by nature."""
        names = list(columns or TABLES[name].arrow.names)
        schema = pa.schema([TABLES[name].arrow.field(each) for each in names])
        return pa.Table.from_batches(self.batches(name, names), schema)

    def rows(self, name: str, columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Return the rows of a table that is small by nature."""
        rows: list[dict[str, Any]] = self.table(name, columns).to_pylist()
        return rows

    def count(self, name: str) -> int:
        """Return the number of rows in a table, including those outside the interval."""
        return count_rows(self.path / name)

    def manifest(self) -> dict[str, Any]:
        """Return the manifest of the run; empty if there is none.

        Raises: StorageError if it is damaged.
        """
        path = self.path / "_manifest" / "manifest.json"
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise StorageError(f"not a manifest: {error}", file=str(path)) from error
        if not isinstance(found, dict):
            raise StorageError("not a manifest: expected a JSON object", file=str(path))
        return found

    def extent(self) -> TimeSpan | None:
        """Return the first and last time of exchanges, or else of events; None if there are none.
        """
        for name in ("exchanges", "raft_timeline"):
            ends = [_min_max(batch.column(0)) for batch in self.batches(name, ["time_ns"])]
            known = [each for each in ends if each is not None]
            if known:
                return min(first for first, _ in known), max(last for _, last in known)
        return None

    def holes(self, extent: TimeSpan) -> list[TimeSpan]:
        """Return the parts of a time that are not recorded; none without captures."""
        recordings = Recordings()
        for row in self.rows("files", ["recorded"]):
            if row["recorded"]:
                recordings.add(recorded_of(row["recorded"]))
        if recordings.is_empty:
            return []
        holes = recordings.holes(extent[0] / _SECOND_NS, extent[1] / _SECOND_NS)
        return [(round(start * _SECOND_NS), round(end * _SECOND_NS)) for start, end in holes]

    def _filter(self, name: str, schema: pa.Schema) -> Any:
        """Return the filter for a table's rows; None for all."""
        needed = [ds.field(column).is_valid() for column in _NEEDED.get(name, ())]
        begin, end = _LASTING.get(name) or (_time_column(schema),) * 2
        if begin is not None and end is not None and self.interval != Interval():
            needed.append(self._touched(schema, begin, end))
        return reduce(and_, needed) if needed else None

    def _touched(self, schema: pa.Schema, begin: str, end: str) -> Any:
        """Select what begins before the end of the interval and does not end before its start."""
        found = ds.field(begin).is_valid()
        kind, start, stop = schema.field(begin).type, self.interval.start, self.interval.end
        if start is not None:
            last = pc.coalesce(ds.field(end), ds.field(begin))
            found &= last >= _scalar(start, kind)
        if stop is not None:
            found &= ds.field(begin) < _scalar(stop, kind)
        return found


def _time_column(schema: pa.Schema) -> str | None:
    """Return the column with the time of a row."""
    names = ("time_ns", "bucket", "time")
    return next((name for name in names if name in schema.names), None)


def _scalar(limit: int, kind: pa.DataType) -> pa.Scalar:
    """Convert nanoseconds to the unit of a column: microseconds for a timestamp."""
    return pa.scalar(limit // (1000 if pa.types.is_timestamp(kind) else 1), pa.int64()).cast(kind)


def _min_max(column: pa.Array) -> TimeSpan | None:
    found = pc.min_max(column.filter(pc.greater(column, 0))).as_py()
    return None if found["min"] is None else (found["min"], found["max"])
