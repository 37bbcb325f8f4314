"""What the runner of effects needs around it, as it sees it.

`kraftwire/log` provides the disk and `kraftwire/raft` the core; a node or a simulation provides the
host and the workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Protocol, TypeVar

from kraftwire.log.snapshots.layout import ControlRecords
from kraftwire.log.snapshots.reader import SnapshotFile
from kraftwire.raft import effects as fx
from kraftwire.raft import events as ev
from kraftwire.records.batch import RecordBatch
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.wire.message import Message

__all__ = [
    "Core",
    "Disk",
    "Host",
    "Log",
    "Part",
    "Reading",
    "Snapshots",
    "Watcher",
    "Work",
    "Workers",
    "Writing",
]

T = TypeVar("T")


class Core(Protocol):
    """What the runner needs of `RaftCore`."""

    @property
    def deadline_ms(self) -> int | None:
        """When `TimerExpired` is due next."""

    @property
    def high_watermark(self) -> int:
        """Everything below is committed."""

    def start(self, now_ms: int, wall_ms: int | None = None) -> list[fx.Effect]:
        """Begin."""

    def handle(
        self, event: ev.Event, now_ms: int, wall_ms: int | None = None
    ) -> list[fx.Effect]:
        """Take one event."""


class Log(Protocol):
    """What the runner needs of `MetadataLog`. Raises: StorageError from every method."""

    def append(self, data: bytes | memoryview, base_offset: int, end_offset: int) -> None:
        """Write whole batches at the end."""

    def flush(self) -> int:
        """Make everything appended so far durable; may run in a thread, next to other work."""

    def truncate(self, end_offset: int) -> int:
        """Cut the end off, durably."""

    def reset(self, start: OffsetAndEpoch) -> None:
        """Empty the log, durably, so that it starts and ends here."""

    def drop_prefix(self, start_offset: int) -> None:
        """Let the log start here, durably."""

    @property
    def size_bytes(self) -> int:
        """Bytes of the whole log."""

    def read(self, offset: int, max_bytes: int, end_offset: int) -> bytes:
        """Whole batches from the one that contains `offset` on."""

    def read_size(self, offset: int, max_bytes: int, end_offset: int) -> int:
        """How many bytes `read` would return."""


class Writing(Protocol):
    """What the runner needs of `SnapshotWriter`. May be used in another thread."""

    def append(self, values: Sequence[bytes]) -> None:
        """Write records with these values."""

    def freeze(self) -> int:
        """Make it durable and give it its name; returns its size in bytes."""

    def discard(self) -> None:
        """Remove what was written."""


class Reading(Protocol):
    """What the runner needs of `log.snapshots.reader.SnapshotReader`. May be used in another
    thread."""

    @property
    def timestamp(self) -> int:
        """The time of the last record that the snapshot contains."""

    def __iter__(self) -> Iterator[RecordBatch]:
        """The batches of data in order."""

    def close(self) -> None:
        """Let go of the file."""


class Snapshots(Protocol):
    """What the runner needs of `SnapshotStore`. Raises: StorageError from every method."""

    def append(self, snapshot: OffsetAndEpoch, position: int, data: bytes | memoryview) -> None:
        """Write a piece of a download."""

    def finish(self, snapshot: OffsetAndEpoch) -> SnapshotFile:
        """Check a download and keep it. Raises: WireError if it is damaged, and is gone."""

    def discard(self, snapshot: OffsetAndEpoch) -> None:
        """Throw an unfinished download away."""

    def writer(
        self, snapshot: OffsetAndEpoch, control: ControlRecords, timestamp: int, now_ms: int
    ) -> Writing:
        """Begin to write a snapshot."""

    def reader(self, snapshot: OffsetAndEpoch) -> Reading:
        """Open a stored snapshot."""

    def read(self, snapshot: OffsetAndEpoch, position: int, max_bytes: int) -> bytes:
        """Bytes of a stored snapshot."""

    def stored(self) -> list[SnapshotFile]:
        """What is there, the oldest first."""

    def delete(self, snapshots: Iterable[OffsetAndEpoch], due_ms: int) -> None:
        """Take snapshots away; `purge` removes their files from `due_ms` on."""

    def purge(self, now_ms: int) -> None:
        """Remove the files whose time has come."""


class Disk(Protocol):
    """What a replica has open; `Storage` provides it."""

    @property
    def log(self) -> Log:
        """The log."""

    @property
    def snapshots(self) -> Snapshots:
        """The snapshots."""

    def persist(self, effect: fx.PersistQuorumState) -> None:
        """Write the quorum state, durably (D1)."""


class Part(Protocol):
    """What an answer carries of a file."""

    @property
    def size(self) -> int:
        """How many bytes it has at most."""

    def put(self) -> None:
        """Read it and place it in the answer, now or later.

        Raises: UsageError if it is not what it was any more; StorageError.
        """


class Host(Protocol):
    """What surrounds a runner: a node with sockets and threads, or a simulation of one."""

    def submit(self, event: ev.Event) -> None:
        """Hand this to the runner later: soon, and in the order of these calls."""

    def send(self, request: fx.SendRequest) -> None:
        """Send a request; its answer comes back as an event."""

    def reset_connections(self, effect: fx.ResetConnections) -> None:
        """Nobody wants the answers to what was sent so far."""

    def wants_reply(self, token: int) -> bool:
        """Whether somebody still waits for this answer."""

    def reply(self, token: int, message: Message, part: Part | None) -> None:
        """Answer the request with this token; `part` has to be put in before it is sent."""

    def decided(self, effect: fx.AppendAccepted | fx.AppendRefused | fx.UpgradeDecided) -> None:
        """What became of the request with the effect's token."""

    def committed(self, effect: fx.HighWatermarkAdvanced) -> None:
        """Everything below the effect's offset is committed."""

    def role_changed(self, effect: fx.RoleChanged) -> None:
        """The role or what is known of the leader changed."""

    def voters_changed(self, effect: fx.VotersChanged) -> None:
        """Another voter set or kraft.version is in force."""

    def note(self, effect: fx.Note) -> None:
        """Something worth a log line."""

    def shut_down(self, effect: fx.ShutdownFinished) -> None:
        """The quorum can do without this replica."""


class Work(StrEnum):
    """Work that takes longer than a moment."""

    FLUSH = "flush"
    FINISH_SNAPSHOT = "finish snapshot"
    WRITE_SNAPSHOT = "write snapshot"
    LOAD_SNAPSHOT = "load snapshot"


class Workers(Protocol):
    """Who does such work next to the runner: threads of a node, virtual time in a simulation.

    `lock` is held while the log is flushed, and while its files are cut or closed, so that neither
    happens in the midst of the other.
    """

    @property
    def lock(self) -> AbstractContextManager[object]:
        """The lock of the log's files."""

    def start(self, kind: Work, work: Callable[[], T], done: Callable[[T], None]) -> None:
        """Do the work soon, then call `done` with its result, between two events of the runner.

        What the work raises ends the replica.
        """


class Watcher(Protocol):
    """Looks at what a runner does; a simulation's checkers are one.

    `before` and `after` name calls around the effects of a type; both are read once. `every` comes
    before each effect of a step for which `step` asks for that. What any of them raises stops the
    runner there.
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
