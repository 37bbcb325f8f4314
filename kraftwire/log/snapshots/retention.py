"""Which snapshot a log may start at, given the retention settings.

Source: Kafka's `KafkaRaftLog.maybeClean`, rule R-SNAP-6. One snapshot is dropped at a time: the
caller asks again with the remaining sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kraftwire.log.snapshots.reader import SnapshotFile
from kraftwire.records.offsets import OffsetAndEpoch

__all__ = ["Retention", "log_start_candidate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How much of log and snapshots is kept; at least one snapshot always is.

    `max_bytes` is metadata.max.retention.bytes, `max_ms` metadata.max.retention.ms; a negative one
    sets no limit.
    """

    max_bytes: int = 100 * 1024 * 1024
    max_ms: int = 7 * 24 * 3600 * 1000


def log_start_candidate(
    retention: Retention, snapshots: Sequence[SnapshotFile], log_bytes: int, now_ms: int
) -> OffsetAndEpoch | None:
    """Return the snapshot at whose end the log may start, None if nothing can be dropped.

    `snapshots` are all that are stored, ascending, 0-0 included. The oldest is dropped, with the
    log before the next one, if the total size exceeds the limit or the newest record of the oldest
    one is too old. The Raft core, which knows what is committed, decides whether the log may start
    there.
    """
    if len(snapshots) < 2:
        return None
    oldest, following = snapshots[:2]
    size = log_bytes + sum(one.size for one in snapshots)
    is_too_large = 0 <= retention.max_bytes < size
    is_too_old = 0 <= retention.max_ms < now_ms - oldest.timestamp
    return following.id if is_too_large or is_too_old else None
