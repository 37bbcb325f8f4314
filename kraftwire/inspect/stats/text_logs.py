"""Batches of log files by partition, as a table."""

from __future__ import annotations

from kraftwire.decode.text import size_text, utc_text, words
from kraftwire.inspect.stats.logs import Logs
from kraftwire.inspect.tables import Table

__all__ = ["partitions_table"]

_HEAD = ("log", "batches", "records", "bytes", "offsets", "compression", "time", "remarks")
_SECONDS = len("2026-11-20T20:22:23")


def partitions_table(logs: Logs) -> Table:
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
                ", ".join(words(codec, [f"{n:,}"]) for codec, n in codecs),
                " to ".join(utc_text(each)[:_SECONDS] for each in times if each is not None),
                ", ".join(remarks),
            )
        )
    return table
