"""Resignation: its reasons, the preferred successors, and when a node may stop.

A leader hands over to a voter of another implementation, because that one has a full active
controller. Any node may claim to be one, and a node votes before its listener is open: so the
voter's own endpoint must first answer an ApiVersions request, with features that differ from this
node's.

Source: R-CQ-1, R-END-2, R-REM-5, R-RES-1, R-RES-2, R-SHUT-1 to R-SHUT-3.
"""

from __future__ import annotations

from kraftwire.messages.api_versions_response import ApiVersionsResponse
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft.changes import probe_request
from kraftwire.raft.config import Handover
from kraftwire.raft.effects import ShutdownFinished
from kraftwire.raft.roles import Follower, Leader, Resigned, Role
from kraftwire.raft.serving import fail_parked
from kraftwire.raft.state import Purpose, RaftState, SentRequest
from kraftwire.raft.voters import ReplicaKey

# A voter that does not answer is probed again after this time: it may be starting.
_PROBE_INTERVAL_MS = 250

# A voter that is just restarting does not answer the first request.
_ATTEMPTS = 5


def reason_to_resign(state: RaftState, leader: Leader) -> str:
    """Return why a leader should resign; empty if it should not."""
    if state.shutdown_deadline_ms is not None:
        return "shutting down"
    if state.forbidden_reason or state.resign_reason:
        return state.forbidden_reason or state.resign_reason
    deadline = leader.progress.quorum_deadline_ms
    if deadline is not None and state.now >= deadline:
        return "no majority fetched within 1.5 fetch timeouts"
    if leader.successor is not None:
        return f"hands over to {leader.successor.id}, which can be the active controller"
    return ""


def _ready_voters(state: RaftState, leader: Leader) -> list[ReplicaKey]:
    """Return the voters that could win: one that lacks committed records could no longer fetch
    them."""
    return [
        replica.key
        for replica in leader.progress.voters.values()
        if replica is not leader.progress.own and replica.end_offset >= state.high_watermark
    ]


def poll_handover(state: RaftState, leader: Leader) -> bool:
    """Find a voter that should lead instead, once the epoch is established.

    Returns whether one was found at once; one that must be probed first answers later.
    """
    policy = state.config.handover
    if leader.successor is not None:
        return False
    if policy is not Handover.ALWAYS and not (state.knows_foreign_voters or state.unverified):
        return False
    if state.high_watermark <= leader.epoch_start_offset or state.now < leader.probe_due_ms:
        return False
    ready = _ready_voters(state, leader)
    if policy is Handover.ALWAYS:
        leader.successor = next(iter(ready), None)
        return leader.successor is not None
    probed = {
        sent.destination.key
        for sent in state.in_flight.values()
        if sent.purpose is Purpose.PROBE_SUCCESSOR
    }
    is_giving = policy is Handover.AUTO
    candidates = [
        key
        for key in ready
        if key not in probed and (key in state.unverified or (is_giving and state.is_foreign(key)))
    ]
    if candidates:
        # One at a time, in rotation: a silent one must not keep others from being probed.
        destination = state.voter_destination(candidates[leader.probe_count % len(candidates)])
        leader.probe_count += 1
        leader.probe_due_ms = state.now + _PROBE_INTERVAL_MS
        if destination is not None:
            state.send(destination, probe_request(), Purpose.PROBE_SUCCESSOR)
    return False


def probe_software(state: RaftState, role: Follower) -> None:
    """Ask each voter once whether it is another implementation, which may stand for election
    first."""
    if role.has_probed_software:
        return
    role.has_probed_software = True
    if state.config.handover is not Handover.AUTO or not state.is_voter:
        return
    for voter in state.voters:
        destination = state.voter_destination(voter.key)
        is_unknown = state.is_foreign(voter.key) is None and voter.key.id != state.config.key.id
        if destination is not None and is_unknown:
            state.send(destination, probe_request(), Purpose.PROBE_SUCCESSOR)


def handle_successor_probe(
    state: RaftState, sent: SentRequest, response: ApiVersionsResponse
) -> None:
    """Hand over to a voter that answers and is indeed another implementation."""
    leader, key = state.leader, sent.destination.key
    if response.error_code != ErrorCode.NONE:
        return
    is_foreign = not state.config.features <= features_of(response)
    state.record_software(key, is_foreign)
    role = state.role
    if type(role) is Follower and is_foreign:
        longer = state.draw_fetch_timeout_ms() - role.fetch_timeout_ms
        role.fetch_timeout_ms += longer
        role.fetch_deadline_ms += longer
    # One that lags by now is probed again once it has caught up.
    is_giving = is_foreign and state.config.handover is Handover.AUTO
    if leader is not None and is_giving and key in _ready_voters(state, leader):
        leader.successor = key


def features_of(response: ApiVersionsResponse) -> frozenset[str]:
    """Return the features of a node in the form of `RaftConfig.features`."""
    return frozenset(
        f"{one.name} {one.min_version}-{one.max_version}" for one in response.supported_features
    )


def successors(state: RaftState, leader: Leader) -> list[ReplicaKey]:
    """Return the preferred successors: the chosen one, voters of other implementations, then the
    rest, each group by log end offset (R-END-2)."""
    order = leader.progress.preferred_successors()
    if state.config.handover is Handover.AUTO:
        order.sort(key=lambda key: (key != leader.successor, not state.is_foreign(key)))
    return order


def finish_shutdown(state: RaftState) -> bool:
    """Stop once the quorum no longer needs this node, or the time is up (R-SHUT-2).

    Differs from Kafka, where a voter without a leader waits for the whole timeout. A resigned
    leader stays, because the others may need its vote, unless none of them can be reached.
    """
    deadline = state.shutdown_deadline_ms
    if deadline is None:
        return False
    role = state.role
    graceful = not state.is_voter or len(state.voters) == 1 or type(role) is not Resigned
    is_over = graceful or state.now >= deadline or _is_left_alone(state, role)
    if type(role) is Leader or not is_over:
        return False
    fail_parked(state, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    state.is_stopped = True
    state.emit(ShutdownFinished(graceful))
    return True


def _is_left_alone(state: RaftState, role: Role) -> bool:
    """Return whether several attempts to reach each other voter have failed since the
    resignation."""
    if type(role) is not Resigned:
        return False
    others = [voter.key for voter in state.voters if voter.key.id != state.config.key.id]
    return all(
        key in role.unacknowledged and state.peers.failures(key) >= _ATTEMPTS for key in others
    )
