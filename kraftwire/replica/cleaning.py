"""Removing old log and snapshots at intervals.

Source: Kafka's `KafkaRaftLog.maybeClean`; R-SNAP-6.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kraftwire.log.settings import SnapshotSettings
from kraftwire.log.snapshots.reader import SnapshotFile
from kraftwire.raft.events import LogStartProposed
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.replica.ports import Disk


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """The retention of log and snapshots; at least one snapshot is always kept.

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


class Cleaner:
    """Proposes a later log start offset, and removes the files of deleted snapshots."""

    def __init__(self, disk: Disk, settings: SnapshotSettings) -> None:
        self._disk = disk
        self._interval_ms = settings.clean_interval_ms
        self._retention = Retention(
            max_bytes=settings.retention_bytes, max_ms=settings.retention_ms
        )
        self.due_ms = settings.clean_interval_ms

    def start(self, now_ms: int) -> None:
        """Start the interval."""
        self.due_ms = now_ms + self._interval_ms

    def proposals(self, now_ms: int, wall_ms: int) -> Iterator[LogStartProposed]:
        """Yield what can be removed now, one snapshot at a time; pass each to the core at once.

        Ends when nothing more can be removed, or when the core does not accept a proposal.
        """
        self.due_ms = now_ms + self._interval_ms
        self._disk.snapshots.purge(now_ms)
        before: OffsetAndEpoch | None = None
        while True:
            stored = self._disk.snapshots.stored()
            size = self._disk.log.size_bytes
            candidate = log_start_candidate(self._retention, stored, size, wall_ms)
            if candidate is None or candidate == before:
                return
            before = candidate
            yield LogStartProposed(candidate)
