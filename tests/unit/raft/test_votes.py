"""Granting votes: the checks in order, and which candidate gets a vote."""

from __future__ import annotations

from typing import cast

import pytest

from kraftwire.messages.vote_request import PartitionData, TopicData, VoteRequest
from kraftwire.messages.vote_response import VoteResponse
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft import effects
from kraftwire.raft.effects import ElectionState
from kraftwire.raft.voters import ReplicaKey
from tests.support.raft.lone import Lone, stored_log
from tests.support.raft.messages import directory_id, vote

TOPIC = "__cluster_metadata"


def ask_for_vote(
    lone: Lone,
    *,
    epoch: int,
    candidate: int = 2,
    last: tuple[int, int] = (0, 0),
    pre_vote: bool = False,
    **fields: object,
) -> VoteResponse:
    """Ask node 1 for a vote as a candidate whose log ends at (epoch, offset) `last`."""
    partition = PartitionData(
        replica_epoch=epoch,
        replica_id=candidate,
        replica_directory_id=directory_id(candidate) if candidate >= 0 else bytes(16),
        voter_directory_id=cast("bytes", fields.get("voter_directory_id", bytes(16))),
        last_offset_epoch=last[0],
        last_offset=last[1],
        pre_vote=pre_vote,
    )
    topic = TopicData(topic_name=cast("str", fields.get("topic", TOPIC)), partitions=[partition])
    request = VoteRequest(
        cluster_id=cast("str", fields.get("cluster_id", "cluster")),
        voter_id=cast("int", fields.get("voter_id", -1)),
        topics=[topic],
    )
    return cast("VoteResponse", lone.request(request))


def outcome(response: VoteResponse) -> tuple[int, int, bool]:
    """Error code of the partition, its epoch, and whether the vote was granted."""
    partition = response.topics[0].partitions[0]
    return partition.error_code, partition.leader_epoch, partition.vote_granted


def test_a_foreign_cluster_id_is_refused_before_anything_else() -> None:
    """R-VOTE-4: another cluster's candidate must not even raise the epoch (KAFKA-12440)."""
    lone = Lone()
    response = ask_for_vote(lone, epoch=9, cluster_id="other")
    assert response.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert lone.core.epoch == 0


def test_an_unknown_topic_is_an_invalid_request() -> None:
    """R-VOTE-4: the answer has no partition to carry an error."""
    response = ask_for_vote(Lone(), epoch=9, topic="other")
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert response.topics == []


@pytest.mark.parametrize(
    ("last", "pre_vote", "is_legal"),
    [((4, 1), False, True), ((5, 1), False, False), ((5, 1), True, True), ((6, 1), True, False)],
)
def test_a_log_may_not_be_newer_than_the_epoch_asked_for(
    last: tuple[int, int], pre_vote: bool, is_legal: bool
) -> None:
    """A pre-vote names the current epoch, in which the log may end; a vote the next one."""
    lone = Lone()
    error, _, _ = outcome(ask_for_vote(lone, epoch=5, last=last, pre_vote=pre_vote))
    assert error == (ErrorCode.NONE if is_legal else ErrorCode.INVALID_REQUEST)
    assert lone.core.epoch == (5 if is_legal else 0)


def test_an_older_epoch_is_fenced() -> None:
    """R-VOTE-4: the answer says which epoch it is."""
    lone = Lone(election=ElectionState(7))
    assert outcome(ask_for_vote(lone, epoch=6)) == (ErrorCode.FENCED_LEADER_EPOCH, 7, False)


def test_a_vote_for_another_candidate_keeps_the_higher_epoch() -> None:
    """R-VOTE-4: the epoch rises before the voter key is checked."""
    lone = Lone()
    response = ask_for_vote(lone, epoch=3, voter_id=2)
    assert outcome(response) == (ErrorCode.INVALID_VOTER_KEY, 3, False)
    wrong_directory = {"voter_id": 1, "voter_directory_id": directory_id(9)}
    response = ask_for_vote(lone, epoch=3, **wrong_directory)
    assert outcome(response) == (ErrorCode.INVALID_VOTER_KEY, 3, False)


def test_a_vote_is_durable_before_it_is_given() -> None:
    """D1, S3: a replica that restarts must not vote twice in an epoch."""
    lone = Lone()
    assert outcome(ask_for_vote(lone, epoch=3)) == (ErrorCode.NONE, 3, True)
    assert lone.disk.election == ElectionState(3, -1, ReplicaKey(2, directory_id(2)))
    lone.restart()
    assert outcome(ask_for_vote(lone, epoch=3, candidate=3)) == (ErrorCode.NONE, 3, False)


def test_the_same_candidate_gets_its_vote_again() -> None:
    """R-VOTE-6: the first answer may have been lost, and the log no longer matters."""
    lone = Lone()
    ask_for_vote(lone, epoch=3, last=(2, 5))
    assert outcome(ask_for_vote(lone, epoch=3, last=(0, 0)))[2]


def test_no_vote_while_a_leader_is_known() -> None:
    """R-VOTE-6: an epoch has one leader; asking again cannot make another."""
    lone = Lone(election=ElectionState(3, leader_id=2))
    assert lone.core.role == "follower"
    assert not outcome(ask_for_vote(lone, epoch=3, candidate=3))[2]


def test_a_candidate_that_lost_follows_the_winner_after_a_restart() -> None:
    """R-START-6 in another order: a vote for itself matters only while the epoch is open."""
    own_vote = ReplicaKey(1, directory_id(1))
    open_epoch = Lone(election=ElectionState(3, -1, own_vote))
    assert open_epoch.core.role == "candidate"
    lost = Lone(election=ElectionState(3, leader_id=2, voted=own_vote))
    assert (lost.core.role, lost.core.voted) == ("follower", own_vote)


def test_a_pre_vote_changes_nothing_durable() -> None:
    """S19: a pre-vote must not disturb the quorum."""
    lone = Lone(election=ElectionState(3))
    before = lone.disk.election
    assert outcome(ask_for_vote(lone, epoch=3, pre_vote=True)) == (ErrorCode.NONE, 3, True)
    assert lone.disk.election == before
    assert lone.core.voted is None


def test_an_older_log_gets_no_vote() -> None:
    """S4: what is committed must be in the next leader's log."""
    lone = Lone(log=stored_log((1, 3)), election=ElectionState(2))
    for last in ((1, 2), (0, 12)):
        assert not outcome(ask_for_vote(lone, epoch=3, last=last))[2]
    assert outcome(ask_for_vote(lone, epoch=3, last=(1, 3)))[2]


@pytest.mark.parametrize(("end", "granted"), [(11, False), (12, True)])
def test_a_log_that_begins_at_a_snapshot_votes_by_its_end(end: int, granted: bool) -> None:
    """What precedes the log was committed; only the end of a log decides (R-VOTE-5)."""
    lone = Lone(log=stored_log((1, 12)), election=ElectionState(2), log_start=10)
    assert outcome(lone.request(vote(2, 3, (1, end), pre_vote=True)))[2] is granted
    assert outcome(lone.request(vote(2, 3, (1, end))))[2] is granted


@pytest.mark.parametrize(("last", "granted"), [((1, 10), True), ((1, 9), False), ((0, 99), False)])
def test_an_empty_log_after_a_snapshot_ends_where_the_snapshot_does(
    last: tuple[int, int], granted: bool
) -> None:
    """R-START-5: a candidate needs what is in the snapshot, or it would be lost."""
    lone = Lone(log=stored_log((1, 10)), election=ElectionState(2), log_start=10)
    assert (lone.core.end_offset, lone.core.last_epoch) == (10, 1)
    assert outcome(lone.request(vote(2, 3, last)))[2] is granted


def test_another_directory_of_this_nodes_id_gets_no_vote() -> None:
    """With static voters it would be this voter: the vote for itself and this one are two votes
    of one voter, which the file at kraft.version 0 cannot distinguish after a restart."""
    lone = Lone()
    stranger = b"another one dir."
    assert not outcome(lone.request(vote(1, 3, directory=stranger, pre_vote=True)))[2]
    assert outcome(lone.request(vote(1, 3, directory=stranger))) == (ErrorCode.NONE, 3, False)
    assert lone.core.voted is None
    assert outcome(lone.request(vote(2, 3))) == (ErrorCode.NONE, 3, True)


def test_a_candidate_outside_the_set_gets_the_vote_that_its_log_deserves() -> None:
    """R-VOTE-8: its set may be newer than ours, so the log alone decides."""
    lone = Lone(log=stored_log((1, 4)), election=ElectionState(1))
    assert outcome(lone.request(vote(9, 2, (1, 3))))[2] is False
    assert outcome(lone.request(vote(9, 2, (1, 4))))[2] is True
    assert lone.disk.election == ElectionState(2, -1, ReplicaKey(9, directory_id(9)))


def test_an_observer_votes_by_the_same_rules() -> None:
    """R-VOTE-8: it may be a voter without knowing it yet, and its vote is kept like any other."""
    observer = Lone(4, log=stored_log((1, 4)), election=ElectionState(1))
    assert not observer.core.is_voter
    assert outcome(observer.request(vote(2, 2, (1, 3))))[2] is False
    assert outcome(observer.request(vote(2, 2, (1, 4))))[2] is True
    observer.restart()
    assert outcome(observer.request(vote(3, 2, (1, 9))))[2] is False
    observer.wait(60_000)
    assert {one.new for one in observer.all_of(effects.RoleChanged)} <= {"unattached"}
