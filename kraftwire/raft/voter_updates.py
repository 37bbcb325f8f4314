"""UpdateRaftVoter, sent and received, and auto-join: how a node reports itself to its leader.

With kraft.version 0 a leader keeps what voters report, for the upgrade to version 1; from then on
an update is a change of the voter set like any other.

Source: KIP-853; Kafka's `UpdateVoterHandler`; R-UPD-1 to R-UPD-6, R-JOIN-1 to R-JOIN-3, R-CQ-3.
"""

from __future__ import annotations

from typing import cast

from kraftwire.messages.add_raft_voter_request import AddRaftVoterRequest
from kraftwire.messages.add_raft_voter_request import Listener as AddListener
from kraftwire.messages.add_raft_voter_response import AddRaftVoterResponse
from kraftwire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraftwire.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kraftwire.messages.update_raft_voter_request import (
    KRaftVersionFeature,
    Listener,
    UpdateRaftVoterRequest,
)
from kraftwire.messages.update_raft_voter_response import CurrentLeader, UpdateRaftVoterResponse
from kraftwire.protocol.endpoint import Endpoint
from kraftwire.protocol.error_codes import ErrorCode, error_name
from kraftwire.raft import answers
from kraftwire.raft.changes import append_voters, change_refusal, endpoints_named
from kraftwire.raft.config import KRAFT_VERSION_MAX
from kraftwire.raft.effects import Destination, SendReply
from kraftwire.raft.events import RequestReceived
from kraftwire.raft.responses import ResponseOutcome, settle
from kraftwire.raft.roles import ChangeKind, Follower, Leader, PendingChange
from kraftwire.raft.state import Purpose, RaftState, SentRequest
from kraftwire.raft.voters import ReplicaKey, Voter
from kraftwire.wire.message import Message


def own_voter(state: RaftState) -> Voter:
    """Return this node as an entry of a voter set."""
    config = state.config
    return Voter(config.key, config.endpoints, 0, KRAFT_VERSION_MAX)


# ---- asking --------------------------------------------------------------------------------------


def poll_update(state: RaftState, role: Follower, leader: Destination) -> bool:
    """Send UpdateRaftVoter, or ask to become a voter, when it is due.

    A removed replica does not ask: that would undo the removal at once (KAFKA-19850). Returns:
    whether a request was sent; the next fetch then waits for its answer.
    """
    if state.now < role.update_due_ms or not state.config.can_be_voter:
        return False
    role.update_due_ms = state.now + state.config.timers.fetch_timeout_ms
    if state.is_voter:
        if _is_known(state, role):
            return False
        state.send(leader, _update_request(state), Purpose.UPDATE)
        return True
    if not state.config.auto_join or state.history.kraft_version == 0 or state.is_removed:
        return False
    state.send(leader, _join_request(state), Purpose.JOIN)
    return True


def _is_known(state: RaftState, role: Follower) -> bool:
    """Return whether the leader knows this voter's listeners and versions (R-UPD-1)."""
    if state.history.kraft_version == 0:
        return role.has_updated
    entry, own = state.own_entry, own_voter(state)
    return entry is not None and (
        set(entry.endpoints) == set(own.endpoints)
        and entry.kraft_version_min == own.kraft_version_min
        and entry.kraft_version_max == own.kraft_version_max
    )


def _update_request(state: RaftState) -> UpdateRaftVoterRequest:
    config = state.config
    return UpdateRaftVoterRequest(
        cluster_id=state.cluster_id,
        current_leader_epoch=state.role.epoch,
        voter_id=config.key.id,
        voter_directory_id=config.key.directory_id,
        listeners=[
            Listener(name=at.listener, host=at.host, port=at.port) for at in config.endpoints
        ],
        kraft_version_feature=KRaftVersionFeature(
            min_supported_version=0, max_supported_version=KRAFT_VERSION_MAX
        ),
    )


def _join_request(state: RaftState) -> Message:
    """Ask to remove this node's old directory first, then to add this one (R-JOIN-1)."""
    config = state.config
    old = state.voters.get(config.key.id)
    if old is not None:
        return RemoveRaftVoterRequest(
            cluster_id=state.cluster_id,
            voter_id=old.key.id,
            voter_directory_id=old.key.directory_id,
        )
    return AddRaftVoterRequest(
        cluster_id=state.cluster_id,
        timeout_ms=config.timers.request_timeout_ms,
        voter_id=config.key.id,
        voter_directory_id=config.key.directory_id,
        listeners=[
            AddListener(name=at.listener, host=at.host, port=at.port) for at in config.endpoints
        ],
        ack_when_committed=False,
    )


def handle_update_response(
    state: RaftState, sent: SentRequest, response: UpdateRaftVoterResponse
) -> None:
    """Record that the leader knows this voter, or learn the leader (R-UPD-5)."""
    leader, role = response.current_leader, state.role
    if leader is None or leader.leader_epoch < 0:
        return
    endpoint = Endpoint(state.config.listener, leader.host, leader.port)
    endpoints = (endpoint,) if endpoint.is_usable else ()
    answer = (response.error_code, leader.leader_id, leader.leader_epoch)
    if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
        answer = (ErrorCode.NONE, leader.leader_id, leader.leader_epoch)
    if settle(state, sent, answer, endpoints) is ResponseOutcome.OWN and type(role) is Follower:
        role.has_updated = True
        if role.snapshot_since_ms < 0:  # otherwise its parts decide
            role.fetch_deadline_ms = state.now + role.fetch_timeout_ms


# Errors that are not this node's fault: it asks again next time (R-JOIN-2).
_JOIN_LATER = (
    ErrorCode.NONE,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.DUPLICATE_VOTER,
    ErrorCode.VOTER_NOT_FOUND,
)


def handle_join_response(
    state: RaftState, sent: SentRequest, response: AddRaftVoterResponse | RemoveRaftVoterResponse
) -> None:
    """Continue fetching; the log shows whether this node became a voter."""
    error = response.error_code
    if error in _JOIN_LATER:
        return
    text = f"{sent.destination.name} does not let this node join: {error_name(error)}"
    state.note(text, "warning", key="join")
    state.failed(sent)


# ---- answering -----------------------------------------------------------------------------------


def handle_update_voter(state: RaftState, event: RequestReceived) -> None:
    """Apply what a voter reports of itself (R-UPD-3, R-UPD-4)."""
    request = cast("UpdateRaftVoterRequest", event.message)
    error = _check_update(state, request)
    leader, role = state.leader, state.role
    if error == ErrorCode.NONE and leader is not None:
        _apply_update(state, leader, _voter(request))
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


def _voter(request: UpdateRaftVoterRequest) -> Voter:
    feature = request.kraft_version_feature
    return Voter(
        ReplicaKey(request.voter_id, request.voter_directory_id),
        endpoints_named(request.listeners),
        feature.min_supported_version,
        feature.max_supported_version,
    )


def _check_update(state: RaftState, request: UpdateRaftVoterRequest) -> ErrorCode:
    """The checks in Kafka's order; the leader's own id is refused, where Java ends (R-CQ-3)."""
    if answers.cluster_id_differs(state, request.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    error = answers.leader_error(state, request.current_leader_epoch)
    if error != ErrorCode.NONE:
        return error
    voter = _voter(request)
    key, own = voter.key, state.config.key
    if key.id < 0 or key.id == own.id or not key.has_directory_id:
        return ErrorCode.INVALID_REQUEST
    address = voter.endpoint(state.config.listener)
    if address is None or not address.is_usable:
        return ErrorCode.INVALID_REQUEST
    if not 0 <= voter.kraft_version_min <= voter.kraft_version_max:
        return ErrorCode.INVALID_REQUEST
    version = state.history.kraft_version
    refused = change_refusal(state)
    if refused is not None and not (version == 0 and refused[0] == ErrorCode.UNSUPPORTED_VERSION):
        return refused[0]
    if not voter.supports(version):
        return ErrorCode.INVALID_REQUEST
    entry = state.voters.get(voter.key.id)
    if entry is None or not entry.matches(voter.key):
        return ErrorCode.VOTER_NOT_FOUND
    return _check_rate(state, voter, entry)


def _check_rate(state: RaftState, voter: Voter, entry: Voter) -> ErrorCode:
    """Refuse updates that follow each other faster than a voter sends them: anybody can send them
    in its name."""
    leader = state.leader
    if state.history.kraft_version == 0 or leader is None or voter == entry:
        return ErrorCode.NONE
    last = leader.updated_ms.get(voter.key.id)
    is_early = last is not None and state.now - last < state.config.timers.fetch_timeout_ms
    return ErrorCode.REQUEST_TIMED_OUT if is_early else ErrorCode.NONE


def _apply_update(state: RaftState, leader: Leader, voter: Voter) -> None:
    leader.progress.record_activity(voter.key, state.now)
    if state.history.kraft_version == 0:
        leader.reported[voter.key.id] = voter
        return
    if voter == state.voters.get(voter.key.id):
        return
    leader.updated_ms[voter.key.id] = state.now
    due = state.now + state.config.timers.request_timeout_ms
    change = PendingChange(ChangeKind.UPDATE, voter, due, None)
    append_voters(state, leader, change, state.voters.with_voter(voter))
