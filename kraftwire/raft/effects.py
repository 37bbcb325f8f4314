"""The effects of a Raft core: the actions that it requests from its driver.

Order: effects are carried out one after the other, each finished before the next begins, except for
`FlushLog`, which may run in parallel with later work and is answered by `LogFlushed`. So the
effects after `PersistQuorumState` or `TruncateLog` in the list happen only once that is durable. A
failure of either, of `AppendToLog` or of a flush ends the node: nothing is retried on a file that
may have lost pages (D9).
"""

from __future__ import annotations

from dataclasses import dataclass

from kraftwire.raft.values import (
    Destination,
    ElectionState,
    LogSlice,
    RefusalReason,
    SnapshotSlice,
)
from kraftwire.raft.voters import VoterSet
from kraftwire.records.control import ControlType
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.wire.message import Message

__all__ = [
    "AppendAccepted",
    "AppendRefused",
    "AppendToLog",
    "AppendToSnapshot",
    "DeliverCommitted",
    "Destination",
    "DiscardSnapshot",
    "DropLogPrefix",
    "Effect",
    "ElectionState",
    "FinishSnapshot",
    "FlushLog",
    "HighWatermarkAdvanced",
    "LeaderChanged",
    "LoadSnapshot",
    "LogSlice",
    "Note",
    "PersistQuorumState",
    "RefusalReason",
    "ResetConnections",
    "ResetLog",
    "RoleChanged",
    "SendReply",
    "SendRequest",
    "ShutdownFinished",
    "SnapshotRefused",
    "SnapshotSlice",
    "TruncateLog",
    "UpgradeDecided",
    "VotersChanged",
    "WriteSnapshot",
]


@dataclass(slots=True)
class PersistQuorumState:
    """Write the quorum-state file: temporary file, fsync, rename, fsync of the directory (D1).

    A step has at most one of these, and it comes before everything that depends on it.
    `kraft_version` decides the file's version; `voters` are the ids that version 0 holds.
    """

    state: ElectionState
    kraft_version: int = 0
    voters: tuple[int, ...] = ()


@dataclass(slots=True)
class AppendToLog:
    """Write whole batches at the log's end; durable only after a flush.

    `data` holds batches with their final offsets and epochs; `end_offset` is the log end offset
    afterwards.
    """

    base_offset: int
    end_offset: int
    data: bytes | memoryview


@dataclass(slots=True)
class TruncateLog:
    """Truncate the log to this end offset, durably (D5)."""

    end_offset: int


@dataclass(slots=True)
class FlushLog:
    """Make the log durable up to its current end; answer with `LogFlushed` of the same values.

    `generation` counts truncations, so that the answer to an older flush is not applied to bytes
    written since. Only the newest of several flushes needs an answer.
    """

    end_offset: int
    generation: int


@dataclass(slots=True)
class SendRequest:
    """Send a request; answer with `ResponseReceived` or `RequestFailed` once.

    Units: after `timeout_ms` the driver fails the request with BROKER_NOT_AVAILABLE.
    """

    request_id: int
    destination: Destination
    message: Message
    timeout_ms: int


@dataclass(slots=True)
class ResetConnections:
    """Forget the requests in flight: their answers will be ignored."""


@dataclass(slots=True)
class SendReply:
    """Answer a request, after reading the bytes of `part` and putting them into the message."""

    token: int
    message: Message
    part: LogSlice | SnapshotSlice | None = None


@dataclass(slots=True)
class AppendToSnapshot:
    """Write bytes of a snapshot that is being downloaded, at this position of its `.part` file.

    Position 0 begins a new file. At most one download is open: one with another id is discarded.
    """

    id: OffsetAndEpoch
    position: int
    data: bytes | memoryview


@dataclass(slots=True)
class FinishSnapshot:
    """Check a downloaded snapshot, make it durable and rename it to its final name.

    May run next to later work; answered by `SnapshotFinished` or `SnapshotRejected`.
    """

    id: OffsetAndEpoch


@dataclass(slots=True)
class DiscardSnapshot:
    """Discard the unfinished download with this id, if there is one."""

    id: OffsetAndEpoch


@dataclass(slots=True)
class ResetLog:
    """Empty the log, durably, so that it starts and ends where this snapshot ends.

    Older snapshots are no longer needed: they are deleted after the delete delay.
    """

    start: OffsetAndEpoch


@dataclass(slots=True)
class DropLogPrefix:
    """Advance the log start offset to the end of a snapshot: segments wholly below it may be
    deleted.

    `snapshots` are older than that one; they are deleted too, after the delete delay.
    """

    start_offset: int
    snapshots: tuple[OffsetAndEpoch, ...]


@dataclass(slots=True)
class WriteSnapshot:
    """Write a snapshot of what a listener has applied, exactly up to `id.offset`.

    `control` are the records that follow the header: kraft.version and voters. `timestamp` is that
    of the last record contained, for the header. May run next to later work; answered by
    `SnapshotWritten` or `SnapshotFailed`.
    """

    listener_id: int
    id: OffsetAndEpoch
    control: tuple[tuple[ControlType, Message], ...]
    timestamp: int


@dataclass(slots=True)
class SnapshotRefused:
    """A `SnapshotWanted` is refused, for this reason."""

    listener_id: int
    end_offset: int
    reason: str


@dataclass(slots=True)
class HighWatermarkAdvanced:
    """Everything below this offset is committed."""

    offset: int


@dataclass(slots=True)
class DeliverCommitted:
    """Deliver the committed batches in [start_offset, end_offset) to a listener.

    Whole batches, control batches included; answer with `ListenerConsumed`, possibly with a smaller
    offset (a batch boundary) if less was read.
    """

    listener_id: int
    start_offset: int
    end_offset: int


@dataclass(slots=True)
class LoadSnapshot:
    """Make a listener replace its state with that of a snapshot; answered by `ListenerConsumed`
    with the snapshot's end offset. It may take long; the listener gets nothing else in the
    meantime."""

    listener_id: int
    id: OffsetAndEpoch


@dataclass(slots=True)
class LeaderChanged:
    """Report the leader to a listener.

    `leader_id` is -1 if there is none. The leader's own listener hears of it once everything before
    `end_offset`, the offset after its LeaderChange batch, is consumed (KAFKA-15345); others at
    once, with the log end offset that they know.
    """

    listener_id: int
    leader_id: int
    epoch: int
    end_offset: int


@dataclass(slots=True)
class AppendAccepted:
    """The records have these offsets, if they are committed."""

    token: int
    base_offset: int
    last_offset: int
    epoch: int


@dataclass(slots=True)
class AppendRefused:
    """Nothing was appended."""

    token: int
    reason: RefusalReason
    detail: str


@dataclass(slots=True)
class UpgradeDecided:
    """The result of an `UpgradeRequested`: an error code, or 0 and the offset of the record that
    must be committed (-1 if there is nothing to wait for)."""

    token: int
    error: int
    detail: str
    offset: int


@dataclass(slots=True)
class VotersChanged:
    """Another voter set or kraft.version is in effect; for logs, metrics and checkers.

    `offset` is that of its record, -1 for the static configuration or a snapshot.
    """

    voters: VoterSet
    kraft_version: int
    offset: int
    is_voter: bool


@dataclass(slots=True)
class RoleChanged:
    """The role or the known leader changed; for logs, metrics and checkers.

    Role names as in the metric `current-state`, without `observer`: `unattached`,
    `prospective`, `candidate`, `leader`, `resigned`, `follower`.
    """

    old: str
    new: str
    epoch: int
    leader_id: int
    reason: str


@dataclass(slots=True)
class Note:
    """A log line that is not about a change of role.

    `level` is a name as in `logging`. `key` names the kind of line, independent of the text;
    one rate limit applies to all lines of a key.
    """

    level: str
    text: str
    key: str = ""


@dataclass(slots=True)
class ShutdownFinished:
    """The node may end; `graceful` is False if the shutdown timed out."""

    graceful: bool


Effect = (
    PersistQuorumState
    | AppendToLog
    | TruncateLog
    | FlushLog
    | AppendToSnapshot
    | FinishSnapshot
    | DiscardSnapshot
    | ResetLog
    | DropLogPrefix
    | WriteSnapshot
    | SnapshotRefused
    | SendRequest
    | ResetConnections
    | SendReply
    | HighWatermarkAdvanced
    | DeliverCommitted
    | LoadSnapshot
    | LeaderChanged
    | AppendAccepted
    | AppendRefused
    | UpgradeDecided
    | VotersChanged
    | RoleChanged
    | Note
    | ShutdownFinished
)

