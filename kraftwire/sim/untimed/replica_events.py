"""What a replica reports, in order: the only input of the checks of an untimed cluster.

Events are plain values, so that a step can be checked again later.
"""

from __future__ import annotations

from typing import NamedTuple

from kraftwire.raft.effects import ElectionState
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.sim.untimed.disk import Entry
from kraftwire.sim.voters import Voters
from kraftwire.wire.message import Message


class Started(NamedTuple):
    """A run began with this log and state; `voters` and `version` are those of the newest snapshot,
    which ends at `covered`, None without any."""

    directory_id: bytes
    start: OffsetAndEpoch
    entries: tuple[Entry, ...]
    election: ElectionState
    covered: int
    voters: Voters | None
    version: int | None


class Persisted(NamedTuple):
    """The quorum state was written. `in_pre_vote`: a pre-vote of a known epoch was the cause."""

    election: ElectionState
    in_pre_vote: bool


class Appended(NamedTuple):
    """Batches were written at the log's end, by the leader of the epoch or by a follower."""

    entries: tuple[Entry, ...]
    epoch: int
    is_leader: bool


class Truncated(NamedTuple):
    """The log was cut; `ordered_by` is the leader epoch of the answer that asked for it."""

    end: int
    epoch: int
    ordered_by: int


class Flushed(NamedTuple):
    """The log became durable up to an offset."""

    end: int


class Reset(NamedTuple):
    """The log was emptied to the end of a snapshot, which holds this state and voter set."""

    start: OffsetAndEpoch
    state: tuple[int, int] | None
    voters: Voters | None
    version: int | None
    epoch: int


class PrefixDropped(NamedTuple):
    """The log now starts at this offset, the end of a stored snapshot if `has_snapshot`."""

    start: OffsetAndEpoch
    has_snapshot: bool


class SnapshotStored(NamedTuple):
    """A snapshot of a state machine was written, with its offset and checksum."""

    id: OffsetAndEpoch
    state: tuple[int, int]
    voters: Voters | None
    version: int | None


class HighWatermarkAdvanced(NamedTuple):
    """The high watermark advanced; `leader_epoch` is -1 except on the leader."""

    offset: int
    leader_epoch: int


class Elected(NamedTuple):
    """The replica was elected."""

    epoch: int


class RequestSent(NamedTuple):
    """A request was sent."""

    message: Message


class ResponseSent(NamedTuple):
    """An answer was sent. `voted` is the replica's earlier vote in that epoch, -1 for none."""

    request: Message
    message: Message
    voted: int


class Delivered(NamedTuple):
    """A state machine at offset `start` was given batches, and now has this state."""

    start: int
    entries: tuple[Entry, ...]


class Loaded(NamedTuple):
    """A state machine at offset `before` loaded a snapshot."""

    id: OffsetAndEpoch
    state: tuple[int, int]
    before: int
    role: str


class LeaderReported(NamedTuple):
    """A state machine was told who leads; `consumed` is the offset up to which it had read."""

    leader_id: int
    epoch: int
    end_offset: int
    consumed: int


class Acknowledged(NamedTuple):
    """A client was told that its records are committed."""

    base: int
    epoch: int
    values: tuple[bytes, ...]


class StepEnded(NamedTuple):
    """A step has ended, and the core is in this state."""

    epoch: int
    end: int
    high_watermark: int
    voters: Voters
    version: int
    role: str


ReplicaEvent = (
    Started
    | Persisted
    | Appended
    | Truncated
    | Flushed
    | Reset
    | PrefixDropped
    | SnapshotStored
    | HighWatermarkAdvanced
    | Elected
    | RequestSent
    | ResponseSent
    | Delivered
    | Loaded
    | LeaderReported
    | Acknowledged
    | StepEnded
)
