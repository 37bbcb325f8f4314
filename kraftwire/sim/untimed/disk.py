"""A replica's disk in an untimed cluster: its contents, and what would survive a crash.

Small and separate from the simulator's: whole batches, a vote, snapshots. Any prefix of unflushed
writes may survive a crash.
"""

from __future__ import annotations

import struct
from zlib import crc32

from kraftwire.messages.snapshot_header_record import SnapshotHeaderRecord
from kraftwire.raft.effects import ElectionState, LogSlice, SnapshotSlice, WriteSnapshot
from kraftwire.raft.ports import LogImage, StoredSnapshot, StoredState
from kraftwire.raft.voters import ReplicaKey
from kraftwire.records.control import ControlType, control_batch
from kraftwire.records.offsets import BOOTSTRAP_SNAPSHOT, OffsetAndEpoch
from kraftwire.sim.checks.entries import Applied, Entry, entries_of

_TAIL = struct.Struct(">iqII")  # size of the first batch, offset, sum of the state, sum of all


def snapshot_bytes(effect: WriteSnapshot, applied: Applied) -> bytes:
    """Return a snapshot of a state machine, with a real control batch at its beginning."""
    header = SnapshotHeaderRecord(last_contained_log_timestamp=effect.timestamp)
    records = ((ControlType.SNAPSHOT_HEADER, header), *effect.control)
    control = control_batch(0, effect.id.epoch, effect.timestamp, records)
    total = crc32(struct.pack(">qI", applied.offset, applied.sum), crc32(control))
    return control + _TAIL.pack(len(control), applied.offset, applied.sum, total)


def content_of(data: bytes) -> tuple[bytes, int, int] | None:
    """Return the control batch, offset and checksum in a snapshot; None if it is damaged."""
    if len(data) < _TAIL.size:
        return None
    size, offset, state, total = _TAIL.unpack_from(data, len(data) - _TAIL.size)
    control = data[: -_TAIL.size]
    if size != len(control) or crc32(struct.pack(">qI", offset, state), crc32(control)) != total:
        return None
    return control, offset, state


class Disk:
    """The directory of one replica.

    `flushed` counts the batches that survive a crash; everything else is durable as soon as it is
    written, except a download.
    """

    __slots__ = ("directory_id", "election", "flushed", "log", "part", "snapshots", "start")

    def __init__(self, directory_id: bytes, bootstrap: bytes = b"") -> None:
        """Format a directory; `bootstrap` is the control batch of 0-0 in a dynamic quorum."""
        self.directory_id = directory_id
        self.election = ElectionState()
        self.start = 0
        self.log: list[Entry] = []
        self.flushed = 0
        self.snapshots: dict[OffsetAndEpoch, bytes] = {}
        self.part: tuple[OffsetAndEpoch, bytes] | None = None
        if bootstrap:
            self.snapshots[BOOTSTRAP_SNAPSHOT] = bootstrap

    @property
    def end(self) -> int:
        """The log end offset."""
        return self.log[-1].end if self.log else self.start

    def persist(self, state: ElectionState, kraft_version: int) -> None:
        """Write the quorum state. Version 0 of the file has no directory id for the vote (R-ID-9).
        """
        voted = state.voted
        if kraft_version == 0 and voted is not None:
            state = ElectionState(state.epoch, state.leader_id, ReplicaKey(voted.id))
        self.election = state

    def append(self, data: bytes | memoryview) -> tuple[Entry, ...]:
        """Write batches."""
        entries = entries_of(data)
        self.log += entries
        return entries

    def flush(self, covered: tuple[Entry, ...]) -> int:
        """Make the remaining ones of these batches durable; returns the durable end of the log."""
        ends = {entry.end: entry for entry in covered}
        log, count = self.log, self.flushed
        while count < len(log) and ends.get(log[count].end) == log[count]:
            count += 1
        self.flushed = count
        return log[count - 1].end if count else self.start

    def truncate(self, end_offset: int) -> None:
        """Truncate the log, durably."""
        log = self.log
        while log and log[-1].end > end_offset:
            log.pop()
        self.flushed = len(log)

    def drop_prefix(self, start_offset: int) -> None:
        """Drop the records below an offset."""
        gone = sum(entry.end <= start_offset for entry in self.log)
        del self.log[:gone]
        self.flushed = max(self.flushed - gone, 0)
        self.start = start_offset

    def reset(self, start: OffsetAndEpoch) -> None:
        """Empty the log: it then starts and ends at the end of a snapshot."""
        self.log.clear()
        self.flushed = 0
        self.start = start.offset
        self.delete([one for one in self.snapshots if one < start])

    def delete(self, snapshots: list[OffsetAndEpoch]) -> None:
        """Delete snapshots."""
        for one in snapshots:
            self.snapshots.pop(one, None)

    def download(self, snapshot: OffsetAndEpoch, position: int, data: bytes) -> bool:
        """Write a chunk of a snapshot; returns whether it continues the download."""
        if position == 0:
            self.part = (snapshot, b"")
        if self.part is None or self.part[0] != snapshot or len(self.part[1]) != position:
            return False
        self.part = (snapshot, self.part[1] + data)
        return True

    def discard(self, snapshot: OffsetAndEpoch) -> None:
        """Discard a download."""
        if self.part is not None and self.part[0] == snapshot:
            self.part = None

    def read(self, part: LogSlice) -> bytes:
        """Return the batches of a slice, at least one."""
        found: list[bytes] = []
        size = 0
        for entry in self.log:
            if entry.end <= part.offset or entry.base >= part.end_offset:
                continue
            size += len(entry.data)
            if found and size > part.max_bytes:
                break
            found.append(entry.data)
        return b"".join(found)

    def read_snapshot(self, part: SnapshotSlice) -> bytes:
        """Return a piece of a snapshot."""
        return self.snapshots[part.id][part.position : part.position + part.max_bytes]

    def crash(self, extra: int) -> None:
        """Lose what is not durable, except the first `extra` batches."""
        del self.log[self.flushed + extra :]
        self.flushed = len(self.log)
        self.part = None

    def open(self) -> StoredState:
        """Return what a core is given at its start.

        A log that ends before the newest snapshot is emptied (R-START-2).
        """
        newest = max(self.snapshots, default=BOOTSTRAP_SNAPSHOT)
        last = self.log[-1].epoch if self.log else self.epoch_at_start()
        if (newest.epoch, newest.offset) > (last, self.end):
            self.reset(newest)
        image = LogImage(
            start_offset=self.start,
            end_offset=self.end,
            batches=[OffsetAndEpoch(one.base, one.epoch) for one in self.log],
            control=[(one.base, one.data) for one in self.log if one.is_control],
            snapshots=[self._stored(one) for one in sorted(self.snapshots)],
        )
        return StoredState(self.election, image)

    def epoch_at_start(self) -> int:
        """Return the epoch of the snapshot at which the log starts, 0 without one."""
        return next((one.epoch for one in self.snapshots if one.offset == self.start), 0)

    def _stored(self, snapshot: OffsetAndEpoch) -> StoredSnapshot:
        data = self.snapshots[snapshot]
        return StoredSnapshot(snapshot, len(data), data[: self.control_size(data)])

    @staticmethod
    def control_size(data: bytes) -> int:
        """Return the size of the control batch at the beginning of a snapshot."""
        return int(struct.unpack_from(">i", data, 8)[0]) + 12
