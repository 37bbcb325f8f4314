"""Checks the votes and messages of one replica: S2 to S4 and S17 to S20, based only on events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from kraftwire.messages.add_raft_voter_request import AddRaftVoterRequest
from kraftwire.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraftwire.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from kraftwire.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from kraftwire.messages.end_quorum_epoch_response import EndQuorumEpochResponse
from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.messages.fetch_response import FetchResponse
from kraftwire.messages.fetch_snapshot_request import FetchSnapshotRequest
from kraftwire.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraftwire.messages.update_raft_voter_response import UpdateRaftVoterResponse
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.messages.vote_response import VoteResponse
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft.effects import ElectionState
from kraftwire.sim import describe
from kraftwire.sim.checks import replica_events as did
from kraftwire.sim.checks.cluster_history import ClusterHistory
from kraftwire.sim.checks.replica_model import ReplicaModel
from kraftwire.sim.checks.voters import Key
from kraftwire.sim.invariants import Violation
from kraftwire.wire.message import Message

_Named = tuple[int, int] | None


def is_pre_vote(message: Message) -> bool:
    """Return whether a message asks for a pre-vote."""
    return type(message) is VoteRequest and message.topics[0].partitions[0].pre_vote


def _present_leader(leader: Any) -> _Named:
    return (leader.leader_id, leader.leader_epoch) if leader is not None else None


def _of_partition(message: Any) -> _Named:
    if not message.topics:
        return None
    partition = message.topics[0].partitions[0]
    return partition.leader_id, partition.leader_epoch


def _of_fetch_answer(message: FetchResponse) -> _Named:
    responses = message.responses
    return _present_leader(responses[0].partitions[0].current_leader) if responses else None


def _of_snapshot_answer(message: FetchSnapshotResponse) -> _Named:
    topics = message.topics
    return _present_leader(topics[0].partitions[0].current_leader) if topics else None


def _of_fetch(message: Any) -> _Named:
    return -1, message.topics[0].partitions[0].current_leader_epoch


# The leader (-1 for none) and epoch that a message names.
_NAMED: dict[type, Callable[[Any], _Named]] = {
    FetchRequest: _of_fetch,
    FetchSnapshotRequest: _of_fetch,
    VoteRequest: lambda message: (-1, message.topics[0].partitions[0].replica_epoch),
    FetchResponse: _of_fetch_answer,
    FetchSnapshotResponse: _of_snapshot_answer,
    UpdateRaftVoterResponse: lambda message: _present_leader(message.current_leader),
    VoteResponse: _of_partition,
    BeginQuorumEpochRequest: _of_partition,
    BeginQuorumEpochResponse: _of_partition,
    EndQuorumEpochRequest: _of_partition,
    EndQuorumEpochResponse: _of_partition,
}


_OTHER_CLUSTER = ErrorCode.INCONSISTENT_CLUSTER_ID


class ElectionChecks:
    """Checks one replica's votes and messages; claims that concern others go to the history."""

    __slots__ = ("_history",)

    def __init__(self, history: ClusterHistory) -> None:
        self._history = history

    def on_persisted(self, model: ReplicaModel, event: did.Persisted) -> None:
        """The quorum state was written. S1, S2, S3, S19."""
        old, new, who = model.stored, event.election, model.key[0]
        if new.epoch < old.epoch:
            raise Violation(
                "S2",
                f"{who} stores epoch {new.epoch} after {old.epoch}",
                f"stored before: {_ballot(model.key, old)}",
                f"stored now: {_ballot(model.key, new)}",
            )
        is_own = event.is_due and new.epoch > old.epoch
        if event.in_pre_vote and new != old and not is_own:
            raise Violation(
                "S19",
                f"a pre-vote changes what {who} has stored",
                f"stored before: {describe.election(old)}",
                f"stored now: {describe.election(new)}",
            )
        if new.epoch == old.epoch and old.voted is not None:
            forgets = new.voted is None and new.leader_id == who
            changed = new.voted is None or new.voted.id != old.voted.id
            if changed and not forgets:
                raise Violation(
                    "S3",
                    f"{who} changes its vote in epoch {new.epoch}",
                    f"stored before: {_ballot(model.key, old)}",
                    f"stored now: {_ballot(model.key, new)}",
                )
        model.stored = new
        if new.voted is not None:
            if new.voted.id != who:
                self._history.stores_vote(who, new.voted.id, old, new)
            self._history.votes_for(model.key, new.epoch, new.voted.id)
        if new.leader_id >= 0:
            self._history.leads(who, new.leader_id, new.epoch)

    def on_request_sent(self, model: ReplicaModel, event: did.RequestSent) -> None:
        """A request leaves."""
        message = event.message
        kind = type(message)
        self._speaks(model, message, "S2")
        if kind is FetchRequest:
            self._fetches(model, cast("FetchRequest", message))
        elif kind is VoteRequest:
            self._campaigns(model, cast("VoteRequest", message))
        elif kind is AddRaftVoterRequest and model.removed_at is not None:
            raise Violation(
                "S12",
                f"{model.key[0]} asks to join again, after its removal at {model.removed_at}",
            )

    def on_response_sent(self, model: ReplicaModel, event: did.ResponseSent) -> None:
        """An answer leaves."""
        message = event.message
        if event.is_foreign and cast("Any", message).error_code != _OTHER_CLUSTER:
            raise Violation(
                "S17",
                f"{model.key[0]} takes part in another cluster",
                f"answered: {describe.message(message)}",
            )
        self._speaks(model, message, "S20")
        if type(message) is VoteResponse:
            self._grants(model, event)

    def on_step_ended(self, model: ReplicaModel, event: did.StepEnded) -> None:
        """A step is over. S2: the epoch of the role is stored. S18: only voters stand or lead."""
        if event.epoch != model.stored.epoch:
            raise Violation(
                "S2", f"{model.key[0]} is in epoch {event.epoch}, stored is {model.stored.epoch}"
            )
        if event.role in ("prospective", "candidate") and not model.may_stand():
            raise Violation("S18", f"{model.key[0]} is {event.role} and no voter")

    def _speaks(self, model: ReplicaModel, message: Message, invariant: str) -> None:
        naming = _NAMED.get(type(message))
        named = naming(message) if naming is not None else None
        if named is None:
            return
        leader, epoch = named
        if epoch > model.stored.epoch:
            raise Violation(
                invariant,
                f"{model.key[0]} speaks of epoch {epoch}, stored is {model.stored.epoch}",
            )
        if leader >= 0:
            self._history.leads(model.key[0], leader, epoch)

    def _campaigns(self, model: ReplicaModel, message: VoteRequest) -> None:
        partition, own = message.topics[0].partitions[0], model.key[0]
        epoch = partition.replica_epoch
        if not model.may_stand():
            raise Violation("S18", f"{own} asks for votes and is not a voter")
        if message.voter_id not in [member[0] for member in model.voters]:
            raise Violation(
                "S18", f"{own} asks {message.voter_id} for a vote, which is not a voter"
            )
        if (partition.replica_id, partition.replica_directory_id) != model.key:
            raise Violation("S17", f"{own} asks for votes as {partition.replica_id}")
        if epoch != model.stored.epoch:
            name = "S19" if partition.pre_vote else "S2"
            raise Violation(name, f"{own} asks in epoch {epoch}, stored is {model.stored.epoch}")
        log = (partition.last_offset_epoch, partition.last_offset)
        if log != model.last:
            raise Violation(
                "S4",
                f"{own} asks for votes with a log that is not its own",
                f"its log ends at {describe.position(model.end, model.last_epoch)}",
                f"it asks with {describe.position(log[1], log[0])}",
            )
        if model.durable < model.end:
            raise Violation(
                "S4", f"{own} asks with a log up to {model.end}, durable up to {model.durable}"
            )
        voted = model.stored.voted
        if not partition.pre_vote and (voted is None or voted.id != own):
            raise Violation("S3", f"{own} asks in epoch {epoch} without its own vote stored")
        if not partition.pre_vote:
            self._history.campaigned(own, epoch)

    @staticmethod
    def _fetches(model: ReplicaModel, message: FetchRequest) -> None:
        offset = message.topics[0].partitions[0].fetch_offset
        if offset > model.durable:
            raise Violation(
                "S9", f"{model.key[0]} fetches at {offset}, durable up to {model.durable}"
            )

    def _grants(self, model: ReplicaModel, event: did.ResponseSent) -> None:
        response = cast("VoteResponse", event.message)
        if not response.topics or not response.topics[0].partitions[0].vote_granted:
            return
        request = cast("VoteRequest", event.request).topics[0].partitions[0]
        own, candidate, epoch = model.key[0], request.replica_id, request.replica_epoch
        candidate_key = (candidate, request.replica_directory_id)
        if not request.pre_vote:
            voted = model.stored.voted
            if model.stored.epoch != epoch or voted is None or voted.id != candidate:
                raise Violation(
                    "S3",
                    f"{own} votes for {candidate} in epoch {epoch} without having stored that",
                    f"answered: {describe.vote(own, epoch, *candidate_key, model.key[1])}",
                    f"stored: {_ballot(model.key, model.stored)}",
                )
            self._history.votes_for(model.key, epoch, candidate)
        log = (request.last_offset_epoch, request.last_offset)
        mine = model.last
        if log < mine and (request.pre_vote or event.voted != candidate):
            kind = "pre-vote" if request.pre_vote else "vote"
            raise Violation(
                "S4",
                f"{own} gives a {kind} to {candidate}, whose log is older than its own",
                f"log of node {own}: ends at {describe.position(mine[1], mine[0])}",
                f"log of candidate {candidate}: ends at {describe.position(log[1], log[0])}",
            )


def _ballot(key: Key, stored: ElectionState) -> str:
    """Describe a stored vote, with both directory ids."""
    if stored.voted is None:
        return describe.vote(key[0], stored.epoch, -1, own_id=key[1])
    return describe.vote(key[0], stored.epoch, stored.voted.id, stored.voted.directory_id, key[1])
