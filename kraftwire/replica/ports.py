"""The ports of the runner of effects: core, disk, host and workers.

`kraftwire/log` provides the disk and `kraftwire/raft` the core; a node or a simulation provides the
host and the workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Protocol, TypeVar

from kraftwire.log.snapshots.reader import SnapshotFile
from kraftwire.log.snapshots.writer import ControlRecords
from kraftwire.raft import effects as fx
from kraftwire.raft import events as ev
from kraftwire.records.batch import RecordBatch
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.wire.message import Message

T = TypeVar("T")


class Core(Protocol):
    """The part of `RaftCore` that the runner uses."""

    @property
    def deadline_ms(self) -> int | None:
        """When the next `TimerExpired` is due."""

    @property
    def high_watermark(self) -> int:
        """The high watermark: everything below it is committed."""

    def start(self, now_ms: int, wall_ms: int | None = None) -> list[fx.Effect]:
        """Start the core; returns the effects, in order."""

    def handle(
        self, event: ev.Event, now_ms: int, wall_ms: int | None = None
    ) -> list[fx.Effect]:
        """Handle one event; returns the effects, in order."""


class Log(Protocol):
    """The part of `MetadataLog` that the runner uses. Raises: StorageError from every method."""

    def append(self, data: bytes | memoryview, base_offset: int, end_offset: int) -> None:
        """Write whole batches at the end."""

    def flush(self) -> int:
        """Make everything appended so far durable; may run in a thread, in parallel with other
        work."""

    def truncate(self, end_offset: int) -> int:
        """Truncate the log, durably."""

    def reset(self, start: OffsetAndEpoch) -> None:
        """Empty the log, durably, so that it starts and ends here."""

    def drop_prefix(self, start_offset: int) -> None:
        """Advance the log start offset, durably."""

    @property
    def size_bytes(self) -> int:
        """Bytes of the whole log."""

    def read(self, offset: int, max_bytes: int, end_offset: int) -> bytes:
        """Return whole batches, starting with the one that contains `offset`."""

    def read_size(self, offset: int, max_bytes: int, end_offset: int) -> int:
        """Return how many bytes `read` would return."""


class SnapshotSink(Protocol):
    """The part of `SnapshotWriter` that the runner uses, also in another thread."""

    def append(self, values: Sequence[bytes]) -> None:
        """Write records with these values."""

    def freeze(self) -> int:
        """Make the snapshot durable under its final name; returns its size in bytes."""

    def discard(self) -> None:
        """Remove what was written."""


class SnapshotSource(Protocol):
    """The part of `SnapshotReader` that the runner uses, also in another thread."""

    @property
    def timestamp(self) -> int:
        """The time of the last record that the snapshot contains."""

    def __iter__(self) -> Iterator[RecordBatch]:
        """The batches of data in order."""

    def close(self) -> None:
        """Close the file."""


class Snapshots(Protocol):
    """The part of `SnapshotStore` that the runner uses. Raises: StorageError from every method."""

    def append(self, snapshot: OffsetAndEpoch, position: int, data: bytes | memoryview) -> None:
        """Write a chunk of a download."""

    def finish(self, snapshot: OffsetAndEpoch) -> SnapshotFile:
        """Check a download and keep it. Raises: WireError if it is damaged; it is then removed."""

    def discard(self, snapshot: OffsetAndEpoch) -> None:
        """Discard an unfinished download."""

    def writer(
        self, snapshot: OffsetAndEpoch, control: ControlRecords, timestamp: int, now_ms: int
    ) -> SnapshotSink:
        """Begin to write a snapshot."""

    def reader(self, snapshot: OffsetAndEpoch) -> SnapshotSource:
        """Open a stored snapshot."""

    def read(self, snapshot: OffsetAndEpoch, position: int, max_bytes: int) -> bytes:
        """Return bytes of a stored snapshot."""

    def stored(self) -> list[SnapshotFile]:
        """Return the stored snapshots, oldest first."""

    def delete(self, snapshots: Iterable[OffsetAndEpoch], due_ms: int) -> None:
        """Delete snapshots; `purge` removes their files from `due_ms` on."""

    def purge(self, now_ms: int) -> None:
        """Remove the files that are due."""


class Disk(Protocol):
    """The open files of a replica; `Storage` provides them."""

    @property
    def log(self) -> Log:
        """The log."""

    @property
    def snapshots(self) -> Snapshots:
        """The snapshots."""

    def persist(self, effect: fx.PersistQuorumState) -> None:
        """Write the quorum state, durably (D1)."""


class ResponsePart(Protocol):
    """The part of a file that an answer carries."""

    @property
    def size(self) -> int:
        """Its maximum size in bytes."""

    def put(self) -> None:
        """Read it and place it in the answer, now or later.

        Raises: UsageError if it is no longer the same; StorageError.
        """


class Host(Protocol):
    """The surroundings of a runner: a node with sockets and threads, or a simulation of one."""

    def submit(self, event: ev.Event) -> None:
        """Queue an event for the runner: it comes soon, and in the order of these calls."""

    def send(self, request: fx.SendRequest) -> None:
        """Send a request; its answer comes back as an event."""

    def reset_connections(self, effect: fx.ResetConnections) -> None:
        """Discard the answers to everything sent so far."""

    def wants_reply(self, token: int) -> bool:
        """Return whether this answer is still wanted."""

    def reply(self, token: int, message: Message, part: ResponsePart | None) -> None:
        """Answer the request with this token; call `part.put` before sending it."""

    def decided(self, effect: fx.AppendAccepted | fx.AppendRefused | fx.UpgradeDecided) -> None:
        """Report the decision on the request with the effect's token."""

    def committed(self, effect: fx.HighWatermarkAdvanced) -> None:
        """Everything below the effect's offset is committed."""

    def role_changed(self, effect: fx.RoleChanged) -> None:
        """The role or the known leader changed."""

    def voters_changed(self, effect: fx.VotersChanged) -> None:
        """Another voter set or kraft.version is in effect."""

    def note(self, effect: fx.Note) -> None:
        """Something worth a log line."""

    def shut_down(self, effect: fx.ShutdownFinished) -> None:
        """The replica has left the quorum and may end."""


class WorkKind(StrEnum):
    """Work that takes longer than a moment."""

    FLUSH = "flush"
    FINISH_SNAPSHOT = "finish snapshot"
    WRITE_SNAPSHOT = "write snapshot"
    LOAD_SNAPSHOT = "load snapshot"


class Workers(Protocol):
    """Does work in parallel with the runner: in threads of a node, in virtual time in a simulation.

    `lock` is held while the log is flushed, and while its files are cut or closed, so that the two
    never overlap.
    """

    @property
    def lock(self) -> AbstractContextManager[object]:
        """The lock of the log's files."""

    def start(self, kind: WorkKind, work: Callable[[], T], done: Callable[[T], None]) -> None:
        """Do the work soon, then call `done` with its result, between two events of the runner.

        An exception from the work ends the replica.
        """


class Watcher(Protocol):
    """Observes a runner; the checkers of a simulation implement it.

    `before` and `after` map effect types to calls around such effects; both are read once. `every`
    is called before each effect of a step for which `step` returned True. An exception from any of
    them stops the runner.
    """

    @property
    def before(self) -> dict[type, Callable[[fx.Effect], None]]:
        """Called before an effect of this type is carried out."""

    @property
    def after(self) -> dict[type, Callable[[fx.Effect], None]]:
        """Called after an effect of this type was carried out."""

    def every(self, effect: fx.Effect) -> None:
        """The next effect is about to be carried out."""

    def step(self, event: ev.Event | None, effects: list[fx.Effect]) -> bool:
        """The core has decided on an event (None at the start); nothing is carried out yet.

        Returns: whether `every` is to be called for these effects.
        """
