"""Bugs of elections: who may stand, who must help, and who belongs to the cluster at all."""

from __future__ import annotations

from kraftwire.messages.fetch_snapshot_request import FetchSnapshotRequest
from kraftwire.raft import effects, events
from kraftwire.raft.config import RaftTimers
from kraftwire.raft.voters import ReplicaKey, Voter, VoterSet
from tests.history.putting_back import Edit, history
from tests.support.raft.cluster import Cluster
from tests.support.raft.lone import Lone
from tests.support.raft.messages import (
    LISTENER,
    begin,
    directory_id,
    end,
    endpoint,
    fetch,
    vote,
    voted,
)


@history(
    6,
    "KAFKA-18379",
    "R-ROLE-6, R-ROLE-9",
    Edit(
        "kraftwire.raft.transitions:maybe_transition",
        "if leader_id < 0 or leader_id == state.config.key.id:",
        "if leader_id < 0:",
    ),
    Edit(
        "kraftwire.raft.transitions:to_follower",
        'check(leader_id != state.config.key.id, "a replica cannot follow itself")',
        "pass",
    ),
    red="follows itself",
)
def test_a_resigned_leader_does_not_follow_itself() -> None:
    """Peers still name it as the leader, perhaps with more addresses than it knows."""
    lone = Lone()
    lone.lead()
    lone.handle(events.ResignRequested(lone.core.epoch))
    assert lone.core.role == "resigned"
    lone.request(begin(1, lone.core.epoch, listeners=(LISTENER, "OTHER")))
    assert lone.core.role != "follower", "follows itself"
    assert lone.core.role == "resigned"


@history(
    7,
    "KAFKA-17067",
    "R-ID-2, S18",
    Edit(
        "kraftwire.raft.voters:Voter.matches",
        "mine.directory_id == ZERO_UUID or mine.directory_id == key.directory_id",
        "True",
    ),
    red="stands for election without being a voter",
)
def test_a_node_with_another_directory_than_the_voters_does_not_stand() -> None:
    """The voter's log was on another disk: with this one, acknowledged records would be lost."""
    voters = VoterSet.of(
        *(Voter(ReplicaKey(one, directory_id(one)), (endpoint(one),)) for one in (1, 2, 3))
    )
    # The node of id 1 finds its disk empty, and so has another directory id.
    lone = Lone(key=ReplicaKey(1, b"a new, empty dir"), voters=voters)
    lone.wait(10_000)
    stood = [one.new for one in lone.all_of(effects.RoleChanged)]
    assert "prospective" not in stood, "stands for election without being a voter"


@history(
    8,
    "KAFKA-17641",
    "R-VOTE-6, R-ROLE-5",
    Edit(
        "kraftwire.raft.transitions:to_follower",
        "_become(state, new, reason)",
        "new.has_fetched = True\n_become(state, new, reason)",
    ),
    Edit(
        "kraftwire.raft.epochs:hears_no_leader",
        "return type(role) is not Leader",
        "return role.NAME not in (\"leader\", \"prospective\")",
    ),
    Edit(
        "kraftwire.raft.epochs:hears_no_leader",
        "return not role.has_fetched or silence >= timeout - timeout // 10",
        "return not role.has_fetched",
    ),
    red="nobody was elected",
)
def test_two_followers_of_a_dead_leader_do_not_refuse_each_other_for_ever() -> None:
    """A follower that went back to its leader has not reached it since, so it may help another."""
    cluster = Cluster([1, 2, 3], seed=3)
    cluster.start(1, 2, 3)
    cluster.run(4000)
    [leader] = cluster.leaders()
    cluster.kill(leader)
    limit = 2 * cluster.timers.fetch_timeout_ms
    assert cluster.run_until(lambda: bool(cluster.leaders()), limit), "nobody was elected"


@history(
    9,
    "KAFKA-20895",
    "R-END-3, R-VOTE-6",
    Edit(
        "kraftwire.raft.epoch_announcements:handle_end_request",
        "role.has_fetched = False",
        "pass",
    ),
    Edit(
        "kraftwire.raft.epochs:hears_no_leader",
        "return not role.has_fetched or silence >= timeout - timeout // 10",
        "return not role.has_fetched",
    ),
    red="more than one had to stand for election",
)
def test_the_first_successor_wins_at_once_among_five_voters() -> None:
    """Voters that wait for their turn know that the leader is gone and must not protect it."""
    cluster = Cluster([1, 2, 3, 4, 5], seed=2)
    cluster.start(1, 2, 3, 4, 5)
    cluster.run(4000)
    [leader] = cluster.leaders()
    cluster.trace.clear()
    cluster.stop(leader)
    cluster.run(3000)
    stood = [line for line in cluster.trace if "follower -> prospective" in line]
    assert len(stood) == 1, "more than one had to stand for election"
    assert len(cluster.leaders()) == 1


@history(
    10,
    "KafkaRaftClientTest",
    "R-SHUT-1, R-VOTE-6",
    Edit(
        "kraftwire.raft.elections:_decide_vote",
        "if partition.replica_id == state.config.key.id:",
        "if partition.replica_id == state.config.key.id or state.is_shutting_down:",
    ),
    red="the other voter was not elected",
)
def test_a_leader_that_shuts_down_votes_for_its_successor() -> None:
    """Of two voters both are needed to elect: the one that leaves must help the other first."""
    cluster = Cluster([1, 2], seed=2)
    cluster.start(1, 2)
    cluster.run(4000)
    [leader] = cluster.leaders()
    other = 3 - leader
    cluster.stop(leader)
    elected = cluster.run_until(lambda: cluster.leaders() == [other], 4000)
    assert elected, "the other voter was not elected"
    cluster.run(1000)
    assert leader not in cluster.nodes


@history(
    12,
    "KAFKA-17333",
    "R-LIS-6, S15",
    Edit("kraftwire.raft.listeners:Listeners.resigned", "self._leadership = None", "pass"),
    red="told that it leads after it resigned",
)
def test_a_resigned_leader_does_not_tell_its_state_machine_that_it_leads() -> None:
    """The state machine would begin to write as the active controller of an epoch that is over."""
    lone = Lone()
    lone.lead()
    lone.handle(events.ListenerRegistered(7))
    epoch = lone.core.epoch
    lone.request(fetch(2, 1, epoch, epoch))
    assert lone.core.high_watermark == 1
    lone.handle(events.ResignRequested(epoch))
    lone.handle(events.ListenerConsumed(7, lone.core.end_offset))
    told = [one for one in lone.all_of(effects.LeaderChanged) if one.epoch == epoch]
    assert not told, "told that it leads after it resigned"


@history(
    13,
    "KAFKA-12440",
    "R-VOTE-4, R-BEG-2, R-END-3",
    Edit(
        "kraftwire.raft.answers:cluster_id_differs",
        "return None not in (cluster_id, state.cluster_id) and cluster_id != state.cluster_id",
        "return False",
    ),
    red="took a request of another cluster",
)
def test_votes_and_announcements_of_another_cluster_are_refused() -> None:
    """A node that was moved with its address would depose leaders and follow strangers."""
    for request in (
        vote(2, 9, cluster_id="foreign"),
        begin(2, 9, cluster_id="foreign"),
        end(2, 9, cluster_id="foreign"),
    ):
        lone = Lone()
        answer = lone.request(request)
        assert lone.core.epoch == 0, "took a request of another cluster"
        assert answer.error_code == 104


@history(
    13,
    "KAFKA-12440",
    "R-FET-6, R-FSN-2",
    Edit(
        "kraftwire.raft.answers:cluster_id_differs",
        "return None not in (cluster_id, state.cluster_id) and cluster_id != state.cluster_id",
        "return False",
    ),
    red="served another cluster",
)
def test_fetches_of_another_cluster_are_refused() -> None:
    """A node of another cluster would append this cluster's records to its own."""
    lone = Lone()
    lone.lead()
    foreign = fetch(2, 1, lone.core.epoch, lone.core.epoch)
    foreign.cluster_id = "foreign"
    snapshot = FetchSnapshotRequest(cluster_id="foreign", replica_id=2)
    for request in (foreign, snapshot):
        assert lone.request(request).error_code == 104, "served another cluster"


@history(
    14,
    "KAFKA-16529",
    "R-RESP-9, R-VOTE-2",
    Edit(
        "kraftwire.raft.responses:_failed",
        "state.failed(sent)",
        "state.peers.sent(sent.destination.key, 1 << 40)",
    ),
    red="was not asked again",
)
def test_a_voter_that_answers_with_an_error_is_asked_again() -> None:
    """A peer that has another voter set for a moment must not be ignored for ever."""
    lone = Lone(voters=(1, 2), timers=RaftTimers(election_timeout_ms=5000))
    lone.now = lone.core.deadline_ms or 0
    lone.handle(events.TimerExpired())
    inconsistent_voter_set = 94
    lone.answer(lone.last_request, voted(0, error=inconsistent_voter_set))
    count = len(lone.requests)
    lone.wait(1000)
    assert len(lone.requests) > count, "was not asked again"
    lone.answer(lone.last_request, voted(0, is_granted=True))
    assert lone.core.role == "candidate"
