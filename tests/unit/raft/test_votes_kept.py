"""How long a vote lasts: to the end of its epoch, over roles and restarts, and no further."""

from __future__ import annotations

from typing import Any

from kraftwire.raft.effects import ElectionState
from kraftwire.raft.roles import Votes
from kraftwire.raft.voters import ReplicaKey
from tests.support.raft.lone import Lone, stored_log
from tests.support.raft.messages import begin, directory_id, dynamic_set, vote

_NEWER = (3, 9)


def _gets(lone: Lone, candidate: int, epoch: int, last: tuple[int, int] = _NEWER) -> bool:
    """Whether a candidate gets the vote."""
    answer: Any = lone.request(vote(candidate, epoch, last))
    return bool(answer.topics[0].partitions[0].vote_granted)


def _key(node: int) -> ReplicaKey:
    return ReplicaKey(node, directory_id(node))


def test_a_new_epoch_begins_without_a_vote() -> None:
    """R-ROLE-2: keeping the old vote would help no candidate, and block a new vote."""
    lone = Lone(log=stored_log((1, 4)), election=ElectionState(4))
    assert _gets(lone, 2, 5)
    assert lone.disk.election == ElectionState(5, -1, _key(2))
    assert not _gets(lone, 3, 6, last=(1, 3))
    assert lone.core.voted is None
    assert lone.disk.election == ElectionState(6)


def test_the_vote_of_a_new_epoch_goes_to_the_first_that_asks() -> None:
    """This holds whatever its vote in the previous epoch was."""
    lone = Lone(election=ElectionState(4))
    for epoch, candidate in ((5, 2), (6, 3), (7, 2)):
        assert _gets(lone, candidate, epoch)
        assert not _gets(lone, 5 - candidate, epoch)
        assert lone.disk.election == ElectionState(epoch, -1, _key(candidate))


def test_a_follower_of_a_new_epoch_has_not_voted_in_it() -> None:
    """R-ROLE-2: the vote went to another candidate, in an epoch that is over."""
    lone = Lone(election=ElectionState(4))
    assert _gets(lone, 2, 5)
    lone.request(begin(3, 6))
    assert (lone.core.role, lone.core.voted) == ("follower", None)
    assert lone.disk.election == ElectionState(6, 3)


def test_a_follower_keeps_the_vote_of_its_epoch() -> None:
    """S3: even across a restart, or it could be granted twice."""
    lone = Lone(election=ElectionState(4))
    assert _gets(lone, 2, 5)
    lone.request(begin(2, 5))
    assert lone.core.voted == _key(2)
    lone.restart()
    assert (lone.core.role, lone.core.voted) == ("follower", _key(2))


def test_a_nominee_keeps_the_vote_of_its_epoch() -> None:
    """S3: it asks for pre-votes of the next epoch while its vote of this one stands."""
    lone = Lone(election=ElectionState(4))
    assert _gets(lone, 2, 5)
    due = lone.core.deadline_ms
    assert due is not None
    lone.wait(due - lone.now)
    assert (lone.core.role, lone.core.voted) == ("prospective", _key(2))
    assert not _gets(lone, 3, 5)
    assert _gets(lone, 2, 5)


def test_a_nominee_that_knows_the_epochs_leader_does_not_vote_in_it() -> None:
    """R-VOTE-6: its leader is silent, yet the epoch has one, and can have no other."""
    lone = Lone(election=ElectionState(4))
    lone.follow(2, 5)
    lone.wait(lone.config.timers.fetch_timeout_ms * 3)
    lone.fail(lone.last_request)
    assert lone.core.leader_id == 2
    assert lone.core.role == "prospective"
    assert not _gets(lone, 3, 5)
    assert lone.core.voted is None


def test_a_vote_is_taken_from_a_file_only_if_it_is_as_new_as_the_log() -> None:
    """R-START-6, KAFKA-16541: the log has records of an epoch that the file does not know."""
    lone = Lone(log=stored_log((1, 2), (6, 2)), election=ElectionState(4, -1, _key(2)))
    assert (lone.core.epoch, lone.core.voted, lone.core.role) == (6, None, "unattached")
    assert lone.disk.election == ElectionState(6)


def test_a_nodes_own_vote_is_that_of_its_own_directory() -> None:
    """R-VOTE-11, S17: the set names the disk that this one has replaced."""
    voters = dynamic_set([1, 2, 3])
    assert Votes(voters, _key(1)).granting == [_key(1)]
    assert Votes(voters, ReplicaKey(1, b"another one dir.")).granting == []
    assert Votes(voters, _key(4)).granting == []
