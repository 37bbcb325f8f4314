"""Pre-votes that reach a resigned node as its own time runs out, or a peer without pre-votes."""

from __future__ import annotations

from dataclasses import replace

from kraftwire.messages.vote_request import PartitionData, TopicData, VoteRequest
from kraftwire.protocol.topic_names import METADATA_TOPIC
from kraftwire.raft.effects import Destination, SendRequest
from kraftwire.raft.events import ResignRequested
from kraftwire.sim.clock import MS
from kraftwire.sim.cluster import Cluster
from kraftwire.sim.network import Call
from kraftwire.sim.plan import Plan, Weather
from kraftwire.sim.replicas import endpoint

_SECOND = 1000 * MS

PLAN = Plan(1, 3, 0, 10_000, Weather(), (), appends_per_second=0.5, skew_ms=(0,))


def _led(plan: Plan = PLAN) -> Cluster:
    """Voters without any trouble, one of which leads; three by default."""
    cluster = Cluster(plan)
    for machine in cluster.machines.values():
        machine.start()
    while not cluster.leaders():
        cluster.queue.run_until(cluster.queue.now + _SECOND // 10)
    return cluster


def test_a_pre_vote_is_not_blamed_for_a_resigned_nodes_own_deadline() -> None:
    """The epoch that the deadline raises is not blamed on the pre-vote of the same step (S19)."""
    cluster = _led()
    leader = cluster.leaders()[0]
    process = leader.process
    assert process is not None
    epoch = process.core.epoch
    process.handle(ResignRequested(epoch))
    assert process.core.role == "resigned"
    due = process.core.deadline_ms
    assert due is not None
    cluster.queue.now = process.clock.when(due)
    asker = next(node for node in cluster.machines if node != leader.id)
    partition = PartitionData(
        replica_epoch=epoch, replica_id=asker, replica_directory_id=bytes(16), pre_vote=True
    )
    topic = TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    request = VoteRequest(
        cluster_id=process.core.cluster_id, voter_id=leader.id, topics=[topic]
    )
    at = endpoint(leader.id)
    sent = SendRequest(1, Destination(leader.id, at.host, at.port), request, 2000)
    leader.receive(Call(cluster.machines[asker], leader.id, sent, 2), request)
    assert process.core.epoch > epoch


def test_a_peer_that_does_not_know_pre_votes_says_so() -> None:
    """The request fails with UNSUPPORTED_VERSION soon, and does not time out at once (R-VOTE-10).

    A deadline that has passed would be noticed first where nothing else is in flight.
    """
    old: dict[int, dict[int, int]] = {2: {VoteRequest.API_KEY: 1}}
    cluster = Cluster(replace(PLAN, old_peers=old))
    machine = cluster.machines[1]
    machine.start()
    partition = PartitionData(replica_epoch=1, replica_id=1, pre_vote=True)
    topic = TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    at = endpoint(2)
    request = VoteRequest(topics=[topic])
    sent = SendRequest(77, Destination(2, at.host, at.port), request, 2000)
    call = cluster.network.send(machine, sent)
    assert cluster.coverage.counts["pre-vote unknown to a peer"] == 1
    assert call.deadline > cluster.queue.now + _SECOND
