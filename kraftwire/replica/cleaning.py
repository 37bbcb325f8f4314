"""What may go of log and snapshots, looked for once in a while.

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
    """Proposes a later start of the log, and removes the files of snapshots given up before."""

    def __init__(self, disk: Disk, settings: SnapshotSettings) -> None:
        self._disk = disk
        self._interval_ms = settings.clean_interval_ms
        self._retention = Retention(
            max_bytes=settings.retention_bytes, max_ms=settings.retention_ms
        )
        self.due_ms = settings.clean_interval_ms

    def start(self, now_ms: int) -> None:
        """Count the time from now on."""
        self.due_ms = now_ms + self._interval_ms

    def proposals(self, now_ms: int, wall_ms: int) -> Iterator[LogStartProposed]:
        """What may go now, a snapshot at a time, each to be handed to the core at once.

        Ends when nothing may go any more, or when the core does not follow a proposal.
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
