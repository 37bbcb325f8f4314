"""Counts of batches by partition, for files of log directories."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from kraftwire.decode.files.kinds import FileKind, partition_of
from kraftwire.decode.files.report import FileLine
from kraftwire.decode.text import size_text, utc_text, with_remarks
from kraftwire.inspect.tables import Table
from kraftwire.limits import STATS_ROWS_MAX
from kraftwire.records.reader import Batch

OTHERS = "(others)"


@dataclass(slots=True)
class PartitionCounts:
    """The counts of a partition or snapshot.

    Units: timestamps in milliseconds since the epoch. `compression` counts batches; `other_lines`
    are index entries and state files.
    """

    files: set[str] = field(default_factory=set)
    batches: int = 0
    records: int = 0
    control_batches: int = 0
    wrong_crc: int = 0
    size: int = 0
    compression: Counter[str] = field(default_factory=Counter)
    first_offset: int | None = None
    last_offset: int | None = None
    first_timestamp: int | None = None
    last_timestamp: int | None = None
    other_lines: int = 0


class PartitionTable:
    """Counts by partition and snapshot; beyond a limit, further files share a row."""

    def __init__(self) -> None:
        self.rows: dict[str, PartitionCounts] = {}
        self._names: dict[str, str] = {}

    def add(self, line: FileLine) -> None:
        """Count a line of a file."""
        file = str(line.json["file"])
        name = self._names.get(file)
        if name is None:
            name = _name(file, line.kind)
            if len(self._names) >= STATS_ROWS_MAX:
                self._names.clear()
            self._names[file] = name
        if name not in self.rows and len(self.rows) >= STATS_ROWS_MAX:
            name = OTHERS
        row = self.rows.setdefault(name, PartitionCounts())
        if len(row.files) < STATS_ROWS_MAX:
            row.files.add(file)
        if line.batch is None:
            row.other_lines += 1
        else:
            _add_batch(row, line.batch, line)


def _name(file: str, kind: FileKind) -> str:
    """Return folder and partition, so that copies on several brokers stay apart."""
    path = Path(file)
    if kind is FileKind.SNAPSHOT or partition_of(path) is None:
        return str(Path(path.parent.name) / path.name)
    return str(Path(path.parent.parent.name) / path.parent.name)


def _add_batch(row: PartitionCounts, batch: Batch, line: FileLine) -> None:
    json = line.json
    row.batches += 1
    row.records += json["count"] or 0
    row.control_batches += batch.is_control
    row.wrong_crc += not json["isValid"]
    row.size += batch.size
    row.compression[batch.compression] += 1
    if row.first_offset is None:
        row.first_offset = json["baseOffset"]
    row.last_offset = max(row.last_offset or 0, batch.last_offset)
    first = getattr(batch, "base_timestamp", batch.max_timestamp)
    if first >= 0 and (row.first_timestamp is None or first < row.first_timestamp):
        row.first_timestamp = first
    last = batch.max_timestamp
    if last >= 0 and (row.last_timestamp is None or last > row.last_timestamp):
        row.last_timestamp = last


_HEAD = ("log", "batches", "records", "bytes", "offsets", "compression", "time", "remarks")
_SECONDS = len("2026-11-20T20:22:23")


def partitions_table(logs: PartitionTable) -> Table:
    """Return a table with a row for each partition or snapshot."""
    table = Table("By partition", _HEAD, right=(1, 2, 3), optional=(0, 4, 5, 6, 7))
    for name, row in sorted(logs.rows.items()):
        times = [row.first_timestamp, row.last_timestamp]
        remarks = [f"{len(row.files)} files"] if len(row.files) > 1 else []
        remarks += [f"{row.control_batches:,} control"] if row.control_batches else []
        remarks += [f"{row.wrong_crc:,} with wrong CRC"] if row.wrong_crc else []
        remarks += [f"{row.other_lines:,} other lines"] if row.other_lines else []
        codecs = row.compression.most_common()
        table.rows.append(
            (
                name,
                f"{row.batches:,}",
                f"{row.records:,}",
                size_text(row.size),
                f"{row.first_offset}-{row.last_offset}" if row.batches else "",
                ", ".join(with_remarks(codec, [f"{n:,}"]) for codec, n in codecs),
                " to ".join(utc_text(each)[:_SECONDS] for each in times if each is not None),
                ", ".join(remarks),
            )
        )
    return table
