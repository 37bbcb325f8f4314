"""The metrics of Kafka's controller on the Prometheus endpoint."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from kraftwire.errors import ApiError
from kraftwire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftwire.messages.partition_change_record import PartitionChangeRecord
from kraftwire.messages.partition_record import PartitionRecord
from kraftwire.messages.topic_record import TopicRecord
from kraftwire.node.controller_metrics import QueueMetrics, Times, snapshot_samples
from kraftwire.node.metrics import render
from kraftwire.protocol.error_codes import ErrorCode
from tests.support.nodes.stub import StubNode, batch_of, in_virtual_time
from tests.unit.controller.test_brokers import registration
from tests.unit.node.test_controller import leader

_CONTROLLER = "kafka_controller_kafkacontroller_"
_TOPIC = bytes(15) + b"\7"


def values(node: StubNode) -> dict[str, float]:
    """What Prometheus reads: values by name and labels."""
    lines = render(node.controller.samples()).decode().splitlines()
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}


def shown(node: StubNode, *names: str) -> list[float]:
    """The values of some metrics of KafkaController."""
    found = values(node)
    return [found[_CONTROLLER + name] for name in names]


def partition(index: int, leader: int, elr: list[int] | None = None) -> PartitionRecord:
    """A partition of brokers 7 and 8."""
    return PartitionRecord(
        topic_id=_TOPIC,
        partition_id=index,
        replicas=[7, 8],
        isr=[8] if leader >= 0 else [],
        leader=leader,
        eligible_leader_replicas=elr,
    )


def hold(node: StubNode) -> trio.Event:
    """Let nothing be written until the event is set."""
    release, append = trio.Event(), node.append

    async def held(*arguments: Any, **more: Any) -> int:
        await release.wait()
        return await append(*arguments, **more)

    node.append = held  # type: ignore[method-assign]
    return release


async def register(node: StubNode, broker_id: int) -> None:
    """Register a broker."""
    own = (1000 + broker_id).to_bytes(16, "big")
    request = registration(broker_id=broker_id, log_dirs=[own], incarnation_id=own)
    await node.controller.register_broker(request, 4)


def test_topics_and_partitions_are_counted_on_every_node() -> None:
    """C-MET-1: they come from the committed records, and follow each change."""
    node = StubNode()
    records = [
        (TopicRecord(name="a", topic_id=_TOPIC), 0),
        *((partition(index, leader), 1) for index, leader in enumerate((7, 8, -1))),
    ]
    node.commit(batch_of(records, 0, timestamp=1234))
    names = (
        "globaltopiccount",
        "globalpartitioncount",
        "offlinepartitionscount",
        "preferredreplicaimbalancecount",
        "lastappliedrecordtimestamp",
        "lastcommittedrecordoffset",
    )
    assert shown(node, *names) == [1, 3, 1, 2, 1234, 3]
    change = PartitionChangeRecord(topic_id=_TOPIC, partition_id=2, leader=7)
    node.commit(batch_of([(change, 0)], 4))
    assert shown(node, *names[:4]) == [1, 3, 0, 1]


@pytest.mark.parametrize(
    ("elr", "recovery", "name"),
    [
        ([7], -1, "electionfromeligibleleaderreplicas"),
        (None, 1, "uncleanleaderelections"),
    ],
)
def test_elections_that_may_lose_records_are_counted(
    elr: list[int] | None, recovery: int, name: str
) -> None:
    """C-MET-1: clean elections count as neither."""
    node = StubNode()
    clean = PartitionChangeRecord(topic_id=_TOPIC, partition_id=1, leader=8)
    change = PartitionChangeRecord(
        topic_id=_TOPIC, partition_id=0, leader=7, leader_recovery_state=recovery
    )
    records = [
        (TopicRecord(name="a", topic_id=_TOPIC), 0),
        (partition(0, -1, elr), 2),
        (partition(1, 7), 2),
    ]
    node.commit(batch_of([*records, (clean, 0), (change, 0)], 0))
    found = values(node)
    counts = {key: value for key, value in found.items() if "_controllerstats_" in key}
    assert counts.pop(f"kafka_controller_controllerstats_{name}_total") == 1
    assert [*counts.values()] == [0]


@in_virtual_time
async def test_brokers_are_counted_by_state_and_heartbeat() -> None:
    """C-MET-1: the active controller alone knows of heartbeats, up to the end of a session."""
    async with leader(session_timeout_ms=3000) as node:
        await register(node, 7)
        epoch = node.image.brokers[7].epoch
        names = ("activecontrollercount", "fencedbrokercount", "activebrokercount")
        state = 'brokerregistrationstate{broker="7"}'
        assert shown(node, *names, state) == [1, 1, 0, 10]
        beat = BrokerHeartbeatRequest(
            broker_id=7, broker_epoch=epoch, current_metadata_offset=epoch
        )
        await node.controller.heartbeat(beat)
        assert shown(node, *names, state) == [1, 0, 1, 30]
        await trio.sleep(1)
        since = 'timesincelastheartbeatreceivedms{broker="7"}'
        assert shown(node, since) == [1000]
        node.controller.leadership(2, 2, node.raft.end_offset)
        assert shown(node, "activecontrollercount", "newactivecontrollerscount") == [0, 2]
        assert _CONTROLLER + since not in values(node)


@in_virtual_time
async def test_a_heartbeat_that_waits_too_long_is_counted_and_keeps_its_broker() -> None:
    """C-DL-2: its broker tries again, and must not be fenced for the controller's slowness."""
    async with leader(session_timeout_ms=3000, heartbeat_interval_ms=2000) as node:
        await register(node, 7)
        epoch = node.image.brokers[7].epoch
        beat = BrokerHeartbeatRequest(
            broker_id=7, broker_epoch=epoch, current_metadata_offset=epoch
        )
        await node.controller.heartbeat(beat)
        release = hold(node)
        refused: list[int] = []

        async def late() -> None:
            with pytest.raises(ApiError) as caught:
                await node.controller.heartbeat(beat)
            refused.append(caught.value.code)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(register, node, 8)
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(late)
            await trio.sleep(2.5)
            release.set()
        assert refused == [ErrorCode.REQUEST_TIMED_OUT]
        names = ("timedoutbrokerheartbeatcount", "eventqueueoperationstimedoutcount")
        assert shown(node, *names) == [1, 1]
        await trio.sleep(2.9)
        assert [broker.id for broker in node.image.alive_brokers] == [7]
        await trio.sleep(0.2)
        assert not node.image.alive_brokers


@in_virtual_time
async def test_the_queue_shows_how_long_steps_wait_and_take() -> None:
    """C-MET-1: one step commits slowly, and the next one waits for it."""
    async with leader() as node:
        values(node)
        await trio.sleep(1)
        release = hold(node)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(register, node, 7)
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(register, node, 8)
            await trio.sleep(3)
            release.set()
        found = values(node)
        events = "kafka_controller_controllereventmanager_"
        assert found[events + 'eventqueuetimems{quantile="0.99"}'] == 3000
        assert found[events + 'eventqueueprocessingtimems{quantile="0.99"}'] == 3000
        assert found[events + "eventqueueprocessingtimems_count"] == 2
        assert found[events + "avgidleratio"] == 0.25


def test_idleness_is_measured_from_one_scrape_to_the_next() -> None:
    """An idle time that lasts counts on both sides of a scrape."""
    metrics = QueueMetrics()
    assert metrics.idle_ratio(0) == 1
    metrics.begin_idle(50)
    assert metrics.idle_ratio(100) == 0.5
    metrics.end_idle(120)
    assert metrics.idle_ratio(200) == 0.2
    assert metrics.idle_ratio(200) == 1


def test_percentiles_forget_what_is_long_ago() -> None:
    """A slow start does not show for ever."""
    times = Times()
    times.add(5000)
    for _ in range(1024):
        times.add(1)
    samples = [*times.samples("A")]
    assert {sample.value for sample in samples[:-1]} == {1}
    assert samples[-1].value == 1025


def test_a_snapshot_shows_its_size_and_age() -> None:
    """C-MET-1: without one, the age is that of the node."""
    assert [sample.value for sample in snapshot_samples((700, 1000), 4000)] == [700, 3000]
    assert [sample.value for sample in snapshot_samples(None, 4000)] == [0, 4000]
