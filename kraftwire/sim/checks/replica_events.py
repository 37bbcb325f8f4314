"""What a replica did, as plain values in order: the only input of the checks."""

from __future__ import annotations

from typing import NamedTuple

from kraftwire.messages.fetch_response import FetchResponse
from kraftwire.raft.effects import ElectionState
from kraftwire.raft.events import Event, ResponseReceived
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.sim.checks.entries import Entry
from kraftwire.sim.checks.voters import Voters
from kraftwire.wire.message import Message


class Started(NamedTuple):
    """A run began with this log and state, which a power loss would leave if `is_durable`.

    `voters` and `version` are those of the newest snapshot, which ends at `covered`, None without
    any.
    """

    start: OffsetAndEpoch
    entries: tuple[Entry, ...]
    election: ElectionState
    covered: int
    voters: Voters | None
    version: int | None
    is_durable: bool = True


class Persisted(NamedTuple):
    """The quorum state is durable.

    `in_pre_vote`: a pre-vote of a known epoch was the cause, or, if `is_due`, the replica's own
    timer, which had expired when it came.
    """

    election: ElectionState
    in_pre_vote: bool
    is_due: bool = False


class Appended(NamedTuple):
    """Batches are written at the log's end, by the leader of the epoch or by a follower. If power
    fails meanwhile, the log has some of them."""

    entries: tuple[Entry, ...]
    epoch: int
    is_leader: bool


class Truncating(NamedTuple):
    """The log will be cut; `ordered_by` is the leader epoch of the answer that asked for it."""

    end: int
    epoch: int
    ordered_by: int


class Truncated(NamedTuple):
    """The log was cut, and a power loss would not undo that if `is_durable`."""

    end: int
    is_durable: bool = True


class Flushed(NamedTuple):
    """The log became durable up to an offset."""

    end: int


class Reset(NamedTuple):
    """The log was emptied to the end of a snapshot with this state and voter set; the state is None
    if there was no such snapshot before, or not durably."""

    start: OffsetAndEpoch
    state: tuple[int, int] | None
    voters: Voters | None
    version: int | None
    epoch: int


class PrefixDropped(NamedTuple):
    """The log starts at this offset from now on, the end of a durable snapshot if `has_snapshot`.
    If power fails meanwhile, files below it may still be there."""

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
    """An answer was sent. `voted` is the replica's earlier vote in that epoch, -1 for none;
    `is_foreign` if the request came from another cluster."""

    request: Message
    message: Message
    voted: int
    is_foreign: bool = False


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
    """A client was told that its records are committed; `after` is the end of what had been
    acknowledged when it sent them."""

    base: int
    epoch: int
    values: tuple[bytes, ...]
    after: int = 0


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
    | Truncating
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


def ordered_by(event: Event | None) -> int:
    """Return the leader epoch of a Fetch answer that reports a divergence; -1 for all other events.
    """
    if type(event) is not ResponseReceived or type(event.message) is not FetchResponse:
        return -1
    partition = event.message.responses[0].partitions[0]
    diverging, leader = partition.diverging_epoch, partition.current_leader
    if diverging is None or diverging.epoch < 0 or leader is None:
        return -1
    return leader.leader_epoch
