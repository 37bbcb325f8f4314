"""Snapshots as rows of tables, without the log in front of them."""

from __future__ import annotations

from kraftwire.messages.snapshot_footer_record import SnapshotFooterRecord
from kraftwire.messages.snapshot_header_record import SnapshotHeaderRecord
from kraftwire.records.messages import Decoded
from kraftwire.story.raft.snapshots import SnapshotSummary
from kraftwire.story.raft.table_rows import QuorumRows

_FILE = f"/a/__cluster_metadata-0/{700:020}-{4:010}.checkpoint"


def test_the_epoch_of_a_snapshot_is_told() -> None:
    """It has a time, that of the last record in it, but nothing says when it began."""
    header = SnapshotHeaderRecord(last_contained_log_timestamp=1_000)
    records = (
        (Decoded("SnapshotHeaderRecord", 0, header), 0, 2.0),
        (Decoded("SnapshotFooterRecord", 0, SnapshotFooterRecord()), 5, 2.0),
    )
    rows = QuorumRows()
    rows.on_snapshot(_FILE, SnapshotSummary(387, 4, 1, records, 2.0, 2.0, 2.0))
    told = [(each.event.kind, each.event.epoch, each.event.time) for each in rows.located_events()]
    assert told == [
        ("snapshot-file", 4, 1.0), ("snapshot-written", 4, 2.0), ("epoch-known", 4, 2.0),
        ("replica-files", 4, 2.0),
    ]
