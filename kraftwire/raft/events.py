"""The events that a Raft core handles.

The driver of a core passes these to `RaftCore.handle` one at a time, with the time. The driver
chooses tokens and ids; they come back in the effect that answers them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kraftwire.raft.values import Destination
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.wire.message import Message


@dataclass(slots=True)
class TimerExpired:
    """The time of `RaftCore.deadline_ms` has come (an early event is harmless)."""


@dataclass(slots=True)
class RequestReceived:
    """A raft request of a peer or a client has arrived.

    `listener` is the name of the listener that received it, in upper case. `client_software` is the
    ClientSoftwareName of the connection's ApiVersions request, empty without one.
    """

    token: int
    version: int
    message: Message
    listener: str = ""
    client_software: str = ""


@dataclass(slots=True)
class RequestAbandoned:
    """The answer to this request is no longer wanted: its connection is closed."""

    token: int


@dataclass(slots=True)
class ResponseReceived:
    """The answer to a `SendRequest`."""

    request_id: int
    message: Message


@dataclass(slots=True)
class RequestFailed:
    """A `SendRequest` got no answer.

    `error` is BROKER_NOT_AVAILABLE (8) for a disconnect or a time-out, NETWORK_EXCEPTION
    (13) for failed authentication, UNSUPPORTED_VERSION (35) if peer and message have no version in
    common.
    """

    request_id: int
    error: int


@dataclass(slots=True)
class FeaturesHeard:
    """A connection for requests was made, and the other side reported the features it supports.

    They identify a replica of another implementation, even one that never sends requests to this
    node.
    """

    destination: Destination
    features: frozenset[str]


@dataclass(slots=True)
class LogFlushed:
    """The log is durable up to this offset: the `FlushLog` with these values was carried out."""

    end_offset: int
    generation: int


@dataclass(slots=True)
class AppendRequested:
    """A state machine wants records appended as one batch by the leader of `epoch`.

    `values` are the records' values, never empty. With `expected_end_offset` the first
    record must get exactly that offset: otherwise nothing is appended.
    """

    token: int
    epoch: int
    values: Sequence[bytes]
    expected_end_offset: int | None = None


@dataclass(slots=True)
class ListenerRegistered:
    """A state machine wants committed batches from `next_offset` on, and leader changes."""

    listener_id: int
    next_offset: int = 0


@dataclass(slots=True)
class ListenerConsumed:
    """A state machine has applied everything below this offset: a `DeliverCommitted` or
    `LoadSnapshot` has finished."""

    listener_id: int
    next_offset: int


@dataclass(slots=True)
class SnapshotWanted:
    """A state machine requests a snapshot of what it has applied, up to this offset.

    Order: before the `ListenerConsumed` with the same offset, so that nothing more is delivered
    until `WriteSnapshot` was carried out. `timestamp` is that of the last record applied. Answered
    by `WriteSnapshot` or `SnapshotRefused`.
    """

    listener_id: int
    end_offset: int
    timestamp: int


@dataclass(slots=True)
class SnapshotWritten:
    """A `WriteSnapshot` is done: the snapshot is durable under its final name. Units: bytes."""

    id: OffsetAndEpoch
    size: int


@dataclass(slots=True)
class SnapshotFailed:
    """A `WriteSnapshot` failed; its file has been removed."""

    id: OffsetAndEpoch
    problem: str


@dataclass(slots=True)
class SnapshotFinished:
    """A `FinishSnapshot` is done: every checksum is correct, and the file is durable under its
    final name.

    `control` holds the bytes of the snapshot's first control batch: header, version, voters.
    """

    id: OffsetAndEpoch
    size: int
    control: bytes


@dataclass(slots=True)
class SnapshotRejected:
    """A downloaded snapshot was damaged, or could not be written, and has been discarded."""

    id: OffsetAndEpoch
    problem: str


@dataclass(slots=True)
class LogStartProposed:
    """Retention proposes to start the log at the end of this snapshot; answered by `DropLogPrefix`
    if that is allowed."""

    snapshot: OffsetAndEpoch


@dataclass(slots=True)
class UpgradeRequested:
    """Raise kraft.version (KIP-853, UpdateFeatures); answered by `UpgradeDecided`.

    With `validate_only` nothing is written.
    """

    token: int
    epoch: int
    version: int
    validate_only: bool = False


@dataclass(slots=True)
class ClusterIdKnown:
    """The cluster id became known after startup (raft-README mode)."""

    cluster_id: str


@dataclass(slots=True)
class ResignRequested:
    """The state machine asks the leader of this epoch to resign."""

    epoch: int


@dataclass(slots=True)
class LeadershipForbidden:
    """The state machine cannot act on this log: the replica must not lead until it is restarted.

    It resigns, never stands again, and goes on voting and replicating. `reason` is for people.
    """

    reason: str


@dataclass(slots=True)
class ShutdownRequested:
    """Leave the quorum cleanly within the shutdown timeout; ends with `ShutdownFinished`."""


Event = (
    TimerExpired
    | RequestReceived
    | RequestAbandoned
    | ResponseReceived
    | RequestFailed
    | FeaturesHeard
    | LogFlushed
    | AppendRequested
    | ListenerRegistered
    | ListenerConsumed
    | SnapshotWanted
    | SnapshotWritten
    | SnapshotFailed
    | SnapshotFinished
    | SnapshotRejected
    | LogStartProposed
    | UpgradeRequested
    | ClusterIdKnown
    | ResignRequested
    | LeadershipForbidden
    | ShutdownRequested
)
