"""When a leader gives up its epoch, to whom, and when a node may stop.

Source: notes R-CQ-1, R-END-2, R-RES-1, R-SHUT-1 to R-SHUT-3.
"""

from __future__ import annotations

from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft.effects import ShutdownFinished
from kraftwire.raft.roles import Leader
from kraftwire.raft.serving import fail_parked
from kraftwire.raft.state import RaftState
from kraftwire.raft.voters import ReplicaKey

__all__ = ["finish_shutdown", "reason_to_resign", "successors"]

def reason_to_resign(state: RaftState, leader: Leader) -> str:
    """Why a leader should lead no more; empty if it should go on."""
    if state.is_shutting_down:
        return "shutting down"
    if state.resign_asked:
        return state.resign_asked
    deadline = leader.progress.quorum_deadline_ms
    if deadline is not None and state.now >= deadline:
        return "no majority fetched within 1.5 fetch timeouts"
    if _hands_over(state, leader):
        return "hands over to a voter that can be the active controller"
    return ""


_JAVA = "apache-kafka-java"


def _hands_over(state: RaftState, leader: Leader) -> bool:
    """Whether a Java controller should lead: it brings an active controller, this core does not."""
    policy = state.config.handover
    if policy == "never" or state.high_watermark <= leader.epoch_start_offset:
        return False
    if policy == "auto" and _JAVA not in state.software.values():
        return False
    # Who lacks something committed cannot win, and could not fetch it from a leader that resigned.
    ready = [
        voter_id
        for voter_id, replica in leader.progress.voters.items()
        if voter_id != state.config.key.id and replica.end_offset >= state.high_watermark
    ]
    if policy == "always":
        return bool(ready)
    return any(state.software.get(voter_id) == _JAVA for voter_id in ready)


def successors(state: RaftState, leader: Leader) -> list[ReplicaKey]:
    """Who should lead next: Java voters first, each group by log end offset (R-END-2)."""
    order = leader.progress.preferred_successors()
    if state.config.handover == "auto":
        order.sort(key=lambda key: state.software.get(key.id) != _JAVA)
    return order


def finish_shutdown(state: RaftState) -> bool:
    """Stop once the quorum can do without this node, or time is up (R-SHUT-2)."""
    deadline = state.shutdown_deadline_ms
    if deadline is None:
        return False
    role = state.role
    own = state.config.key.id
    graceful = not state.is_voter or len(state.voters) == 1 or role.leader_id not in (-1, own)
    if type(role) is Leader or not (graceful or state.now >= deadline):
        return False
    fail_parked(state, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    state.is_stopped = True
    state.emit(ShutdownFinished(graceful))
    return True
