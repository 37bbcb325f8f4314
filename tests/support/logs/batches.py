"""Batches for tests of the log: consecutive offsets, rising timestamps."""

from __future__ import annotations

from kraftwire.log.files import Files, LocalFiles
from kraftwire.log.metadata_log import MetadataLog
from kraftwire.log.snapshots.store import SnapshotStore
from kraftwire.records.builder import BatchHeader, build_columns
from kraftwire.records.offsets import OffsetAndEpoch

TOPIC = "__cluster_metadata"
TOPIC_ID = bytes(15) + b"\x01"
TIME = 1_700_000_000_000


def batch(
    base_offset: int, count: int = 1, *, epoch: int = 1, size: int = 10, is_control: bool = False
) -> bytes:
    """A batch of records that differ by their offsets. Units: `size` of each value."""
    offsets = range(base_offset, base_offset + count)
    return build_columns(
        [TIME + offset for offset in offsets],
        [b"\x00\x00\x00\x02" if is_control else None] * count,
        [(b"%d " % offset).ljust(size, b"x") for offset in offsets],
        header=BatchHeader(
            base_offset=base_offset, partition_leader_epoch=epoch, is_control=is_control
        ),
    )


def append(log: MetadataLog, count: int = 1, *, epoch: int = 1, size: int = 10) -> bytes:
    """Append one batch of `count` records at the log's end; returns its bytes."""
    base = log.end_offset
    data = batch(base, count, epoch=epoch, size=size)
    log.append(data, base, base + count)
    return data


def put_snapshot(
    partition: object, end_offset: int, epoch: int = 1, *, files: Files | None = None
) -> OffsetAndEpoch:
    """Write a small snapshot into a directory; returns its id."""
    snapshot = OffsetAndEpoch(end_offset, epoch)
    writer = SnapshotStore(files or LocalFiles(), str(partition)).writer(snapshot, (), TIME, TIME)
    writer.append([b"the state up to %d" % end_offset])
    writer.freeze()
    return snapshot
