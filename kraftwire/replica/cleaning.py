"""Removing old log and snapshots at intervals.

Source: Kafka's `KafkaRaftLog.maybeClean`; R-SNAP-6.
"""

from __future__ import annotations

from collections.abc import Iterator

from kraftwire.log.settings import SnapshotSettings
from kraftwire.log.snapshots.retention import Retention, log_start_candidate
from kraftwire.raft.events import LogStartProposed
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.replica.ports import Disk

__all__ = ["Cleaner"]


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
