"""The role that a replica starts in.

Source: R-START-6, R-START-7; Kafka's `QuorumState.initialize`.
"""

from __future__ import annotations

from kraftwire.errors import StorageError
from kraftwire.raft.ports import StoredState
from kraftwire.raft.roles import Candidate, Follower, Resigned, Role, Unattached, Votes
from kraftwire.raft.state import RaftState
from kraftwire.raft.voters import ReplicaKey

_FILE = "quorum-state"


def first_role(state: RaftState, stored: StoredState) -> Role:
    """Return the role that follows from quorum-state and log; the high watermark is unknown.

    Raises: StorageError if the stored vote cannot be this replica's.
    """
    election, config = stored.election, state.config
    last_epoch = state.log.last_epoch
    deadline = state.random_timeout() if state.may_stand else None
    if election.epoch < last_epoch:
        # The file is older than the log (KAFKA-16541): its contents are obsolete.
        return Unattached(last_epoch, deadline_ms=deadline)
    if election.voted is not None and config.key.id < 0:
        raise StorageError("a vote of a node without id", file=_FILE)
    if election.leader_id == config.key.id and election.leader_id >= 0:
        # Its last records of the epoch may be lost: it must not write others at their offsets
        # (KAFKA-10527).
        return _resigned(state)
    voted = election.voted
    # Differs from Kafka, which stands again although another node has won this epoch: once its log
    # has a record of the epoch, such a Vote request is invalid (R-VOTE-4).
    if election.leader_id < 0 and voted is not None and _is_mine(state, voted):
        if state.may_stand:
            votes = Votes(state.voters, config.key)
            return Candidate(election.epoch, votes, state.random_timeout(), config.key)
        # Kafka ends here. The record that made it a voter may have been truncated since.
        return Unattached(election.epoch, voted=voted, deadline_ms=deadline)
    leader = state.voters.get(election.leader_id) if election.leader_id >= 0 else None
    if leader is not None and leader.endpoint(config.listener) is not None:
        # The only voter need not wait for others (R-START-7).
        timeout_ms = 0 if state.is_only_voter else state.draw_fetch_timeout_ms()
        return Follower(
            election.epoch,
            election.leader_id,
            leader.endpoints,
            state.now + timeout_ms,
            state.now + config.timers.fetch_timeout_ms,
            timeout_ms,
            voted,
        )
    return Unattached(
        election.epoch, election.leader_id, voted=voted, deadline_ms=deadline
    )


def _resigned(state: RaftState) -> Resigned:
    key = state.config.key
    others = [voter.key for voter in state.voters if not voter.matches(key)]
    epoch = max(state.log.last_epoch, state.role.epoch)
    return Resigned(
        epoch, key.id, state.config.endpoints, state.random_timeout(), [], others
    )


def _is_mine(state: RaftState, voted: ReplicaKey) -> bool:
    key = state.config.key
    return voted.id == key.id and voted.directory_id in (bytes(16), key.directory_id)
