"""Changes that are decided together give what they would give one after the other."""

from __future__ import annotations

from typing import Any

from kraftwire.controller import brokers
from kraftwire.controller.batches import QueuedStep, decide_batch, encoded, next_steps
from kraftwire.controller.sessions import Sessions
from kraftwire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftwire.messages.unregister_broker_request import UnregisterBrokerRequest
from tests.support.nodes.controlled_cluster import ControlledCluster


def _heartbeat(cluster: ControlledCluster, broker_id: int, **more: Any) -> QueuedStep:
    request = BrokerHeartbeatRequest(
        broker_id=broker_id,
        broker_epoch=cluster.image.brokers[broker_id].epoch,
        current_metadata_offset=cluster.image.highest_offset,
        **more,
    )
    sessions = Sessions(9000)
    return QueuedStep(
        lambda view, offset: brokers.heartbeat(
            view, sessions, request, next_offset=offset, now_ms=0
        ),
        frozenset({("broker", broker_id)}),
        None,
        lambda _: None,
    )


def _serve(cluster: ControlledCluster, *steps: QueuedStep) -> list[int]:
    """Serve steps until all are done; returns how many each batch had."""
    queue, sizes = dict(enumerate(steps)), []
    while queue:
        chosen = next_steps(queue, list(queue))
        batch = decide_batch(chosen, cluster.view, cluster.image.next_offset, 0)
        records = [record for _, result in batch.decided.values() for record in result.records]
        assert encoded(records) == batch.values
        cluster.replay(records)
        queue = batch.again | queue
        sizes.append(len(batch.decided))
    return sizes


def _expire(cluster: ControlledCluster, broker_id: int) -> None:
    sessions = Sessions(9000)
    sessions.touch(cluster.image.brokers[broker_id], -9000)
    cluster.do(brokers.fence_expired(cluster.view, sessions, 0))


def test_a_broker_that_comes_while_a_leader_goes_takes_its_place() -> None:
    """Decided on one state, neither would elect it, and the partition would stay without leader."""
    cluster = ControlledCluster(brokers=(1, 2))
    topic = cluster.topic("t", [1, 2], min_insync_replicas="2")
    _expire(cluster, 2)
    assert cluster.partition((topic, 0)).eligible_leader_replicas == [2]
    gone = _heartbeat(cluster, 1, want_fence=True)
    sizes = _serve(cluster, gone, _heartbeat(cluster, 2))
    assert cluster.partition((topic, 0)).leader == 2
    assert sizes == [1, 1]


def test_a_broker_that_goes_is_not_elected_by_one_that_comes() -> None:
    """Decided on one state, the partition would be led by a broker that is fenced."""
    cluster = ControlledCluster(brokers=(1, 2), has_elr=False)
    topic = cluster.topic("t", [2, 1])
    _expire(cluster, 2)
    _expire(cluster, 1)
    cluster.fence(1, is_fenced=False)
    request = UnregisterBrokerRequest(broker_id=1)
    gone = QueuedStep(
        lambda view, _: brokers.unregister_broker(view, request),
        frozenset({("broker", 1)}),
        None,
        lambda _: None,
    )
    _serve(cluster, gone, _heartbeat(cluster, 2))
    assert cluster.partition((topic, 0)).leader == -1


def test_a_crowd_without_partitions_shares_its_batches() -> None:
    """Two hundred brokers that start do not wait for two hundred commits."""
    cluster = ControlledCluster(brokers=range(1, 9))
    for broker_id in range(1, 9):
        cluster.fence(broker_id)
    assert _serve(cluster, *(_heartbeat(cluster, id) for id in range(1, 9))) == [8]
    assert len(cluster.image.alive_brokers) == 8
