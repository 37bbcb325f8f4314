"""LogChecks of elections: S1 to S4 and S17 to S20."""

from __future__ import annotations

from kraftwire.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraftwire.messages.begin_quorum_epoch_request import PartitionData as BeginPartition
from kraftwire.messages.begin_quorum_epoch_request import TopicData as BeginTopic
from kraftwire.messages.vote_response import PartitionData as VotedPartition
from kraftwire.messages.vote_response import TopicData as VotedTopic
from kraftwire.messages.vote_response import VoteResponse
from kraftwire.raft.effects import ElectionState
from kraftwire.raft.voters import ReplicaKey
from kraftwire.sim.untimed import replica_events as did
from tests.simulation.untimed.examples import (
    History,
    ReportedCluster,
    directory,
    entry,
    led,
    vote_request,
)


def two_leaders() -> None:
    """2 says that it leads the epoch of 1."""
    cluster = led()
    partition = BeginPartition(leader_id=2, leader_epoch=1)
    request = BeginQuorumEpochRequest(topics=[BeginTopic(partitions=[partition])])
    cluster.on(2, did.RequestSent(request))


def epoch_falls() -> None:
    """A file states a lower epoch than before."""
    cluster = led()
    cluster.stores(1, 0)


def speaks_too_early() -> None:
    """A request names an epoch that is not stored."""
    ReportedCluster().asks(1, 1, (0, 0))


def votes_twice() -> None:
    """First for 1, then for 3."""
    cluster = led()
    cluster.stores(2, 1, 3)


def votes_unstored() -> None:
    """The answer leaves before the file is written."""
    cluster = ReportedCluster()
    cluster.stores(2, 1)
    cluster.grants(2, 1, 1, (0, 0))


def keeps_a_vote_of_an_older_epoch() -> None:
    """3 voted for 2 in epoch 2; no candidate has asked it in epoch 3."""
    cluster = led()
    cluster.stores(3, 2, 2)
    kept = ElectionState(3, -1, ReplicaKey(2, directory(2)))
    cluster.on(3, did.Persisted(kept, False))


def votes_twice_over_a_restart() -> None:
    """The vote was forgotten, and is given again."""
    cluster = ReportedCluster()
    cluster.stores(2, 1, 1)
    cluster.checkers.models[2].stored = ElectionState(1)
    cluster.starts(2)
    cluster.stores(2, 1, 3)


def votes_for_older_log() -> None:
    """3 has nothing, 2 has a batch."""
    cluster = led()
    cluster.stores(2, 2, 3)
    cluster.grants(2, 2, 3, (0, 0))


def asks_with_what_is_not_durable() -> None:
    """A crash could take back what the votes were given for."""
    cluster = led()
    cluster.copies(2, entry(1, 1), epoch=1, flush=False)
    cluster.stores(2, 2, 2)
    cluster.asks(2, 2, (1, 2))


def leads_without_majority() -> None:
    """Its own vote alone."""
    ReportedCluster().elects(1, 1)


def leads_by_the_vote_of_a_stranger() -> None:
    """The vote of a node that is not a voter does not count."""
    cluster = ReportedCluster(nodes=4)
    cluster.elects(1, 1, 4)


def observer_campaigns() -> None:
    """4 is not a voter."""
    cluster = ReportedCluster(nodes=4)
    cluster.stores(4, 1, 4)
    cluster.asks(4, 1, (0, 0))


def pre_vote_stores() -> None:
    """A vote is stored because of a pre-vote."""
    cluster = led()
    state = ElectionState(1, -1, ReplicaKey(3, directory(3)))
    cluster.checkers.models[3].stored = ElectionState(1)
    cluster.on(3, did.Persisted(state, True))


def names_unstored_leader() -> None:
    """An answer speaks of an epoch that is not stored."""
    partition = VotedPartition(leader_id=1, leader_epoch=5)
    answer = VoteResponse(topics=[VotedTopic(partitions=[partition])])
    ReportedCluster().on(2, did.ResponseSent(vote_request(1, 5, (0, 0)), answer, -1))


def same_leader_again() -> None:
    """1 names itself."""
    cluster = led()
    partition = BeginPartition(leader_id=1, leader_epoch=1)
    request = BeginQuorumEpochRequest(topics=[BeginTopic(partitions=[partition])])
    cluster.on(1, did.RequestSent(request))


def same_vote_again() -> None:
    """The same candidate asks twice, the second time with an older log than the voter has now."""
    cluster = led()
    cluster.stores(3, 2, 2)
    cluster.grants(3, 2, 2, (1, 1))
    cluster.copies(3, entry(0, 1), epoch=2)
    cluster.copies(3, entry(1, 2), epoch=2)
    cluster.grants(3, 2, 2, (1, 1), voted=2)


def leader_forgets_its_vote() -> None:
    """A leader's file says that it leads, and no vote."""
    ReportedCluster().elects(2, 1, 3)


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


BAD: tuple[tuple[str, History], ...] = (
    ("S1", two_leaders),
    ("S2", epoch_falls),
    ("S2", speaks_too_early),
    ("S3", votes_twice),
    ("S3", votes_unstored),
    ("S3", keeps_a_vote_of_an_older_epoch),
    ("S3", votes_twice_over_a_restart),
    ("S4", votes_for_older_log),
    ("S4", asks_with_what_is_not_durable),
    ("S17", leads_without_majority),
    ("S17", leads_by_the_vote_of_a_stranger),
    ("S18", observer_campaigns),
    ("S19", pre_vote_stores),
    ("S20", names_unstored_leader),
)

NEAR: tuple[History, ...] = (
    same_leader_again,
    same_vote_again,
    leader_forgets_its_vote,
    stale_leader_is_elected_late,
)
