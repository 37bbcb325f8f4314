"""The state after the records of a metadata log, up to an offset: replayed from 0 or a snapshot.

Where records are missing, the state goes on with the first snapshot that covers them. Without one
it goes on with what follows, and says what is missing: entities from before are then unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from kraftwire.controller.image import MetadataImage
from kraftwire.controller.image.record_store import RecordStore
from kraftwire.controller.image.state import MetadataState
from kraftwire.controller.record_effects import Family
from kraftwire.errors import UsageError, WireError
from kraftwire.records.batch import RecordBatch
from kraftwire.records.builder import BatchHeader, build_batch
from kraftwire.records.control import decode_control
from kraftwire.records.messages import Decoded
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.records.reader import Batch
from kraftwire.wire.message import Message

_KEPT_CONTROL = ("KRaftVersionRecord", "VotersRecord")
_FOOTER = "SnapshotFooterRecord"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot that can be read if it is needed. `id` is its end offset and epoch."""

    id: OffsetAndEpoch
    read: Callable[[], Iterable[Batch]]


class _DatedRecords(RecordStore):
    """Records with the offset at which each was stored; `offset` is that of the present record."""

    def __init__(self) -> None:
        super().__init__()
        self.offset = -1
        self.offsets: dict[tuple[Family, Hashable], int] = {}

    def put(self, family: Family, key: Hashable, value: bytes) -> None:
        """Store a record, and note when."""
        super().put(family, key, value)
        self.offsets[family, key] = self.offset


class DatedState(MetadataState):
    """The state of a log that is read, with an offset for each entity."""

    def __init__(self) -> None:
        self._dated = _DatedRecords()
        super().__init__(self._dated)

    def apply(self, offset: int, message: Message, value: bytes) -> None:
        """Apply a record; every entity that it changes gets its offset."""
        self._dated.offset = offset
        super().apply(offset, message, value)

    def changed_at(self, family: Family, key: Hashable) -> int:
        """Return the offset of the record that last changed an entity."""
        return self._dated.offsets[family, key]


@dataclass(slots=True)
class LogState:
    """What is known of the state after the record at `offset`, -1 before the first one.

    `image` and `dated` are the state itself; `control` has the newest KRaftVersion and Voters
    records with their offsets. `snapshot` is where the state began, if that is not offset 0, and
    `missing` are the first and last offsets of records that are not there. `problems` are what
    could not be read.
    """

    dated: DatedState = field(default_factory=DatedState)
    image: MetadataImage = field(init=False)
    snapshot: OffsetAndEpoch | None = None
    control: dict[str, tuple[Decoded, int]] = field(default_factory=dict)
    missing: list[tuple[int, int]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.image = MetadataImage(self.dated)

    @property
    def offset(self) -> int:
        """The offset of the last record that counts."""
        return self.image.next_offset - 1

    @property
    def is_complete(self) -> bool:
        """Whether every record up to the offset was there and could be applied."""
        return not (self.missing or self.problems or self.image.problem)

    @property
    def first_known(self) -> int:
        """The offset from which on it is known which record changed what."""
        return self.snapshot.offset if self.snapshot is not None else 0


def replay(
    batches: Iterable[Batch], snapshots: Sequence[Snapshot] = (), at: int | None = None
) -> LogState:
    """Return the state after all records, or after the one at an offset.

    `batches` are in the order of the log. Raises: UsageError if the log ends before `at`, or
    nothing is known of the state there.
    """
    reading = _Reading(snapshots, at)
    for batch in batches:
        if at is not None and batch.base_offset > at:
            reading.is_past = True
            break
        reading.add_batch(batch)
    return reading.finish()


class _Reading:
    """Replays batches one after the other."""

    def __init__(self, snapshots: Sequence[Snapshot], at: int | None) -> None:
        self.is_past = False
        self._state = LogState()
        self._at = at
        self._has_records = False
        self._snapshots = sorted(
            (each for each in snapshots if at is None or each.id.offset - 1 <= at),
            key=lambda each: each.id,
        )

    def add_batch(self, batch: Batch) -> None:
        """Replay the next batch, unless a snapshot covers it."""
        if batch.base_offset > self._state.image.next_offset:
            self._bridge(batch.base_offset)
        if batch.last_offset < self._state.image.next_offset:
            return
        if not isinstance(batch, RecordBatch):
            self._state.problems.append(f"the batch at offset {batch.base_offset} is not Kafka's")
            return
        self._has_records = True
        if batch.is_control:
            self._control(batch)
        at = self._at
        self._state.image.replay(_cut(batch, at) if at is not None else batch)

    def finish(self) -> LogState:
        """Return the state, after a snapshot that goes further than the log."""
        next_offset = self._state.image.next_offset
        further = [
            each
            for each in self._snapshots
            if each.id.offset > next_offset or not self._has_records
        ]
        if further:
            self._load(further[-1])
            self._has_records = True
        at, end = self._at, self._state.image.next_offset
        if at is not None and end <= at:
            if not self._has_records:
                raise UsageError(f"nothing is known of the state after offset {at}")
            if not self.is_past:
                raise UsageError(f"there is no offset {at}: the log ends at offset {end}")
            self._state.missing.append((end, at))
        if not self._has_records:
            raise UsageError("there is no record of a metadata log")
        return self._state

    def _bridge(self, base_offset: int) -> None:
        """Go on after a gap that ends at an offset: from the first snapshot that covers it, or the
        last one that covers a part."""
        covering = [each for each in self._snapshots if each.id.offset >= base_offset]
        partly = [
            each
            for each in self._snapshots
            if self._state.image.next_offset < each.id.offset < base_offset
        ]
        if covering or partly:
            self._load(covering[0] if covering else partly[-1])
        start = self._state.image.next_offset
        if start < base_offset:
            self._state.missing.append((start, base_offset - 1))

    def _load(self, snapshot: Snapshot) -> None:
        """Replace the state by that of a snapshot, which has all that came before it."""
        problems = self._state.problems
        self._state = state = LogState(snapshot=snapshot.id, problems=problems)
        state.image = MetadataImage.load(snapshot.id, self._records(snapshot), state.dated)

    def _records(self, snapshot: Snapshot) -> Iterable[RecordBatch]:
        is_whole = False
        for batch in snapshot.read():
            if isinstance(batch, RecordBatch):
                if batch.is_control:
                    is_whole = self._control(batch, at=snapshot.id.offset - 1) == _FOOTER
                yield batch
        if not is_whole:
            self._state.problems.append(f"the snapshot at {snapshot.id.offset} has no end")

    def _control(self, batch: RecordBatch, at: int | None = None) -> str:
        """Keep the control records that are state; `at` is the offset of a snapshot's.

        Returns the type of the last one.
        """
        type = ""
        try:
            for record in batch.records():
                decoded = decode_control(record.key, record.value)
                type = decoded.type
                if decoded.type in _KEPT_CONTROL:
                    offset = record.offset if at is None else at
                    self._state.control[decoded.type] = decoded, offset
        except WireError as error:
            self._state.problems.append(f"the batch at offset {batch.base_offset}: {error}")
        return type


def _cut(batch: RecordBatch, at: int) -> RecordBatch:
    """Return a batch without its records after an offset."""
    if batch.last_offset <= at or batch.is_control:
        return batch
    try:
        rows = [row for row in batch.records() if row.offset <= at]
    except WireError:
        return batch  # the image says what is wrong with it
    header = BatchHeader(
        base_offset=batch.base_offset,
        last_offset=at,
        partition_leader_epoch=batch.partition_leader_epoch,
    )
    return RecordBatch(build_batch(rows, header))
