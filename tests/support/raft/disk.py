"""The disk of a lone Raft core, as plain Python values.

A `Disk` carries out the effects that concern files, and returns the event that answers
each. A snapshot is the bytes of its batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kraftwire.errors import WireError
from kraftwire.messages.snapshot_footer_record import SnapshotFooterRecord
from kraftwire.messages.snapshot_header_record import SnapshotHeaderRecord
from kraftwire.raft import effects, events
from kraftwire.raft.batches import control_records
from kraftwire.raft.effects import ElectionState
from kraftwire.raft.ports import LogImage, StoredSnapshot, StoredState
from kraftwire.records import RecordBatch, read_batches
from kraftwire.records.control import ControlType, control_batch
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.records.plain import data_batch
from kraftwire.wire.message import Message

Control = Sequence[tuple[ControlType, Message]]


def snapshot_bytes(
    snapshot: OffsetAndEpoch, control: Control = (), values: Sequence[bytes] = ()
) -> bytes:
    """A snapshot file: a control batch that begins with the header, the values, the footer."""
    header = (ControlType.SNAPSHOT_HEADER, SnapshotHeaderRecord(last_contained_log_timestamp=0))
    footer = (ControlType.SNAPSHOT_FOOTER, SnapshotFooterRecord())
    epoch, base = snapshot.epoch, len(control) + 1
    data = control_batch(0, epoch, 0, [header, *control])
    if values:
        data += data_batch(base, epoch, 0, values)
    return data + control_batch(base + len(values), epoch, 0, [footer])


def snapshot_control(data: bytes) -> bytes:
    """The first control batch of a snapshot file.

    Raises: ValueError or WireError if the file is damaged.
    """
    batches = list(read_batches(data))
    if not all(batch.is_valid for batch in batches):
        raise ValueError("a batch has a wrong CRC")
    if not batches or sum(batch.size for batch in batches) != len(data):
        raise ValueError("bytes are missing")
    kinds = [kind for one in batches for _, kind, _ in control_records(bytes(one.raw))]
    if kinds[:1] != [ControlType.SNAPSHOT_HEADER] or kinds[-1] != ControlType.SNAPSHOT_FOOTER:
        raise ValueError("header or footer are missing")
    return bytes(batches[0].raw)


def _values(data: bytes) -> list[bytes]:
    """The values of all data records."""
    batches = [batch for batch in read_batches(data) if not batch.is_control]
    return [record.value or b"" for batch in batches for record in batch.records()]


@dataclass
class Disk:
    """The files that a node finds when it starts.

    `batches` are bytes; the first `flushed` of them survive a crash. `parts` are snapshots that are
    being downloaded; a crash loses them.
    """

    batches: list[bytes] = field(default_factory=list)
    flushed: int = 0
    election: ElectionState = field(default_factory=ElectionState)
    start_offset: int = 0
    snapshots: dict[OffsetAndEpoch, bytes] = field(default_factory=dict)
    parts: dict[OffsetAndEpoch, bytearray] = field(default_factory=dict)

    @property
    def end_offset(self) -> int:
        """The log end offset."""
        return RecordBatch(self.batches[-1]).last_offset + 1 if self.batches else self.start_offset

    # ---- the log

    def append(self, data: bytes) -> None:
        """Write batches."""
        self.batches += [bytes(batch.raw) for batch in read_batches(data)]

    def truncate(self, end_offset: int) -> None:
        """Cut, durably."""
        self.batches = [one for one in self.batches if RecordBatch(one).last_offset < end_offset]
        self.flushed = len(self.batches)

    def flush(self, end_offset: int) -> None:
        """Make durable."""
        whole = [one for one in self.batches if RecordBatch(one).last_offset < end_offset]
        self.flushed = max(self.flushed, len(whole))

    def crash(self) -> None:
        """Lose what was not flushed."""
        del self.batches[self.flushed :]
        self.parts.clear()

    def drop_prefix(self, start_offset: int, snapshots: Sequence[OffsetAndEpoch] = ()) -> None:
        """Forget the batches below an offset, and snapshots."""
        kept = [one for one in self.batches if RecordBatch(one).last_offset >= start_offset]
        self.flushed -= len(self.batches) - len(kept)
        self.batches = kept
        self.start_offset = start_offset
        for one in snapshots:
            self.snapshots.pop(one, None)

    def reset(self, start: OffsetAndEpoch) -> None:
        """Empty the log, durably."""
        self.batches, self.flushed, self.start_offset = [], 0, start.offset
        self.snapshots = {one: data for one, data in self.snapshots.items() if one >= start}

    def read(self, part: effects.LogSlice | effects.SnapshotSlice) -> bytes:
        """The bytes of a slice."""
        if isinstance(part, effects.SnapshotSlice):
            return self.snapshots[part.id][part.position : part.position + part.max_bytes]
        found: list[bytes] = []
        size = 0
        for data in self.batches:
            batch = RecordBatch(data)
            if batch.last_offset < part.offset or batch.base_offset >= part.end_offset:
                continue
            if found and size + len(data) > part.max_bytes:
                break
            found.append(data)
            size += len(data)
        return b"".join(found)

    def values(self, start_offset: int, end_offset: int) -> list[bytes]:
        """The values of the data records in a part of the log."""
        return _values(self.read(effects.LogSlice(start_offset, 1 << 40, end_offset)))

    # ---- a core

    def image(self) -> LogImage:
        """The picture of the log that a core gets."""
        parsed = [RecordBatch(one) for one in self.batches]
        return LogImage(
            start_offset=self.start_offset,
            end_offset=self.end_offset,
            batches=[OffsetAndEpoch(one.base_offset, one.partition_leader_epoch) for one in parsed],
            control=[(one.base_offset, bytes(one.raw)) for one in parsed if one.is_control],
            snapshots=[
                StoredSnapshot(one, len(data), snapshot_control(data))
                for one, data in sorted(self.snapshots.items())
            ],
        )

    def stored(self) -> StoredState:
        """The stored state that a core gets when it starts."""
        return StoredState(self.election, self.image())

    def perform(self, effect: effects.Effect) -> None:
        """Carry out an effect on files; all except flushes, which a test may hold back."""
        match effect:
            case effects.PersistQuorumState(state=state):
                self.election = state
            case effects.AppendToLog(base, end_offset, data):
                assert base == self.end_offset, f"appends at {base}, the log is {self.end_offset}"
                self.append(bytes(data))
                assert end_offset == self.end_offset
            case effects.TruncateLog(end_offset):
                self.truncate(end_offset)
            case effects.AppendToSnapshot(snapshot, position, data):
                if not position:
                    self.parts = {snapshot: bytearray()}
                part = self.parts.get(snapshot, bytearray())
                assert position == len(part), "a part is missing"
                part += data
            case effects.DiscardSnapshot(snapshot):
                self.parts.pop(snapshot, None)
            case effects.ResetLog(start):
                assert start in self.snapshots, "nothing is left of what precedes the log"
                self.reset(start)
            case effects.DropLogPrefix(start_offset, snapshots):
                self.drop_prefix(start_offset, snapshots)

    def keep(self, snapshot: OffsetAndEpoch, data: bytes) -> events.SnapshotWritten:
        """Give a snapshot its name: carries out `WriteSnapshot`."""
        self.snapshots[snapshot] = data
        return events.SnapshotWritten(snapshot, len(data))

    def finish(self, snapshot: OffsetAndEpoch) -> events.SnapshotFinished | events.SnapshotRejected:
        """Check a downloaded snapshot: carries out `FinishSnapshot`."""
        data = bytes(self.parts.pop(snapshot, b""))
        try:
            control = snapshot_control(data)
        except (ValueError, WireError) as error:
            return events.SnapshotRejected(snapshot, str(error))
        self.snapshots[snapshot] = data
        return events.SnapshotFinished(snapshot, len(data), control)
