"""BeginQuorumEpoch and EndQuorumEpoch: a leader announces itself, and later that it resigns.

Source: KIP-595; R-BEG-1 to R-BEG-4, R-END-1 to R-END-6.
"""

from __future__ import annotations

from typing import Any, cast

from kraftwire.messages import begin_quorum_epoch_request as begin
from kraftwire.messages import end_quorum_epoch_request as end
from kraftwire.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from kraftwire.messages.end_quorum_epoch_response import EndQuorumEpochResponse
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft import answers
from kraftwire.raft.changes import endpoints_named
from kraftwire.raft.effects import SendReply
from kraftwire.raft.elections import is_addressee
from kraftwire.raft.epochs import may_move_epoch
from kraftwire.raft.events import RequestReceived
from kraftwire.raft.responses import ResponseOutcome, settle_partition, settle_top_level
from kraftwire.raft.roles import Follower, Leader, Resigned
from kraftwire.raft.state import Purpose, RaftState, SentRequest
from kraftwire.raft.transitions import is_consistent, maybe_transition
from kraftwire.raft.voters import ReplicaKey
from kraftwire.wire.fast import ZERO_UUID
from kraftwire.wire.message import Message


def poll_announcements(state: RaftState, leader: Leader) -> None:
    """Announce the leader to voters that have not fetched for half a fetch timeout (R-BEG-1)."""
    if state.now < leader.begin_due_ms:
        return
    leader.begin_due_ms = state.now + state.config.timers.fetch_timeout_ms // 2
    for voter in leader.progress.silent_voters(state.now):
        destination = state.voter_destination(voter)
        if destination is not None and state.is_ready(destination):
            state.send(destination, _begin_request(state, voter), Purpose.BEGIN)


def _begin_request(state: RaftState, voter: ReplicaKey) -> Message:
    partition = begin.PartitionData(
        leader_id=state.config.key.id,
        leader_epoch=state.role.epoch,
        voter_directory_id=voter.directory_id,
    )
    endpoints = [
        begin.LeaderEndpoint(name=at.listener, host=at.host, port=at.port)
        for at in state.config.endpoints
    ]
    return begin.BeginQuorumEpochRequest(
        cluster_id=state.cluster_id,
        voter_id=voter.id,
        topics=[begin.TopicData(topic_name=state.config.topic.name, partitions=[partition])],
        leader_endpoints=endpoints,
    )


def send_end_quorum_epoch(state: RaftState, role: Resigned) -> None:
    """Announce the resignation to the voters that have not acknowledged it (R-END-1)."""
    for voter in role.unacknowledged:
        destination = state.voter_destination(voter)
        if destination is not None and state.is_ready(destination):
            state.send(destination, _end_request(state, role), Purpose.END)


def _end_request(state: RaftState, role: Resigned) -> Message:
    candidates = [
        end.ReplicaInfo(candidate_id=key.id, candidate_directory_id=key.directory_id)
        for key in role.preferred
    ]
    partition = end.PartitionData(
        leader_id=role.leader_id,
        leader_epoch=role.epoch,
        preferred_successors=[key.id for key in role.preferred],
        preferred_candidates=candidates,
    )
    endpoints = [
        end.LeaderEndpoint(name=at.listener, host=at.host, port=at.port)
        for at in state.config.endpoints
    ]
    return end.EndQuorumEpochRequest(
        cluster_id=state.cluster_id,
        topics=[end.TopicData(topic_name=state.config.topic.name, partitions=[partition])],
        leader_endpoints=endpoints,
    )


def handle_begin_request(state: RaftState, event: RequestReceived) -> None:
    """Follow the leader that announces itself."""
    request = cast("begin.BeginQuorumEpochRequest", event.message)
    if answers.cluster_id_differs(state, request.cluster_id):
        code = ErrorCode.INCONSISTENT_CLUSTER_ID
        state.emit(SendReply(event.token, BeginQuorumEpochResponse(error_code=code)))
        return
    partition = answers.only_partition(request.topics, state.config.topic)
    if partition is None:
        code = ErrorCode.INVALID_REQUEST
        state.emit(SendReply(event.token, BeginQuorumEpochResponse(error_code=code)))
        return
    error = _accept(state, partition, request.leader_endpoints)
    if error == ErrorCode.NONE and not is_addressee(
        state, request.voter_id, partition.voter_directory_id
    ):
        # The transition stays: the epoch has this leader even if another voter was addressed
        # (R-BEG-2).
        error = ErrorCode.INVALID_VOTER_KEY
    reply = answers.begin_quorum_epoch(state, answers.listener_of(event), error)
    state.emit(SendReply(event.token, reply))


def _accept(state: RaftState, partition: Any, leader_endpoints: list[Any]) -> ErrorCode:
    """Accept an announcement, or return why not (R-BEG-2)."""
    leader_id, epoch = partition.leader_id, partition.leader_epoch
    if epoch < state.role.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if leader_id < 0:
        return ErrorCode.INVALID_REQUEST
    # The request does not include the end of the leader's log, which may well be ahead.
    if not may_move_epoch(state, ReplicaKey(leader_id, ZERO_UUID), epoch, is_ahead=True):
        return ErrorCode.BROKER_NOT_AVAILABLE
    if not is_consistent(state, leader_id, epoch):
        # Fatal to a Java node. A retriable error harms a confused peer least.
        maybe_transition(state, leader_id, epoch, (), "announcement")
        return ErrorCode.BROKER_NOT_AVAILABLE
    named = endpoints_named(leader_endpoints)
    endpoints = tuple(endpoint for endpoint in named if endpoint.is_usable)
    if not maybe_transition(state, leader_id, epoch, endpoints, f"{leader_id} announced itself"):
        return ErrorCode.BROKER_NOT_AVAILABLE
    return ErrorCode.NONE


def handle_end_request(state: RaftState, event: RequestReceived) -> None:
    """Stand for election in the order that the resigning leader proposes (R-END-3)."""
    request = cast("end.EndQuorumEpochRequest", event.message)
    if answers.cluster_id_differs(state, request.cluster_id):
        code = ErrorCode.INCONSISTENT_CLUSTER_ID
        state.emit(SendReply(event.token, EndQuorumEpochResponse(error_code=code)))
        return
    partition = answers.only_partition(request.topics, state.config.topic)
    if partition is None:
        code = ErrorCode.INVALID_REQUEST
        state.emit(SendReply(event.token, EndQuorumEpochResponse(error_code=code)))
        return
    error = _accept(state, partition, request.leader_endpoints)
    role = state.role
    if (
        error == ErrorCode.NONE
        and type(role) is Follower
        and role.leader_id == partition.leader_id
    ):
        role.fetch_deadline_ms = state.now + _backoff(state, partition)
        # The leader itself has announced its end, so pre-votes may be granted (KAFKA-20895).
        role.has_fetched = False
    reply = answers.end_quorum_epoch(state, answers.listener_of(event), error)
    state.emit(SendReply(event.token, reply))


def _backoff(state: RaftState, partition: Any) -> int:
    """Return how long to wait before standing for election: not at all for the first successor
    (R-END-4)."""
    candidates = partition.preferred_candidates
    if candidates:
        keys = [(one.candidate_id, one.candidate_directory_id) for one in candidates]
    else:
        keys = [(one, bytes(16)) for one in partition.preferred_successors]
    mine, count = state.config.key, len(keys)
    position = next(
        (
            place
            for place, (replica_id, directory) in enumerate(keys)
            if replica_id == mine.id and directory in (bytes(16), mine.directory_id)
        ),
        count,
    )
    longest = state.config.timers.election_backoff_max_ms
    if position == 0:
        return 0
    if position >= count:
        return longest
    return min(longest, (longest >> (count - 1)) << (position - 1))


def handle_begin_response(
    state: RaftState, sent: SentRequest, response: BeginQuorumEpochResponse
) -> None:
    """Check an answer for a newer leader; an acknowledgement changes nothing."""
    _settle(state, sent, response)


def handle_end_response(
    state: RaftState, sent: SentRequest, response: EndQuorumEpochResponse
) -> None:
    """Record that a voter has acknowledged the resignation (R-END-5)."""
    if _settle(state, sent, response) is not ResponseOutcome.OWN:
        return
    role = state.role
    if type(role) is Resigned and sent.destination.key in role.unacknowledged:
        role.unacknowledged.remove(sent.destination.key)


def _settle(
    state: RaftState, sent: SentRequest, response: BeginQuorumEpochResponse | EndQuorumEpochResponse
) -> ResponseOutcome:
    if not settle_top_level(state, sent, response.error_code):
        return ResponseOutcome.FAILED
    partition = answers.only_partition(response.topics, state.config.topic)
    listener = state.config.listener
    endpoints = (
        answers.endpoints_of(response.node_endpoints, partition.leader_id, listener)
        if partition
        else ()
    )
    return settle_partition(state, sent, partition, endpoints)
