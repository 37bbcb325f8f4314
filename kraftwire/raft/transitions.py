"""Changes of role: a table of those allowed, and what each makes durable first.

Source: R-ROLE-1 to R-ROLE-9; Kafka's `QuorumState`. Every other change of role is a programming
error and stops the core (R-ROLE-6).
"""

from __future__ import annotations

from dataclasses import dataclass

from kraftwire.errors import check
from kraftwire.protocol.endpoint import Endpoint
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft.accumulator import Accumulator
from kraftwire.raft.changes import fail_change, reported_voters
from kraftwire.raft.effects import ResetConnections, RoleChanged
from kraftwire.raft.progress import LeaderProgress
from kraftwire.raft.roles import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
    Votes,
    election_state,
)
from kraftwire.raft.serving import fail_parked
from kraftwire.raft.state import RaftState
from kraftwire.raft.voters import ReplicaKey


@dataclass(frozen=True, slots=True)
class Transition:
    """One row of the table. `durable`: the quorum-state file is written before it takes effect."""

    old: str
    new: str
    when: str
    durable: bool


TRANSITIONS = (
    Transition("unattached", "prospective", "a voter's election timeout ran out", False),
    Transition("unattached", "unattached", "higher epoch without a known leader; or votes", True),
    Transition("unattached", "follower", "leader found", True),
    Transition("prospective", "candidate", "a majority would vote, or one peer is too old", True),
    Transition("prospective", "prospective", "votes, and asks for pre-votes again", True),
    Transition("prospective", "follower", "leader found; or known, and lost or no voter", True),
    Transition("prospective", "unattached", "higher epoch; or lost or no voter, no leader", True),
    Transition("candidate", "leader", "a majority voted", True),
    Transition("candidate", "prospective", "election timed out, or was lost and waited for", False),
    Transition("candidate", "follower", "leader found", True),
    Transition("candidate", "unattached", "higher epoch without a known leader; no voter", True),
    Transition("leader", "resigned", "shutdown, on request, or too few voters fetch", False),
    Transition("leader", "unattached", "higher epoch without a known leader", True),
    Transition("leader", "follower", "higher epoch with a leader", True),
    Transition("resigned", "unattached", "election timeout ran out: next epoch; or higher", True),
    Transition("resigned", "prospective", "only voter", False),
    Transition("resigned", "follower", "higher epoch with a leader", True),
    Transition("follower", "prospective", "a voter's fetch timeout ran out", False),
    Transition("follower", "unattached", "higher epoch without a known leader", True),
    Transition("follower", "follower", "higher epoch, or more endpoints of the leader", True),
)


def transition_table() -> str:
    """Return the table as Markdown, as in the README of this package."""
    rows = ["| from | to | when | durable |", "|---|---|---|---|"]
    rows += [
        f"| {row.old} | {row.new} | {row.when} | {'yes' if row.durable else 'no'} |"
        for row in TRANSITIONS
    ]
    return "\n".join(rows)


_BY_ROLES = {(row.old, row.new): row for row in TRANSITIONS}


def persist(state: RaftState, role: Role) -> None:
    """Write the quorum-state file for a role, unless it is already right."""
    wanted = election_state(role)
    if wanted != state.persisted:
        state.persist(wanted)


def _become(state: RaftState, new: Role, reason: str, *, resets: bool = True) -> None:
    """Change the role: durable state first, then the role itself."""
    old = state.role
    row = _BY_ROLES.get((old.NAME, new.NAME))
    check(row is not None, f"{old.NAME} may not become {new.NAME}")
    check(new.epoch >= old.epoch, f"epoch {old.epoch} may not fall to {new.epoch}")
    if row is not None and row.durable:
        persist(state, new)
    state.role = new
    if new.epoch != old.epoch:
        state.download_failures = state.download_pause_ms = 0
    if state.download is not None and not state.download.is_of(new.leader_id, new.epoch):
        state.drop_download()
    if type(old) is Leader:
        # R-ROLE-3: a leader computes its own high watermark; the others get theirs from the next
        # leader.
        state.high_watermark = -1
        fail_change(state, old)
    state.emit(RoleChanged(old.NAME, new.NAME, new.epoch, new.leader_id, reason))
    if resets:
        _reset_connections(state)


def _reset_connections(state: RaftState) -> None:
    """Ignore all answers that belong to the old role (R-LOOP-2, R-NET-6)."""
    state.peers.reset()
    if state.in_flight:
        state.in_flight.clear()
        state.emit(ResetConnections())


def notify_listeners(state: RaftState) -> None:
    """Queue the change of leader for the state machines; each gets it when it is due."""
    role = state.role
    end = role.accumulator.end_offset if type(role) is Leader else state.log.end_offset
    state.listeners.leader_changed(role.leader_id, role.epoch, end, type(role) is Leader)


def _remaining(state: RaftState) -> int | None:
    """Return the election deadline of a new Unattached (R-ROLE-4); None for an observer
    (R-ROLE-10)."""
    if not state.may_stand:
        return None
    role = state.role
    if isinstance(role, Unattached | Candidate | Resigned):
        return role.deadline_ms if role.deadline_ms is not None else state.random_timeout()
    if type(role) is Prospective and not role.votes.is_lost:
        return role.deadline_ms
    return state.random_timeout()


def to_unattached(state: RaftState, epoch: int, reason: str, *, keep: bool = False) -> None:
    """Become unattached. `keep` keeps the epoch's vote and leader."""
    old = state.role
    new = Unattached(epoch, deadline_ms=_remaining(state))
    if keep:
        check(epoch == old.epoch, "only a role of the same epoch is kept")
        new.voted, new.leader_id = old.voted, old.leader_id
        new.leader_endpoints = old.leader_endpoints
    was_serving = isinstance(old, Leader | Resigned)
    _become(state, new, reason)
    if was_serving:
        # Kafka lets them time out and sends the old answer; here they are failed at once, as there
        # is nothing to wait for.
        fail_parked(state, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    notify_listeners(state)


def grant_vote(state: RaftState, candidate: ReplicaKey) -> None:
    """Remember a vote, durably before the answer can leave (D1, R-VOTE-7)."""
    role = state.role
    check(isinstance(role, Unattached | Prospective), f"a {role.NAME} does not vote")
    check(role.voted is None, "already voted in this epoch")
    check(candidate.id != state.config.key.id, "a replica cannot grant its own request")
    reason = f"votes for {candidate.id}"
    if type(role) is Prospective:
        # It discards the pre-votes that it has.
        votes, deadline = Votes(state.voters, state.config.key), state.random_timeout()
        again = Prospective(
            role.epoch, votes, deadline, role.leader_id, role.leader_endpoints, candidate
        )
        _become(state, again, reason)
        return
    due = state.random_timeout() if state.may_stand else None
    new = Unattached(role.epoch, role.leader_id, role.leader_endpoints, candidate, due)
    _become(state, new, reason, resets=False)


def to_prospective(state: RaftState, reason: str) -> None:
    """Ask for pre-votes in the current epoch, keeping vote and leader (R-ROLE-2)."""
    check(state.may_stand, "an observer does not stand for election")
    old = state.role
    votes = Votes(state.voters, state.config.key)
    new = Prospective(
        old.epoch, votes, state.random_timeout(), old.leader_id, old.leader_endpoints, old.voted
    )
    _become(state, new, reason)


def to_candidate(state: RaftState, reason: str, *, has_pre_votes: bool = True) -> None:
    """Vote for this node in the next epoch and ask for votes."""
    votes = Votes(state.voters, state.config.key)
    new = Candidate(state.role.epoch + 1, votes, state.random_timeout(), state.config.key)
    new.has_pre_votes = has_pre_votes
    _become(state, new, reason)
    notify_listeners(state)


def to_leader(state: RaftState, reason: str) -> None:
    """Lead the epoch; the caller writes its first records and notifies the state machines."""
    role = state.role
    check(type(role) is Candidate and role.votes.is_won, "only a majority makes a leader")
    config, start = state.config, state.log.end_offset
    new = Leader(
        role.epoch,
        start,
        config.key.id,
        config.endpoints,
        LeaderProgress(
            config.key, state.voters, start, state.now, config.timers.fetch_timeout_ms
        ),
        Accumulator(
            start,
            role.epoch,
            linger_ms=config.timers.append_linger_ms,
            batch_max_bytes=config.batch_max_bytes,
        ),
        state.now,
        reported_voters(state),
    )
    state.high_watermark = -1
    _become(state, new, reason)
    state.drop_download()
    state.log.register_epoch(role.epoch, start)


def to_resigned(state: RaftState, reason: str, preferred: list[ReplicaKey]) -> None:
    """Resign: parked fetches are failed first, still naming this node as leader (R-ROLE-7)."""
    role = state.role
    check(type(role) is Leader, "only a leader resigns")
    fail_parked(state, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    others = [voter.key for voter in state.voters if not voter.matches(state.config.key)]
    new = Resigned(
        role.epoch,
        role.leader_id,
        role.leader_endpoints,
        state.random_timeout(),
        preferred,
        others,
    )
    _become(state, new, reason)
    state.listeners.resigned()


def to_follower(
    state: RaftState, epoch: int, leader_id: int, endpoints: tuple[Endpoint, ...], reason: str
) -> None:
    """Replicate from a leader."""
    old, timers = state.role, state.config.timers
    check(leader_id != state.config.key.id, "a replica cannot follow itself")
    check(bool(endpoints), "a leader without address cannot be followed")
    timeout_ms = state.draw_fetch_timeout_ms()
    new = Follower(
        epoch,
        leader_id,
        endpoints,
        state.now + timeout_ms,
        state.now + timers.fetch_timeout_ms,
        timeout_ms,
        old.voted if epoch == old.epoch else None,
    )
    _become(state, new, reason)
    notify_listeners(state)
    fail_parked(state, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def is_consistent(state: RaftState, leader_id: int, epoch: int) -> bool:
    """Return whether a claim about the leader of an epoch agrees with what is known (R-ROLE-9).

    A Java node ends on a contradiction; here the message is ignored.
    """
    role = state.role
    if leader_id < 0 or epoch < role.epoch:
        return True
    if leader_id == state.config.key.id:
        return epoch == role.epoch and isinstance(role, Leader | Resigned)
    return epoch > role.epoch or role.leader_id in (-1, leader_id)


def maybe_transition(
    state: RaftState, leader_id: int, epoch: int, endpoints: tuple[Endpoint, ...], reason: str
) -> bool:
    """Adopt leader and epoch of a message; returns False if they are implausible.

    Source: R-ROLE-9, R-RESP-8.
    """
    role = state.role
    if not is_consistent(state, leader_id, epoch):
        state.note(
            f"ignored the claim that {leader_id} leads epoch {epoch}: "
            f"known are leader {role.leader_id} and epoch {role.epoch}",
            "warning",
            key="claim",
        )
        return False
    if leader_id < 0 or leader_id == state.config.key.id:
        if epoch > role.epoch:
            to_unattached(state, epoch, reason)
        return True
    if epoch < role.epoch:
        return True
    addresses = endpoints or _voter_endpoints(state, leader_id)
    is_new = epoch > role.epoch or role.leader_id < 0 or not role.leader_endpoints
    # Within an epoch addresses are only added: replacing the leader's could redirect this node to
    # an impostor.
    if not is_new and not set(addresses) > set(role.leader_endpoints):
        return True
    if not addresses:
        if epoch > role.epoch:
            to_unattached(state, epoch, reason)
        return False
    to_follower(state, epoch, leader_id, addresses, reason)
    return True


def _voter_endpoints(state: RaftState, replica_id: int) -> tuple[Endpoint, ...]:
    voter = state.voters.get(replica_id)
    return voter.endpoints if voter else ()
