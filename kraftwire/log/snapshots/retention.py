"""Which snapshot a log may start at, given what is kept.

Source: Kafka's `KafkaRaftLog.maybeClean`, rule R-SNAP-6. One snapshot is dropped at a time: the
caller asks again with the sizes that are left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kraftwire.log.snapshots.reader import SnapshotFile
from kraftwire.records.offsets import OffsetAndEpoch

__all__ = ["Retention", "log_start_candidate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How much of log and snapshots is kept, at least one snapshot in any case.

    `max_bytes` is metadata.max.retention.bytes, `max_ms` metadata.max.retention.ms; a negative one
    sets no limit.
    """

    max_bytes: int = 100 * 1024 * 1024
    max_ms: int = 7 * 24 * 3600 * 1000


def log_start_candidate(
    retention: Retention, snapshots: Sequence[SnapshotFile], log_bytes: int, now_ms: int
) -> OffsetAndEpoch | None:
    """The snapshot at whose end the log may start, None if nothing may go.

    `snapshots` are all that are stored, ascending, 0-0 included. The oldest of them goes, and the
    log before the next one with it, if everything together takes too much room or the oldest one's
    newest record is too old. Whether the log may start there the Raft core decides, which knows
    what is committed.
    """
    if len(snapshots) < 2:
        return None
    oldest, following = snapshots[:2]
    size = log_bytes + sum(one.size for one in snapshots)
    is_too_large = 0 <= retention.max_bytes < size
    is_too_old = 0 <= retention.max_ms < now_ms - oldest.timestamp
    return following.id if is_too_large or is_too_old else None
