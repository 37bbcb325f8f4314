"""The requests that may advance this node's epoch, and how far.

In Kafka any Vote, BeginQuorumEpoch or EndQuorumEpoch of a later epoch advances it, from any
sender: a single request with the highest possible epoch ends all elections forever. Here a voter's
requests advance it within a rate limit, and another replica's only if it may have become a voter
without this node's knowledge. Responses to this node's requests advance it without limit, so no
honest voter is shut out.

Source: KIP-853 (voters that are not in this log yet), KIP-996 (nodes that hear from a leader).
"""

from __future__ import annotations

from kraftwire.raft.epoch_rate_limit import EPOCH_JUMP_OF_OTHERS_MAX
from kraftwire.raft.roles import Follower, Leader
from kraftwire.raft.state import RaftState
from kraftwire.raft.voters import ReplicaKey

# The last leader epoch that its field on the wire and on disk can hold. No honest cluster gets
# there; after it no node can be elected, but no node ends either.
EPOCH_MAX = (1 << 31) - 1


def hears_no_leader(state: RaftState) -> bool:
    """Return whether this node would support an election: it neither leads nor reaches a leader.

    KIP-996: a follower that reaches its leader must not help to depose it. One that waits longer
    than the fetch timeout, so that others can stand first, does not reach it.
    """
    role = state.role
    if type(role) is Follower:
        timeout = state.config.timers.fetch_timeout_ms
        silence = state.now - (role.fetch_deadline_ms - role.fetch_timeout_ms)
        return not role.has_fetched or silence >= timeout - timeout // 10
    return type(role) is not Leader


def may_move_epoch(state: RaftState, sender: ReplicaKey, epoch: int, *, is_ahead: bool) -> bool:
    """Return whether a request from this sender may advance the epoch.

    `is_ahead` is True if the sender's log, as claimed, may hold voters that this log lacks.
    Refusals are noted.
    """
    jump = epoch - state.role.epoch
    if jump <= 0:
        return True
    voter = state.voters.get(sender.id)
    # BeginQuorumEpoch and the first versions of Vote lack the sender's directory id.
    if voter is not None and (voter.matches(sender) or not sender.has_directory_id):
        problem = "" if state.epoch_rate_limit.take(jump, state.now) else "that is too far"
    else:
        problem = _problem_of_other(state, jump, is_ahead)
    if problem:
        text = f"replica {sender.id} would move the epoch from {state.role.epoch} to {epoch}"
        state.note(f"{text}, but {problem}: refused", "warning", key="epoch-refused")
    return not problem


def _problem_of_other(state: RaftState, jump: int, is_ahead: bool) -> str:
    """Return why a replica outside the voter set may not advance the epoch; empty if it may."""
    limit = state.epoch_rate_limit
    if not is_ahead:
        return "it is not a voter, and its log is not ahead of this one"
    if not hears_no_leader(state):
        return "it is not a voter, and this node hears from a leader"
    if jump > EPOCH_JUMP_OF_OTHERS_MAX:
        return "it is not a voter, and that is too far"
    if state.now < limit.others_due_ms:
        return "it is not a voter, and another replica has just done so"
    if not limit.take(jump, state.now):
        return "that is too far"
    limit.others_due_ms = state.now + state.config.timers.election_timeout_ms
    return ""
