"""The table of transitions: documented as it is, and the only way to change roles."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from kraftwire.errors import InvariantError
from kraftwire.protocol.endpoint import Endpoint
from kraftwire.raft.ports import StoredState
from kraftwire.raft.roles import Follower, Prospective, Unattached
from kraftwire.raft.state import RaftState
from kraftwire.raft.transitions import (
    TRANSITIONS,
    grant_vote,
    maybe_transition,
    to_candidate,
    to_follower,
    to_leader,
    to_prospective,
    to_unattached,
    transition_table,
)
from kraftwire.raft.voters import ReplicaKey
from tests.support.raft.cluster import Cluster
from tests.support.raft.messages import directory_id

README = Path(__file__).resolve().parents[3] / "kraftwire" / "raft" / "README.md"
ADDRESS = (Endpoint("CONTROLLER", "node2", 9002),)


def fresh_state(node_id: int = 1) -> RaftState:
    """A replica of three voters in epoch 0, Unattached."""
    config = Cluster([1, 2, 3]).config(node_id)
    state = RaftState(config, StoredState(), Random(1))
    state.role = Unattached(0, deadline_ms=1000)
    return state


def test_the_readme_shows_the_table() -> None:
    """Documentation that is printed from the table cannot contradict it."""
    assert transition_table() in README.read_text()


def test_each_pair_of_roles_has_one_row() -> None:
    """Two rows could disagree about what must be durable."""
    pairs = [(row.old, row.new) for row in TRANSITIONS]
    assert len(pairs) == len(set(pairs))


def test_a_follower_does_not_become_candidate_or_leader_directly() -> None:
    """R-ROLE-6: both would skip the pre-vote or the election."""
    for step in (to_candidate, to_leader):
        state = fresh_state()
        to_follower(state, 1, 2, ADDRESS, "test")
        with pytest.raises(InvariantError):
            step(state, "test")
        assert type(state.role) is Follower


def test_the_epoch_never_falls() -> None:
    """S2: an older epoch is over."""
    state = fresh_state()
    to_unattached(state, 5, "test")
    with pytest.raises(InvariantError):
        to_unattached(state, 4, "test")


def test_a_replica_cannot_follow_itself_or_a_leader_without_address() -> None:
    """R-ROLE-6."""
    for leader_id, endpoints in ((1, ADDRESS), (2, ())):
        with pytest.raises(InvariantError):
            to_follower(fresh_state(), 1, leader_id, endpoints, "test")


def test_a_vote_is_kept_within_its_epoch_and_dropped_at_the_next() -> None:
    """R-ROLE-2, S3: a replica that forgot its vote would vote twice."""
    state = fresh_state()
    to_unattached(state, 1, "test")
    vote = ReplicaKey(3, directory_id(3))
    grant_vote(state, vote)
    to_prospective(state, "test")
    assert state.role.voted == vote
    to_follower(state, 1, 2, ADDRESS, "test")
    assert state.role.voted == vote
    to_prospective(state, "test")
    assert state.role.voted == vote
    to_unattached(state, 2, "test")
    assert state.role.voted is None


def test_a_second_vote_in_an_epoch_is_a_programming_error() -> None:
    """S3: the rule is enforced where the vote is recorded, not only where it is decided."""
    state = fresh_state()
    to_unattached(state, 1, "test")
    grant_vote(state, ReplicaKey(3, directory_id(3)))
    with pytest.raises(InvariantError):
        grant_vote(state, ReplicaKey(2, directory_id(2)))


def test_contradicting_claims_about_a_leader_change_nothing() -> None:
    """R-ROLE-9: a Java node ends here; believing it could make two leaders of one epoch."""
    state = fresh_state()
    to_follower(state, 1, 2, ADDRESS, "test")
    role = state.role
    assert not maybe_transition(state, 3, 1, ADDRESS, "test")
    assert not maybe_transition(state, 1, 1, (), "test"), "this node does not lead epoch 1"
    assert not maybe_transition(state, 1, 9, (), "test"), "nor epoch 9"
    assert state.role is role


def test_the_same_leader_with_more_endpoints_is_followed_again() -> None:
    """KAFKA-16927: the address for this node's listener may be among the new ones."""
    state = fresh_state()
    to_follower(state, 1, 2, ADDRESS, "test")
    role = state.role
    assert maybe_transition(state, 2, 1, ADDRESS, "test")
    assert state.role is role, "nothing new"
    more = (*ADDRESS, Endpoint("OTHER", "node2", 9102))
    assert maybe_transition(state, 2, 1, more, "test")
    assert state.role is not role
    assert state.role.leader_endpoints == more


def test_a_prospective_stays_when_the_leader_it_knows_announces_itself() -> None:
    """R-ROLE-9: its pre-vote is decided first; a majority that refuses sends it back anyway."""
    state = fresh_state()
    to_follower(state, 1, 2, ADDRESS, "test")
    to_prospective(state, "test")
    assert maybe_transition(state, 2, 1, ADDRESS, "test")
    assert type(state.role) is Prospective
