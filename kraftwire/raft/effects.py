"""Everything a Raft core asks for.

Order: effects are carried out one after the other, each finished before the next begins, except
for `FlushLog`, which may run beside later work and is answered by `LogFlushed`. So what stands
behind `PersistQuorumState` or `TruncateLog` in the list happens only once that is durable. A
failure of either, of `AppendToLog` or of a flush ends the node: nothing is retried on a file that
may have lost pages (D9).
"""

from __future__ import annotations

from dataclasses import dataclass

from kraftwire.raft.voters import ReplicaKey
from kraftwire.wire.message import Message

__all__ = [
    "AppendAccepted",
    "AppendRefused",
    "AppendToLog",
    "DeliverCommitted",
    "Destination",
    "Effect",
    "ElectionState",
    "FlushLog",
    "HighWatermarkAdvanced",
    "LeaderChanged",
    "LogSlice",
    "Note",
    "PersistQuorumState",
    "ResetConnections",
    "RoleChanged",
    "SendReply",
    "SendRequest",
    "ShutdownFinished",
    "TruncateLog",
]


@dataclass(frozen=True, slots=True)
class ElectionState:
    """What the quorum-state file keeps of an epoch. Shape: -1 for no leader, None for no vote."""

    epoch: int = 0
    leader_id: int = -1
    voted: ReplicaKey | None = None


@dataclass(slots=True)
class PersistQuorumState:
    """Write the quorum-state file: temporary file, fsync, rename, fsync of the directory (D1)."""

    state: ElectionState


@dataclass(slots=True)
class AppendToLog:
    """Write whole batches at the log's end; durable only after a flush.

    Shape: `data` holds batches with offsets and epochs as they must stand in the log;
    `end_offset` is the log end offset afterwards.
    """

    base_offset: int
    end_offset: int
    data: bytes | memoryview


@dataclass(slots=True)
class TruncateLog:
    """Cut the log so that it ends at this offset, durably (D5)."""

    end_offset: int


@dataclass(slots=True)
class FlushLog:
    """Make the log durable up to its present end; answer with `LogFlushed` of the same values.

    Shape: `generation` counts truncations, so that an answer from before one is not taken for the
    bytes that were written since. Only the newest of several flushes has to be answered.
    """

    end_offset: int
    generation: int


@dataclass(frozen=True, slots=True)
class Destination:
    """A node to talk to. Shape: ids below -1 are bootstrap servers, each with a connection of
    its own (-2 is the first)."""

    id: int
    host: str
    port: int


@dataclass(slots=True)
class SendRequest:
    """Send a request; answer with `ResponseReceived` or `RequestFailed` once.

    Units: `timeout_ms` after which the driver gives up with BROKER_NOT_AVAILABLE.
    """

    request_id: int
    destination: Destination
    message: Message
    timeout_ms: int


@dataclass(slots=True)
class ResetConnections:
    """Forget the requests in flight: their answers will not be looked at any more."""


@dataclass(frozen=True, slots=True)
class LogSlice:
    """A part of the log: whole batches of one segment, from the one that contains `offset`.

    Units: at most `max_bytes`, but at least the first batch; nothing at or above `end_offset`.
    """

    offset: int
    max_bytes: int
    end_offset: int


@dataclass(slots=True)
class SendReply:
    """Answer a request. Shape: `records` goes into the only partition of a FetchResponse."""

    token: int
    message: Message
    records: LogSlice | None = None


@dataclass(slots=True)
class HighWatermarkAdvanced:
    """Everything below this offset is committed."""

    offset: int


@dataclass(slots=True)
class DeliverCommitted:
    """Hand the committed batches in [start_offset, end_offset) to a listener.

    Shape: whole batches, control batches included; answer with `ListenerConsumed`, possibly with a
    smaller offset (a batch's border) if less was read.
    """

    listener_id: int
    start_offset: int
    end_offset: int


@dataclass(slots=True)
class LeaderChanged:
    """Tell a listener who leads.

    Shape: `leader_id` -1 for nobody. To the leader's own listener it comes once everything before
    `end_offset`, the offset behind its LeaderChange batch, is consumed (KAFKA-15345); to others
    at once, with the log end offset as they know it.
    """

    listener_id: int
    leader_id: int
    epoch: int
    end_offset: int


@dataclass(slots=True)
class AppendAccepted:
    """The records will stand at these offsets, if they are committed."""

    token: int
    base_offset: int
    last_offset: int
    epoch: int


@dataclass(slots=True)
class AppendRefused:
    """Nothing was appended. Shape: `reason` is `NotLeader`, `UnexpectedEndOffset`,
    `RecordBatchTooLarge`, `TooManyPending` or `IllegalEpoch`."""

    token: int
    reason: str
    detail: str


@dataclass(slots=True)
class RoleChanged:
    """The role or what is known of the leader changed; for logs, metrics and checkers.

    Shape: role names as in the metric `current-state`, without `observer`: `unattached`,
    `prospective`, `candidate`, `leader`, `resigned`, `follower`.
    """

    old: str
    new: str
    epoch: int
    leader_id: int
    reason: str


@dataclass(slots=True)
class Note:
    """Something worth a log line that changes no role. Shape: `level` as in `logging`."""

    level: str
    text: str


@dataclass(slots=True)
class ShutdownFinished:
    """The quorum can do without this node; `graceful` is False if the time ran out."""

    graceful: bool


Effect = (
    PersistQuorumState
    | AppendToLog
    | TruncateLog
    | FlushLog
    | SendRequest
    | ResetConnections
    | SendReply
    | HighWatermarkAdvanced
    | DeliverCommitted
    | LeaderChanged
    | AppendAccepted
    | AppendRefused
    | RoleChanged
    | Note
    | ShutdownFinished
)

