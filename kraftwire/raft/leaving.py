"""When a leader gives up its epoch, to whom, and when a node may stop.

A leader hands over to a voter of another implementation, because that brings an active controller.
Anybody may claim to be one, and a node votes before its listener is open: so the voter's own
endpoint has to answer an ApiVersions request first, and to name other features than this node's.

Source: R-CQ-1, R-END-2, R-REM-5, R-RES-1, R-SHUT-1 to R-SHUT-3.
"""

from __future__ import annotations

from kraftwire.messages.api_versions_response import ApiVersionsResponse
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft.changes import probe_request
from kraftwire.raft.config import Handover
from kraftwire.raft.effects import ShutdownFinished
from kraftwire.raft.roles import Leader, Resigned
from kraftwire.raft.serving import fail_parked
from kraftwire.raft.state import Purpose, RaftState, Sent
from kraftwire.raft.voters import ReplicaKey

__all__ = [
    "finish_shutdown",
    "handle_successor_probe",
    "poll_handover",
    "reason_to_resign",
    "successors",
]

# A voter that does not answer is asked again after so long: it may be starting.
_PROBE_INTERVAL_MS = 250


def reason_to_resign(state: RaftState, leader: Leader) -> str:
    """Why a leader should lead no longer; empty if it should stay."""
    if state.is_shutting_down:
        return "shutting down"
    if state.resign_asked:
        return state.resign_asked
    deadline = leader.progress.quorum_deadline_ms
    if deadline is not None and state.now >= deadline:
        return "no majority fetched within 1.5 fetch timeouts"
    if leader.successor is not None and leader.successor in _ready_voters(state, leader):
        return f"hands over to {leader.successor.id}, which can be the active controller"
    return ""


def _ready_voters(state: RaftState, leader: Leader) -> list[ReplicaKey]:
    """The voters that could win: who lacks something committed could not fetch it any more."""
    return [
        replica.key
        for replica in leader.progress.voters.values()
        if replica is not leader.progress.own and replica.end_offset >= state.high_watermark
    ]


def poll_handover(state: RaftState, leader: Leader) -> None:
    """Look for a voter that should lead instead, once the epoch is established."""
    policy = state.config.handover
    if policy is Handover.NEVER or leader.successor is not None:
        return
    if state.high_watermark <= leader.epoch_start_offset or state.now < leader.probe_due_ms:
        return
    for key in _ready_voters(state, leader):
        if policy is Handover.ALWAYS:
            leader.successor = key
            return
        destination = state.voter_destination(key)
        if state.is_foreign(key) and destination is not None and state.is_ready(destination):
            leader.probe_due_ms = state.now + _PROBE_INTERVAL_MS
            state.send(destination, probe_request(), Purpose.PROBE_SUCCESSOR)
            return


def handle_successor_probe(
    state: RaftState, sent: Sent, response: ApiVersionsResponse
) -> None:
    """Hand over to a voter that answers and is what it claims to be."""
    leader, key = state.leader, sent.destination.key
    if leader is None or response.error_code != ErrorCode.NONE:
        return
    names = {feature.name for feature in response.supported_features}
    if names == state.config.features:
        # It is like this node, whatever somebody said under its name.
        state.hear_of_software(key, is_foreign=False)
    elif any(voter.key == key for voter in state.voters):
        leader.successor = key


def successors(state: RaftState, leader: Leader) -> list[ReplicaKey]:
    """Who should lead next: the chosen successor, voters of other implementations, then the rest,
    each group by log end offset (R-END-2)."""
    order = leader.progress.preferred_successors()
    if state.config.handover is Handover.AUTO:
        order.sort(key=lambda key: (key != leader.successor, not state.is_foreign(key)))
    return order


def finish_shutdown(state: RaftState) -> bool:
    """Stop once the quorum can do without this node, or time is up (R-SHUT-2).

    Differs from Kafka, where a voter that knows no leader waits for its time to be over. One that
    has resigned stays, because the others may need its vote.
    """
    deadline = state.shutdown_deadline_ms
    if deadline is None:
        return False
    role = state.role
    graceful = not state.is_voter or len(state.voters) == 1 or type(role) is not Resigned
    if type(role) is Leader or not (graceful or state.now >= deadline):
        return False
    fail_parked(state, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    state.is_stopped = True
    state.emit(ShutdownFinished(graceful))
    return True
