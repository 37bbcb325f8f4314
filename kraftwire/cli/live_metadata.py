"""The metadata log of a live quorum."""

from __future__ import annotations

from collections.abc import Iterator

from kraftwire.client.metadata_log import Position, QuorumReader
from kraftwire.errors import UsageError
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.records.reader import Batch, read_batches
from kraftwire.story.metadata.files import OnRead
from kraftwire.story.metadata.log_state import LogState, Snapshot, replay


def read_quorum(
    reader: QuorumReader, at: int | None = None, on_read: OnRead = lambda _: None
) -> LogState:
    """Return the state of a live quorum, after what is committed or up to an offset.

    Raises: UsageError for an offset that is not committed yet, or no longer in the log; the errors
    of `QuorumReader`.
    """
    start, snapshot = reader.begin()
    end = reader.high_watermark(start)
    if at is not None and at >= end:
        raise UsageError(f"offset {at} is not committed: the high watermark is {end}")
    if at is not None and at < start.next_offset - 1:
        raise UsageError(
            f"the quorum no longer has offset {at}: its log begins with the snapshot at "
            f"{start.next_offset}; a log directory may still have it"
        )
    last = max(end, start.next_offset)
    last = last if at is None else at + 1

    def log() -> Iterator[Batch]:
        if last == start.next_offset:
            return
        end = Position(reader.epoch_before(last), last)
        for _, batch in reader.batches(start, end):
            on_read(batch.base_offset)
            yield batch

    found = []
    if snapshot is not None:
        id = OffsetAndEpoch(snapshot.end_offset, snapshot.epoch)
        found.append(Snapshot(id, lambda: read_batches(reader.snapshot(snapshot))))
    # The leader returns whole batches, which may end after the high watermark.
    return replay(log(), found, last - 1)
