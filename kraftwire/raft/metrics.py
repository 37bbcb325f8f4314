"""The metrics of a Raft core under Kafka's names, group `raft-metrics`.

Source: Kafka's `KafkaRaftMetrics`; R-MET-1. The driver of the core, which has a clock, measures
rates and latencies.
"""

from __future__ import annotations

from kraftwire.raft.roles import Candidate, Leader, Resigned, Role
from kraftwire.raft.state import RaftState
from kraftwire.raft.voters import ReplicaKey

_NOBODY = ReplicaKey(-1)


def raft_metrics(state: RaftState) -> dict[str, float | int | str]:
    """Return the metrics that follow from the state, by name."""
    role = state.role
    vote = _vote(state, role)
    found: dict[str, float | int | str] = {
        "current-state": _state_name(state),
        "current-leader": role.leader_id,
        "current-vote": vote.id,
        "current-vote-directory-id": vote.directory_text,
        "current-epoch": role.epoch,
        "high-watermark": state.high_watermark,
        "log-end-offset": state.log.end_offset,
        "log-end-epoch": state.log.last_epoch,
        "number-of-voters": len(state.voters),
        "number-unknown-voter-connections": 0,
        "ignored-static-voters": int(state.history.has_own_voters and len(state.config.voters) > 0),
    }
    if type(role) is Leader:
        found["number-of-observers"] = len(role.progress.observers)
        found["uncommitted-voter-change"] = int(role.change is not None)
    return found


def _state_name(state: RaftState) -> str:
    """Return the value of current-state; a resigned leader and an idle observer are unattached."""
    role = state.role
    if type(role) is Resigned:
        return "unattached"
    if not state.is_voter and role.NAME == "follower":
        return "observer"
    if role.NAME in ("prospective", "unattached") and role.voted is not None:
        return f"{role.NAME}-voted"
    return role.NAME


def _vote(state: RaftState, role: Role) -> ReplicaKey:
    if isinstance(role, Leader | Candidate):
        return state.config.key
    return role.voted or _NOBODY
