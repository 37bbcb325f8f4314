"""Checks every message that leaves a node: epochs, leaders, votes, positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from kraftwire.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraftwire.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from kraftwire.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from kraftwire.messages.end_quorum_epoch_response import EndQuorumEpochResponse
from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.messages.fetch_response import FetchResponse, PartitionData
from kraftwire.messages.fetch_snapshot_request import FetchSnapshotRequest
from kraftwire.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.messages.vote_response import VoteResponse
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft.events import Event, ResponseReceived
from kraftwire.sim.check_elections import ElectionChecks
from kraftwire.sim.check_logs import LogChecks
from kraftwire.sim.invariants import Violation
from kraftwire.wire.message import Message

VOTE = VoteRequest.API_KEY


def is_pre_vote(message: Message) -> bool:
    """Return whether a message asks for a pre-vote."""
    return message.API_KEY == VOTE and cast("VoteRequest", message).topics[0].partitions[0].pre_vote


def diverging_epoch_of(event: Event | None) -> int | None:
    """Return the leader epoch of a Fetch answer that reports a divergence; None for all else."""
    if type(event) is not ResponseReceived or event.message.__class__ is not FetchResponse:
        return None
    partition = event.message.responses[0].partitions[0]
    diverging, leader = partition.diverging_epoch, partition.current_leader
    if diverging is None or diverging.epoch < 0 or leader is None:
        return None
    return leader.leader_epoch


class MessageChecks:
    """Checks every message that leaves a node against what the node has stored."""

    __slots__ = ("_election_checks", "_logs", "_replies", "_requests")

    def __init__(self, election_checks: ElectionChecks, log_checks: LogChecks) -> None:
        self._election_checks = election_checks
        self._logs = log_checks.logs
        self._requests: dict[int, Callable[[int, Any], None]] = {
            FetchSnapshotRequest.API_KEY: self._snapshot_request,
            VoteRequest.API_KEY: self._vote_request,
            BeginQuorumEpochRequest.API_KEY: self._begin_request,
            EndQuorumEpochRequest.API_KEY: self._end_request,
        }
        self._replies: dict[int, Callable[[int, Any], None]] = {
            FetchSnapshotResponse.API_KEY: self._snapshot_response,
            VoteResponse.API_KEY: self._plain_response,
            BeginQuorumEpochResponse.API_KEY: self._plain_response,
            EndQuorumEpochResponse.API_KEY: self._plain_response,
        }

    def fetch(self, node: int, message: FetchRequest) -> None:
        """Check a Fetch before it is sent. S2, S9."""
        partition = message.topics[0].partitions[0]
        self._election_checks.sends(node, partition.current_leader_epoch)
        end = self._logs[node].durable_end
        if partition.fetch_offset > end:
            raise Violation("S9", f"{node} fetches at {partition.fetch_offset}, durable to {end}")

    def request(self, node: int, message: Message) -> None:
        """Check any other request before it is sent."""
        check = self._requests.get(message.API_KEY)
        if check is not None:
            check(node, message)

    def fetched(self, node: int, partition: PartitionData) -> None:
        """Check the answer to a Fetch before it is sent. S1, S2, S20."""
        self._named(node, partition.current_leader)

    def reply(self, node: int, message: Message) -> None:
        """Check any other answer before it is sent; it may be an error in reply to a Fetch."""
        check = self._replies.get(message.API_KEY)
        if check is not None:
            check(node, message)

    def foreign(self, node: int, message: Message) -> None:
        """Check the answer to a request of another cluster. S17: it is an error."""
        if cast("Any", message).error_code != ErrorCode.INCONSISTENT_CLUSTER_ID:
            raise Violation("S17", f"{node} takes part in another cluster: {message}")

    def vote(self, node: int, request: Message, message: Message, vote_before: int) -> None:
        """Check the answer to a Vote request; `vote_before` is the node's vote before the request.
        """
        answers = cast("VoteResponse", message).topics
        if not answers or not answers[0].partitions[0].vote_granted:
            return
        partition = cast("VoteRequest", request).topics[0].partitions[0]
        if not partition.pre_vote:
            self._election_checks.grants(node, partition.replica_epoch, partition.replica_id)
        if partition.pre_vote or vote_before != partition.replica_id:
            log = (partition.last_offset_epoch, partition.last_offset)
            self._election_checks.compares(self._logs[node].last, log, node)

    def _snapshot_request(self, node: int, message: FetchSnapshotRequest) -> None:
        self._election_checks.sends(node, message.topics[0].partitions[0].current_leader_epoch)

    def _vote_request(self, node: int, message: VoteRequest) -> None:
        partition = message.topics[0].partitions[0]
        log, voter, pre_vote = self._logs[node], message.voter_id, partition.pre_vote
        if (partition.replica_id, partition.replica_directory_id) != log.key:
            raise Violation("S17", f"{node} asks for votes as {partition.replica_id}")
        self._election_checks.stands(node, may_stand=log.may_stand)
        self._election_checks.asks_for_vote(
            node, partition.replica_epoch, voter, pre_vote=pre_vote, voters=log.in_force.voters
        )
        said, mine = (partition.last_offset_epoch, partition.last_offset), log.last
        if said != mine or log.durable_end < log.end:
            raise Violation(
                "S4",
                f"{node} asks for votes with a log that it does not have durably",
                f"said: ends with (epoch, offset) {said}",
                f"its log: ends with {mine}, durable to {log.durable_end}",
            )

    def _begin_request(self, node: int, message: BeginQuorumEpochRequest) -> None:
        partition = message.topics[0].partitions[0]
        self._election_checks.names_leader(node, partition.leader_epoch, partition.leader_id)

    def _end_request(self, node: int, message: EndQuorumEpochRequest) -> None:
        partition = message.topics[0].partitions[0]
        self._election_checks.names_leader(node, partition.leader_epoch, partition.leader_id)

    def _snapshot_response(self, node: int, message: FetchSnapshotResponse) -> None:
        if message.topics:
            self._named(node, message.topics[0].partitions[0].current_leader)

    def _named(self, node: int, leader: Any) -> None:
        if leader is not None and leader.leader_id >= 0:
            self._election_checks.names_leader(node, leader.leader_epoch, leader.leader_id)
        elif leader is not None:
            self._election_checks.sends(node, leader.leader_epoch)

    def _plain_response(self, node: int, message: Any) -> None:
        if message.topics:
            partition = message.topics[0].partitions[0]
            if partition.leader_id >= 0:
                leader = partition.leader_epoch, partition.leader_id
                self._election_checks.names_leader(node, *leader)
            else:
                self._election_checks.sends(node, partition.leader_epoch)
