"""Voter changes, one at a time: AddRaftVoter, RemoveRaftVoter, and the leader's pending change.

A change is an object of the leader's role from the request to the commit of its record: a new voter
must be caught up and is probed, the record is appended and counts at once, and its commit answers
the request. The end of the leadership ends the change.

Differs from Kafka, where a new voter that does not answer holds up every other change: several are
probed at a time, and only a record that is not committed yet excludes others.

Source: KIP-853; Kafka's `AddVoterHandler` and `RemoveVoterHandler`; R-VC-1 to R-VC-3, R-ADD-1 to
R-ADD-9, R-REM-1 to R-REM-3, R-REM-5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from kraftwire.messages.add_raft_voter_request import AddRaftVoterRequest
from kraftwire.messages.add_raft_voter_response import AddRaftVoterResponse
from kraftwire.messages.api_versions_request import ApiVersionsRequest
from kraftwire.messages.api_versions_response import ApiVersionsResponse
from kraftwire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraftwire.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kraftwire.protocol.endpoint import Endpoint
from kraftwire.protocol.error_codes import ErrorCode, error_name
from kraftwire.protocol.session import SOFTWARE_NAME
from kraftwire.raft.answers import cluster_id_differs, leader_error
from kraftwire.raft.config import KRAFT_VERSION_MAX
from kraftwire.raft.effects import Destination, SendReply
from kraftwire.raft.events import RequestReceived
from kraftwire.raft.histories import voters_record
from kraftwire.raft.roles import ChangeKind, Leader, PendingChange
from kraftwire.raft.state import Purpose, RaftState, SentRequest
from kraftwire.raft.voters import ReplicaKey, Voter, VoterSet
from kraftwire.records.control import ControlType

KRAFT_VERSION = "kraft.version"

# New voters that are probed at a time. When there are more, the one that was asked first gives way,
# unless it has had less than this time to answer: honest ones take a few milliseconds.
CANDIDATES_MAX = 64
CANDIDATE_MS_MIN = 100

Refused = tuple[ErrorCode, str]
_ACCEPTED: Refused = (ErrorCode.NONE, "")


# ---- requests ------------------------------------------------------------------------------------


def handle_add_voter(state: RaftState, event: RequestReceived) -> None:
    """Add a voter, or refuse with a reason."""
    request = cast("AddRaftVoterRequest", event.message)
    key = ReplicaKey(request.voter_id, request.voter_directory_id)
    voter = Voter(key, endpoints_named(request.listeners))
    error, text = _check_add(state, request, voter)
    leader, address = state.leader, voter.endpoint(state.config.listener)
    if error != ErrorCode.NONE or leader is None or address is None:
        _reply(state, event.token, ChangeKind.ADD, error, text)
        return
    candidate = PendingChange(
        ChangeKind.ADD,
        voter,
        state.now + state.config.timers.request_timeout_ms,
        event.token,
        waits_for_commit=request.ack_when_committed,
        probed_ms=state.now,
    )
    destination = Destination(key.id, address.host, address.port, key.directory_id)
    _make_room(state, leader)
    leader.candidates[destination] = candidate
    state.send(destination, probe_request(), Purpose.PROBE_NEW_VOTER)


def _make_room(state: RaftState, leader: Leader) -> None:
    """Forget the new voter that was probed first if too many are probed."""
    if len(leader.candidates) >= CANDIDATES_MAX:
        oldest = next(iter(leader.candidates))
        text = f"voter {oldest.id} did not answer, and others wait"
        _answer_change(state, leader.candidates.pop(oldest), ErrorCode.REQUEST_TIMED_OUT, text)


def _check_add(state: RaftState, request: AddRaftVoterRequest, voter: Voter) -> Refused:
    """The checks in Kafka's order (R-ADD-1)."""
    refused = _check_request(state, request.cluster_id, voter.key)
    if refused is not None:
        return refused
    address = voter.endpoint(state.config.listener)
    if address is None or not address.is_usable:
        text = f"the new voter has no usable address for listener {state.config.listener}"
        return ErrorCode.INVALID_REQUEST, text
    refused = change_refusal(state)
    if refused is not None:
        return refused
    refused = _check_absent(state, voter.key)
    if refused is not None:
        return refused
    return _check_candidate(state, voter.key, address) or _ACCEPTED


def _check_candidate(state: RaftState, key: ReplicaKey, address: Endpoint) -> Refused | None:
    """Return why a new voter is not probed now, None if it is.

    Whoever does not follow this leader is not even asked: anybody can name any address.
    """
    leader = state.leader
    assert leader is not None
    within = state.config.timers.caught_up_within_ms
    if not leader.progress.is_caught_up(key, state.now, within):
        text = f"voter {key.id} has not fetched the whole log of the leader yet"
        return ErrorCode.REQUEST_TIMED_OUT, text
    if Destination(key.id, address.host, address.port, key.directory_id) in leader.candidates:
        text = f"the connection to {key.id} is busy, or has just failed"
        return ErrorCode.REQUEST_TIMED_OUT, text
    oldest = next(iter(leader.candidates.values()), None)
    is_full = len(leader.candidates) >= CANDIDATES_MAX
    if is_full and oldest is not None and state.now - oldest.probed_ms < CANDIDATE_MS_MIN:
        return ErrorCode.REQUEST_TIMED_OUT, "too many new voters are being asked"
    return None


def _check_absent(state: RaftState, key: ReplicaKey) -> Refused | None:
    present = state.voters.get(key.id)
    if present is None:
        return None
    text = f"voter {key.id} is already in the set, with directory id {present.key.directory_text}"
    return ErrorCode.DUPLICATE_VOTER, text


def handle_remove_voter(state: RaftState, event: RequestReceived) -> None:
    """Remove a voter, possibly this leader, or refuse with a reason (R-REM-1 to R-REM-3)."""
    request = cast("RemoveRaftVoterRequest", event.message)
    key = ReplicaKey(request.voter_id, request.voter_directory_id)
    error, text = _check_remove(state, request.cluster_id, key)
    leader, voter = state.leader, state.voters.get(key.id)
    if error != ErrorCode.NONE or leader is None or voter is None:
        _reply(state, event.token, ChangeKind.REMOVE, error, text)
        return
    change = PendingChange(
        ChangeKind.REMOVE, voter, state.now + state.config.timers.request_timeout_ms, event.token
    )
    append_voters(state, leader, change, state.voters.without(key.id))


def _check_remove(state: RaftState, cluster_id: str | None, key: ReplicaKey) -> Refused:
    refused = _check_request(state, cluster_id, key) or change_refusal(state)
    if refused is not None:
        return refused
    voter = state.voters.get(key.id)
    if voter is None or voter.key != key:
        text = f"no voter {key.id} with directory id {key.directory_text} is in the set"
        return ErrorCode.VOTER_NOT_FOUND, text
    if len(state.voters) == 1:
        return ErrorCode.VOTER_NOT_FOUND, "the only voter cannot be removed"
    return _ACCEPTED


def _check_request(state: RaftState, cluster_id: str | None, key: ReplicaKey) -> Refused | None:
    if cluster_id_differs(state, cluster_id):
        text = f"the cluster is {state.cluster_id}, not {cluster_id}"
        return ErrorCode.INCONSISTENT_CLUSTER_ID, text
    error = leader_error(state, state.role.epoch)
    if error != ErrorCode.NONE:
        return error, f"this node is {state.role.NAME}, not the leader"
    if key.id < 0 or not key.has_directory_id:
        return ErrorCode.INVALID_REQUEST, "a voter needs an id and a directory id"
    return None


def change_refusal(state: RaftState) -> Refused | None:
    """Return why the voter set may not change now, in the order of Kafka's checks; None if it
    may."""
    leader, history = state.leader, state.history
    if leader is not None and leader.change is not None:
        kind, key = leader.change.kind.value, leader.change.voter.key
        return ErrorCode.REQUEST_TIMED_OUT, f"another change is pending: {kind} voter {key.id}"
    if state.high_watermark < 0:
        return ErrorCode.REQUEST_TIMED_OUT, "the leader has not committed anything yet"
    if history.kraft_version == 0:
        text = (
            "voters can change from kraft.version 1 on; it is 0, with the voters configured: "
            "upgrade the feature kraft.version to 1 first"
        )
        return ErrorCode.UNSUPPORTED_VERSION, text
    where = history.last_voters_offset
    if where is None or where >= state.high_watermark:
        return ErrorCode.REQUEST_TIMED_OUT, "the last change of voters is not committed yet"
    return None


def endpoints_named(listeners: Sequence[Any]) -> tuple[Endpoint, ...]:
    """Return the listeners of a request, with names in upper case."""
    return tuple(Endpoint(at.name.upper(), at.host, at.port) for at in listeners)


# ---- the probe -----------------------------------------------------------------------------------


def probe_request() -> ApiVersionsRequest:
    """Build the ApiVersions request that checks that a node answers, and what it supports."""
    return ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version="1")


def _probed(state: RaftState, sent: SentRequest) -> tuple[Leader, PendingChange] | None:
    """Return the new voter that was asked, if it still waits for the answer."""
    leader = state.leader
    candidate = None if leader is None else leader.candidates.get(sent.destination)
    if leader is None or candidate is None or candidate.probed_ms != sent.at_ms:
        return None
    return leader, candidate


def handle_probe(state: RaftState, sent: SentRequest, response: ApiVersionsResponse) -> None:
    """Add the new voter, or refuse with what it lacks (R-ADD-3 to R-ADD-7)."""
    if response.error_code != ErrorCode.NONE:
        probe_failed(state, sent, response.error_code)
        return
    found = _probed(state, sent)
    if found is None:
        return
    leader, change = found
    del leader.candidates[sent.destination]
    key = change.voter.key
    feature = next((one for one in response.supported_features if one.name == KRAFT_VERSION), None)
    lowest, highest = (feature.min_version, feature.max_version) if feature else (0, 0)
    voter = Voter(key, change.voter.endpoints, lowest, highest)
    version = state.history.kraft_version
    if feature is None or not voter.supports(version):
        text = f"voter {key.id} supports kraft.version {lowest} to {highest}, not {version}"
        _answer_change(state, change, ErrorCode.INVALID_REQUEST, text)
        return
    # Meanwhile another may have been faster.
    refused = change_refusal(state) or _check_absent(state, key)
    if refused is not None:
        _answer_change(state, change, *refused)
        return
    change.voter = voter
    append_voters(state, leader, change, state.voters.with_voter(voter))
    if not change.waits_for_commit:
        _answer_change(state, change, ErrorCode.NONE, "")


def probe_failed(state: RaftState, sent: SentRequest, error: int) -> None:
    """Refuse a new voter that cannot be reached; it is not asked again before the back-off ends."""
    found = _probed(state, sent)
    if found is not None:
        _, change = found
        change.deadline_ms = state.now + state.config.timers.retry_backoff_ms
        text = f"voter {change.voter.key.id} does not answer ApiVersions: {error_name(error)}"
        _answer_change(state, change, ErrorCode.REQUEST_TIMED_OUT, text)


# ---- the change ----------------------------------------------------------------------------------


def append_voters(
    state: RaftState, leader: Leader, change: PendingChange, voters: VoterSet
) -> None:
    """Append the record of a change in a separate batch; it counts as soon as it is written."""
    record = (ControlType.KRAFT_VOTERS, voters_record(voters))
    change.offset, _ = leader.accumulator.append_control([record], state.now, state.timestamp())
    leader.change = change


def settle_change(state: RaftState, leader: Leader) -> None:
    """Answer the request whose record is committed, and resign if this leader was removed.

    Order: after the high watermark has advanced (R-ADD-9, R-REM-5).
    """
    change, mark = leader.change, state.high_watermark
    if change is not None and 0 <= change.offset < mark:
        _end_change(state, leader, ErrorCode.NONE, "")
    where = state.history.last_voters_offset
    if not state.is_voter and where is not None and where < mark:
        state.resign_reason = "this node is no longer a voter"


def expire_change(state: RaftState, leader: Leader) -> None:
    """Fail a change that takes too long; its record, if any, may still be committed."""
    for place, candidate in list(leader.candidates.items()):
        if state.now >= candidate.deadline_ms:
            text = f"voter {place.id} did not answer in time"
            _answer_change(state, leader.candidates.pop(place), ErrorCode.REQUEST_TIMED_OUT, text)
    change = leader.change
    if change is not None and state.now >= change.deadline_ms:
        text = f"the change of voter {change.voter.key.id} took too long"
        if change.offset >= 0:
            text += "; it is in the log, so it may still be committed"
        _end_change(state, leader, ErrorCode.REQUEST_TIMED_OUT, text)


def fail_change(state: RaftState, leader: Leader) -> None:
    """Fail the pending change: this leadership is over (R-VC-3)."""
    text = "the leadership ended before the change was committed"
    for candidate in leader.candidates.values():
        _answer_change(state, candidate, ErrorCode.NOT_LEADER_OR_FOLLOWER, text)
    leader.candidates.clear()
    _end_change(state, leader, ErrorCode.NOT_LEADER_OR_FOLLOWER, text)


def _end_change(state: RaftState, leader: Leader, error: ErrorCode, text: str) -> None:
    change, leader.change = leader.change, None
    if change is not None:
        _answer_change(state, change, error, text)


def _answer_change(state: RaftState, change: PendingChange, error: ErrorCode, text: str) -> None:
    token, change.token = change.token, None
    if token is not None:
        _reply(state, token, change.kind, error, text)


def _reply(state: RaftState, token: int, kind: ChangeKind, error: ErrorCode, text: str) -> None:
    answer = AddRaftVoterResponse if kind is ChangeKind.ADD else RemoveRaftVoterResponse
    state.emit(SendReply(token, answer(error_code=error, error_message=text or None)))


def reported_voters(state: RaftState) -> dict[int, Voter]:
    """Return the voters of a static set that a new leader knows: itself (R-LEAD-3)."""
    config = state.config
    if state.history.kraft_version > 0 or not state.is_voter:
        return {}
    return {config.key.id: Voter(config.key, config.endpoints, 0, KRAFT_VERSION_MAX)}
