"""Requests about the voter set: UpdateRaftVoter both ways, AddRaftVoter and RemoveRaftVoter.

This core changes no voter set: it refuses as a Java leader of a static quorum (kraft.version 0)
does, and tells a Java leader about itself, which that needs for a later upgrade.

Source: KIP-853; notes R-ADD-1, R-REM-1, R-UPD-1 to R-UPD-5.
"""

from __future__ import annotations

from typing import cast

from kraftwire.messages.add_raft_voter_request import AddRaftVoterRequest
from kraftwire.messages.add_raft_voter_response import AddRaftVoterResponse
from kraftwire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraftwire.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kraftwire.messages.update_raft_voter_request import (
    KRaftVersionFeature,
    Listener,
    UpdateRaftVoterRequest,
)
from kraftwire.messages.update_raft_voter_response import CurrentLeader, UpdateRaftVoterResponse
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft import answers
from kraftwire.raft.config import KRAFT_VERSION_MAX
from kraftwire.raft.effects import Destination, SendReply
from kraftwire.raft.events import RequestReceived
from kraftwire.raft.responses import Outcome, settle
from kraftwire.raft.roles import Follower
from kraftwire.raft.serving import leader_error
from kraftwire.raft.state import RaftState, Sent
from kraftwire.raft.voters import Endpoint, ReplicaKey

__all__ = [
    "handle_add_voter",
    "handle_remove_voter",
    "handle_update_response",
    "handle_update_voter",
    "poll_update",
]

_STATIC = "the voter set is that of controller.quorum.voters; it stays (kraft.version 0)"
_DYNAMIC = "this leader changes no voter set; a Java controller would, when it leads"


def poll_update(state: RaftState, role: Follower, leader: Destination) -> bool:
    """Tell the leader this voter's listeners and versions, once it is time (R-UPD-1).

    Returns whether a request went out; then the next fetch waits for its answer.
    """
    if state.now < role.update_due_ms or not state.is_voter:
        return False
    role.update_due_ms = state.now + state.config.timers.fetch_timeout_ms
    if role.has_updated or state.history.kraft_version != 0:
        return False
    key = state.config.key
    listeners = [
        Listener(name=at.listener, host=at.host, port=at.port) for at in state.config.endpoints
    ]
    request = UpdateRaftVoterRequest(
        cluster_id=state.cluster_id,
        current_leader_epoch=role.epoch,
        voter_id=key.id,
        voter_directory_id=key.directory_id,
        listeners=listeners,
        kraft_version_feature=KRaftVersionFeature(
            min_supported_version=0, max_supported_version=KRAFT_VERSION_MAX
        ),
    )
    state.send(leader, request)
    return True


def handle_update_response(
    state: RaftState, sent: Sent, response: UpdateRaftVoterResponse
) -> None:
    """Note that the leader knows this voter, or learn who leads (R-UPD-5)."""
    leader, role = response.current_leader, state.role
    if leader is None or leader.leader_epoch < 0:
        return
    endpoint = Endpoint(state.config.listener, leader.host, leader.port)
    endpoints = (endpoint,) if endpoint.is_usable else ()
    answer = (response.error_code, leader.leader_id, leader.leader_epoch)
    if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
        answer = (ErrorCode.NONE, leader.leader_id, leader.leader_epoch)
    if settle(state, sent, answer, endpoints) is Outcome.OWN and type(role) is Follower:
        role.has_updated = True
        role.fetch_deadline_ms = state.now + role.patience_ms


def handle_update_voter(state: RaftState, event: RequestReceived) -> None:
    """Take note of what a voter says of itself: it is alive (R-UPD-3)."""
    request = cast("UpdateRaftVoterRequest", event.message)
    error = _judge_update(state, request)
    role = state.role
    response = UpdateRaftVoterResponse(error_code=error)
    if error != ErrorCode.INCONSISTENT_CLUSTER_ID:
        address = answers.leader_address(state, event.listener)
        response.current_leader = CurrentLeader(
            leader_id=role.leader_id,
            leader_epoch=role.epoch,
            host=address.host if address else "",
            port=address.port if address else 0,
        )
    state.emit(SendReply(event.token, response))


def _judge_update(state: RaftState, request: UpdateRaftVoterRequest) -> ErrorCode:
    """The checks in Kafka's order; the leader's own id is refused, where Java ends (R-CQ-3)."""
    if answers.cluster_id_differs(state, request.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    error = leader_error(state, request.current_leader_epoch)
    if error != ErrorCode.NONE:
        return error
    key = ReplicaKey(request.voter_id, request.voter_directory_id)
    if key.id < 0 or not key.has_directory_id or key.id == state.config.key.id:
        return ErrorCode.INVALID_REQUEST
    names = [listener.name.upper() for listener in request.listeners]
    if state.config.listener not in names:
        return ErrorCode.INVALID_REQUEST
    feature = request.kraft_version_feature
    lowest, highest = feature.min_supported_version, feature.max_supported_version
    if lowest < 0 or highest < lowest or lowest > state.history.kraft_version:
        return ErrorCode.INVALID_REQUEST
    if state.high_watermark < 0:
        return ErrorCode.REQUEST_TIMED_OUT
    if state.voters.get(key.id) is None:
        return ErrorCode.VOTER_NOT_FOUND
    leader = state.leader
    if leader is not None:
        leader.progress.heard_from(key, state.now)
    return ErrorCode.NONE


def handle_add_voter(state: RaftState, event: RequestReceived) -> None:
    """Refuse to add a voter, for the reason that a Java leader would give (R-ADD-1)."""
    request = cast("AddRaftVoterRequest", event.message)
    names = [listener.name.upper() for listener in request.listeners]
    key = ReplicaKey(request.voter_id, request.voter_directory_id)
    error, text = _judge_change(state, request.cluster_id, key)
    if error == ErrorCode.UNSUPPORTED_VERSION and state.config.listener not in names:
        error = ErrorCode.INVALID_REQUEST
        text = f"the new voter has no address for listener {state.config.listener}"
    state.emit(
        SendReply(event.token, AddRaftVoterResponse(error_code=error, error_message=text))
    )


def handle_remove_voter(state: RaftState, event: RequestReceived) -> None:
    """Refuse to remove a voter, for the reason that a Java leader would give (R-REM-1)."""
    request = cast("RemoveRaftVoterRequest", event.message)
    key = ReplicaKey(request.voter_id, request.voter_directory_id)
    error, text = _judge_change(state, request.cluster_id, key)
    state.emit(
        SendReply(event.token, RemoveRaftVoterResponse(error_code=error, error_message=text))
    )


def _judge_change(
    state: RaftState, cluster_id: str | None, key: ReplicaKey
) -> tuple[ErrorCode, str]:
    if answers.cluster_id_differs(state, cluster_id):
        text = f"the cluster is {state.cluster_id}, not {cluster_id}"
        return ErrorCode.INCONSISTENT_CLUSTER_ID, text
    error = leader_error(state, state.role.epoch)
    if error != ErrorCode.NONE:
        return error, f"this node is {state.role.NAME}, not the leader"
    if key.id < 0 or not key.has_directory_id:
        return ErrorCode.INVALID_REQUEST, "a voter needs an id and a directory id"
    if state.high_watermark < 0:
        return ErrorCode.REQUEST_TIMED_OUT, "the leader has not committed anything yet"
    text = _DYNAMIC if state.history.kraft_version else _STATIC
    return ErrorCode.UNSUPPORTED_VERSION, text
