"""Histories of elections: S1 to S4 and S17 to S20."""

from __future__ import annotations

from kraftwire.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraftwire.messages.begin_quorum_epoch_request import PartitionData as BeginPartition
from kraftwire.messages.begin_quorum_epoch_request import TopicData as BeginTopic
from kraftwire.messages.vote_response import PartitionData as VotedPartition
from kraftwire.messages.vote_response import TopicData as VotedTopic
from kraftwire.messages.vote_response import VoteResponse
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.raft.effects import ElectionState
from kraftwire.raft.voters import ReplicaKey
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.sim.checks import replica_events as did
from tests.simulation.checks.examples import (
    NONE,
    STATIC,
    ReportedCluster,
    breaks,
    directory,
    entry,
    holds,
    led,
    vote_request,
)


@breaks("S1")
def two_leaders() -> None:
    """2 says that it leads the epoch of 1."""
    cluster = led()
    partition = BeginPartition(leader_id=2, leader_epoch=1)
    request = BeginQuorumEpochRequest(topics=[BeginTopic(partitions=[partition])])
    cluster.on(2, did.RequestSent(request))


@breaks("S2")
def epoch_falls() -> None:
    """A file states a lower epoch than before."""
    cluster = led()
    cluster.stores(1, 0)


@breaks("S2")
def speaks_too_early() -> None:
    """A request names an epoch that is not stored."""
    ReportedCluster().asks(1, 1, (0, 0))


@breaks("S3")
def votes_twice() -> None:
    """First for 1, then for 3."""
    cluster = led()
    cluster.stores(2, 1, 3)


@breaks("S3")
def votes_unstored() -> None:
    """The answer leaves before the file is written."""
    cluster = ReportedCluster()
    cluster.stores(2, 1)
    cluster.grants(2, 1, 1, (0, 0))


@breaks("S3")
def keeps_a_vote_of_an_older_epoch() -> None:
    """3 voted for 2 in epoch 2; no candidate has asked it in epoch 3."""
    cluster = led()
    cluster.stores(3, 2, 2)
    kept = ElectionState(3, -1, ReplicaKey(2, directory(2)))
    cluster.on(3, did.Persisted(kept, False))


@breaks("S3")
def votes_twice_over_a_restart() -> None:
    """The vote was forgotten, and is given again."""
    cluster = ReportedCluster()
    cluster.stores(2, 1, 1)
    cluster.model(2).stored = ElectionState(1)
    cluster.starts(2)
    cluster.stores(2, 1, 3)


@breaks("S4")
def votes_for_older_log() -> None:
    """3 has nothing, 2 has a batch."""
    cluster = led()
    cluster.stores(2, 2, 3)
    cluster.grants(2, 2, 3, (0, 0))


@breaks("S4")
def asks_with_what_is_not_durable() -> None:
    """A crash could take back what the votes were given for."""
    cluster = led()
    cluster.copies(2, entry(1, 1), epoch=1, flush=False)
    cluster.stores(2, 2, 2)
    cluster.asks(2, 2, (1, 2))


@breaks("S17")
def leads_without_majority() -> None:
    """Its own vote alone."""
    ReportedCluster().elects(1, 1)


@breaks("S17")
def leads_by_the_vote_of_a_stranger() -> None:
    """The vote of a node that is not a voter does not count."""
    cluster = ReportedCluster(nodes=4)
    cluster.elects(1, 1, 4)


@breaks("S18")
def observer_campaigns() -> None:
    """4 is not a voter."""
    cluster = ReportedCluster(nodes=4)
    cluster.stores(4, 1, 4)
    cluster.asks(4, 1, (0, 0))


@breaks("S19")
def pre_vote_stores() -> None:
    """A vote is stored because of a pre-vote."""
    cluster = led()
    state = ElectionState(1, -1, ReplicaKey(3, directory(3)))
    cluster.model(3).stored = ElectionState(1)
    cluster.on(3, did.Persisted(state, True))


@breaks("S20")
def names_unstored_leader() -> None:
    """An answer speaks of an epoch that is not stored."""
    partition = VotedPartition(leader_id=1, leader_epoch=5)
    answer = VoteResponse(topics=[VotedTopic(partitions=[partition])])
    ReportedCluster().on(2, did.ResponseSent(vote_request(1, 5, (0, 0)), answer, -1))


@holds
def same_leader_again() -> None:
    """1 names itself."""
    cluster = led()
    partition = BeginPartition(leader_id=1, leader_epoch=1)
    request = BeginQuorumEpochRequest(topics=[BeginTopic(partitions=[partition])])
    cluster.on(1, did.RequestSent(request))


@holds
def same_vote_again() -> None:
    """The same candidate asks twice, the second time with an older log than the voter has now."""
    cluster = led()
    cluster.stores(3, 2, 2)
    cluster.grants(3, 2, 2, (1, 1))
    cluster.copies(3, entry(0, 1), epoch=2)
    cluster.copies(3, entry(1, 2), epoch=2)
    cluster.grants(3, 2, 2, (1, 1), voted=2)


@holds
def leader_forgets_its_vote() -> None:
    """A leader's file says that it leads, and no vote."""
    ReportedCluster().elects(2, 1, 3)


@holds
def stale_leader_is_elected_late() -> None:
    """2 is elected in epoch 2, after a commit in epoch 3: it needs none of that."""
    cluster = ReportedCluster()
    cluster.stores(1, 2, 2)
    cluster.grants(1, 2, 2, (0, 0))
    cluster.stores(2, 2, 2)
    cluster.elects(3, 3, 1)
    first = entry(0, 3)
    cluster.writes(3, first, epoch=3)
    cluster.copies(1, first, epoch=3)
    cluster.commits(3, 1, 3)
    cluster.stores(2, 2, leader=2)
    cluster.on(2, did.Elected(2))


@breaks("S1")
def two_leaders_by_their_files() -> None:
    """2 stores that it leads the epoch of 1."""
    cluster = led()
    cluster.stores(2, 1, 1, leader=2)


@holds
def one_leader_in_each_of_two_epochs() -> None:
    cluster = led()
    cluster.stores(3, 2, leader=2)


@breaks("S2")
def a_start_finds_an_older_file() -> None:
    """The epoch was durable, and is gone."""
    cluster = led()
    found = did.Started(OffsetAndEpoch(0, 0), (), ElectionState(), 0, None, None)
    cluster.on(1, found)


@breaks("S2")
def an_event_leaves_memory_ahead_of_disk() -> None:
    """The core is in an epoch that is not stored."""
    led().on(1, did.StepEnded(2, 1, 1, STATIC, 0, "follower"))


@breaks("S2")
def asks_in_an_older_epoch() -> None:
    """It stands in an epoch that is over."""
    cluster = led()
    cluster.stores(3, 2)
    cluster.asks(3, 1, (0, 0))


@holds
def fetches_in_an_older_epoch() -> None:
    """Its leader refuses it."""
    cluster = led()
    cluster.stores(2, 2)
    cluster.fetches(2, 1, 1)


@breaks("S3")
def forgets_its_vote() -> None:
    """The file of a follower states no vote any more."""
    cluster = led()
    cluster.stores(2, 1, leader=1)


@breaks("S3")
def grants_a_second_vote() -> None:
    """What is stored and what is granted differ."""
    cluster = ReportedCluster()
    cluster.stores(2, 1, 1)
    cluster.grants(2, 1, 3, (0, 0))


@breaks("S3")
def asks_without_its_own_vote() -> None:
    """It has voted for another."""
    cluster = ReportedCluster()
    cluster.stores(3, 1, 1)
    cluster.asks(3, 1, (0, 0))


@holds
def two_replicas_of_one_id_vote() -> None:
    """The second has a new disk, and so does not know of the vote of the first."""
    cluster = ReportedCluster()
    cluster.stores(2, 1, 1)
    cluster.gets_a_disk(2, 1)
    cluster.stores(2, 1, 3)


@breaks("S4")
def pre_votes_for_older_log() -> None:
    """A pre-vote compares logs too, whom the replica has voted for or not."""
    cluster = led()
    cluster.stores(2, 2, 3)
    cluster.grants(2, 2, 3, (0, 0), voted=3, pre=True)


@breaks("S4")
def asks_with_a_log_that_it_does_not_have() -> None:
    """It claims more than it has."""
    cluster = led()
    cluster.stores(2, 2, 2)
    cluster.asks(2, 2, (1, 2))


@holds
def votes_for_an_equal_log() -> None:
    cluster = led()
    cluster.stores(2, 2, 1)
    cluster.grants(2, 2, 1, (1, 1))


@breaks("S17")
def leads_by_half_of_the_votes() -> None:
    """Two of four."""
    voters = (*STATIC, (4, NONE))
    ReportedCluster(voters, 4).elects(1, 1, 2)


@holds
def leads_by_a_majority_of_four() -> None:
    voters = (*STATIC, (4, NONE))
    ReportedCluster(voters, 4).elects(1, 1, 2, 3)


@breaks("S17")
def asks_as_another_replica() -> None:
    """With the directory id of an older disk."""
    cluster = ReportedCluster()
    cluster.gets_a_disk(1, 1)
    cluster.stores(1, 1, 1)
    cluster.asks(1, 1, (0, 0))


@breaks("S17")
def answers_another_cluster() -> None:
    """It grants a vote to a candidate of that."""
    cluster = ReportedCluster()
    answer = VoteResponse(topics=[VotedTopic(partitions=[VotedPartition(leader_id=-1)])])
    cluster.on(2, did.ResponseSent(vote_request(1, 0, (0, 0)), answer, -1, True))


@holds
def refuses_another_cluster() -> None:
    answer = VoteResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    ReportedCluster().on(2, did.ResponseSent(vote_request(1, 0, (0, 0)), answer, -1, True))


@breaks("S18")
def asks_an_observer() -> None:
    """4 is not a voter."""
    cluster = ReportedCluster(nodes=4)
    cluster.stores(1, 1, 1)
    cluster.asks(1, 1, (0, 0), of=4)


@breaks("S18")
def stands_outside_of_the_set() -> None:
    """Whether or not it asks anybody."""
    cluster = ReportedCluster(nodes=4)
    cluster.on(4, did.StepEnded(0, 0, -1, STATIC, 0, "prospective"))


@breaks("S18")
def an_observer_leads() -> None:
    """So says 1."""
    cluster = ReportedCluster(nodes=4)
    cluster.stores(1, 1, leader=4)


@breaks("S19")
def pre_vote_of_an_epoch_to_come() -> None:
    """It asks for pre-votes in an epoch that it has not stored."""
    cluster = led()
    cluster.stores(3, 2)
    cluster.asks(3, 1, (0, 0), pre=True)


@holds
def pre_vote_in_the_present_epoch() -> None:
    cluster = led()
    cluster.stores(3, 1)
    cluster.asks(3, 1, (0, 0), pre=True)


@holds
def its_own_time_has_run_out_when_a_pre_vote_comes() -> None:
    """It had resigned: its own deadline begins the next epoch in the same step."""
    led().on(1, did.Persisted(ElectionState(2), True, True))


@breaks("S19")
def a_pre_vote_is_stored_when_its_own_time_has_run_out() -> None:
    """An epoch may begin by itself, but no vote may be given in the old one."""
    cluster = ReportedCluster()
    cluster.stores(3, 1)
    state = ElectionState(1, -1, ReplicaKey(2, directory(2)))
    cluster.on(3, did.Persisted(state, True, True))


@breaks("S20")
def a_fetch_answer_names_an_unstored_leader() -> None:
    """Of an epoch that it has only heard of."""
    led().answers_fetch(2, leader=3, epoch=2)


@holds
def a_fetch_answer_names_the_leader() -> None:
    led().answers_fetch(2, leader=1, epoch=1)
