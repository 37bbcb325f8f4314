"""The layout of a snapshot file: record batches with offsets from 0 and the epoch of its id.

The first batch is a control batch that begins with the header record; if kraft.version is 1,
kraft.version and voters follow in it. Batches of data come next, each of at most 8 MiB, and last a
control batch with the footer record (R-SNAP-3). Source: Kafka's `RecordsSnapshotWriter`.
"""

from __future__ import annotations

from collections.abc import Sequence

from kraftwire.messages.snapshot_footer_record import SnapshotFooterRecord
from kraftwire.messages.snapshot_header_record import SnapshotHeaderRecord
from kraftwire.records.messages import ControlType, control_batch
from kraftwire.wire.message import Message

ControlRecords = Sequence[tuple[ControlType, Message]]


def header_batch(epoch: int, now_ms: int, timestamp: int, records: ControlRecords = ()) -> bytes:
    """Build the first batch: the header record, then kraft.version and voters.

    `timestamp` is that of the last record that the snapshot contains.
    """
    header = SnapshotHeaderRecord(version=0, last_contained_log_timestamp=timestamp)
    return control_batch(0, epoch, now_ms, [(ControlType.SNAPSHOT_HEADER, header), *records])


def footer_batch(base_offset: int, epoch: int, now_ms: int) -> bytes:
    """Build the last batch."""
    footer = SnapshotFooterRecord(version=0)
    return control_batch(base_offset, epoch, now_ms, [(ControlType.SNAPSHOT_FOOTER, footer)])
