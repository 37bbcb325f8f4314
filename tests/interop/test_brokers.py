"""Real brokers on controllers of ours: their whole life, with clients at work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("confluent_kafka")

import confluent_kafka
from confluent_kafka import admin as admin_module

from kraftwire.controller.cluster import RESERVED_DIRECTORIES
from kraftwire.controller.image import MetadataImage
from tests.failures.senders import NumberProducer, Sender, contents
from tests.support.kafka.java import run_kafka_tool
from tests.support.kafka.mixed_quorum import (
    JAVA,
    JAVA_3_9,
    JAVA_4_1,
    JAVA_4_3,
    OURS,
    MixedQuorum,
    wait_until,
)

BROKERS = (101, 102)
TOPIC = "orders"

# Short sessions, so that a killed broker is fenced soon; one internal partition each.
PROPERTIES: Mapping[str, object] = {
    "broker.session.timeout.ms": 3000,
    "broker.heartbeat.interval.ms": 500,
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 2,
}


@pytest.fixture(params=[(1,), (1, 2, 3)], ids=["one controller", "three controllers"])
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MixedQuorum]:
    """Controllers of ours and two brokers, all running."""
    controllers = dict.fromkeys(request.param, OURS)
    brokers = dict.fromkeys(BROKERS, JAVA)
    with MixedQuorum(tmp_path, controllers, PROPERTIES, brokers=brokers) as quorum:
        quorum.start(*controllers)
        for broker_id in BROKERS:
            quorum.members[broker_id].start()
        for broker_id in BROKERS:
            quorum.members[broker_id].wait_ready()
        yield quorum


class Producer:
    """Sends the numbers from 0 on, each of which has to be acknowledged."""

    def __init__(self, servers: str) -> None:
        self._producer = NumberProducer(servers, TOPIC)
        self.sent = 0

    def send(self, count: int) -> None:
        """Send the next numbers."""
        for _ in range(count):
            assert self._producer.send(self.sent) == [None]
            self.sent += 1


def send_by_transactions(servers: str, committed: int, aborted: int) -> None:
    """Send a number in a transaction that is committed, and another in one that is aborted."""
    settings = {"bootstrap.servers": servers, "transactional.id": "sender", "log_level": 0}
    producer = confluent_kafka.Producer(settings)
    producer.init_transactions(60)
    for number, end in (
        (committed, producer.commit_transaction),
        (aborted, producer.abort_transaction),
    ):
        producer.begin_transaction()
        producer.produce(TOPIC, str(number))
        assert producer.flush(60) == 0
        end(60)


def read_all(servers: str, count: int, protocol: str = "classic") -> list[int]:
    """Read as a member of a group until so many records are there; returns the numbers, sorted."""
    settings = {
        "bootstrap.servers": servers,
        "group.id": f"readers-{protocol}",
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "log_level": 0,
    }
    consumer = confluent_kafka.Consumer(settings)
    consumer.subscribe([TOPIC])
    found: list[int] = []
    try:
        wait_until(lambda: _poll(consumer, found, count), f"all of {count} records")
        found += [int(one.value()) for one in consumer.consume(10, 1.0) if not one.error()]
    finally:
        consumer.close()
    return sorted(found)


def _poll(consumer: Any, found: list[int], count: int) -> bool:
    found += [int(one.value()) for one in consumer.consume(500, 1.0) if not one.error()]
    return len(found) >= count


def test_brokers_live_on_controllers_of_ours(cluster: MixedQuorum) -> None:
    """Topics, a broker that is killed and comes back, one that is stopped, a new controller:
    everything that was acknowledged is read once, and every replica is in sync again."""
    servers = ",".join(f"127.0.0.1:{cluster.members[each].port}" for each in BROKERS)
    admin = with_topic(servers)
    producer = Producer(servers)
    producer.send(50)

    cluster.members[102].kill()
    producer.send(50)
    assert leaders(admin) == {101}
    cluster.members[102].start()
    cluster.members[102].wait_ready()
    wait_until(lambda: in_sync(admin) == 3, "replicas that are in sync again")

    cluster.members[101].stop()
    producer.send(50)
    assert leaders(admin) == {102}
    cluster.members[101].start()
    cluster.members[101].wait_ready()
    wait_until(lambda: in_sync(admin) == 3, "replicas that are in sync again")

    if len(cluster.controllers) > 1:
        leader = cluster.leader()
        cluster.members[leader].kill()
        producer.send(50)
        assert cluster.leader() != leader
        cluster.start(leader)
        resized = admin_module.NewPartitions(TOPIC, 5)
        admin.create_partitions([resized])[TOPIC].result(60)
        wait_until(lambda: in_sync(admin) == 5, "new partitions")
        check_no_broker_was_fenced(cluster, leader)
    assert read_all(servers, producer.sent) == list(range(producer.sent))
    admin.delete_topics([TOPIC])[TOPIC].result(60)
    wait_until(lambda: TOPIC not in admin.list_topics(timeout=10).topics, "a topic that is gone")


@pytest.mark.parametrize(
    ("kind", "release"),
    [
        (JAVA_3_9, "3.3-IV3"),
        (JAVA_3_9, "3.9-IV0"),
        (JAVA_4_1, "4.1-IV1"),
        (JAVA_4_3, "4.3-IV0"),
    ],
)
@pytest.mark.parametrize("is_dynamic", [False, True], ids=["kraft.version 0", "kraft.version 1"])
def test_brokers_of_older_releases(
    tmp_path: Path, kind: str, release: str, is_dynamic: bool
) -> None:
    """At metadata versions that they know, with transactions and the protocols of groups that they
    have. Metadata reaches them as soon as it is committed, so a client that connects at once finds
    the broker."""
    ones = ("offsets.topic.replication.factor", "transaction.state.log.replication.factor")
    more = ("transaction.state.log.min.isr", "transaction.state.log.num.partitions")
    properties = PROPERTIES | dict.fromkeys((*ones, *more), 1)
    options: Any = {
        "brokers": {101: kind},
        "is_dynamic": is_dynamic,
        "format_options": ("--release-version", release),
    }
    with MixedQuorum(tmp_path, {1: OURS}, properties, **options) as cluster:
        cluster.start(1)
        broker = cluster.members[101]
        broker.start()
        broker.wait_ready()
        servers = f"127.0.0.1:{broker.port}"
        admin = admin_module.AdminClient({"bootstrap.servers": servers, "log_level": 0})
        admin.create_topics([admin_module.NewTopic(TOPIC, 2, 1)])[TOPIC].result(60)
        producer = Producer(servers)
        producer.send(20)
        send_by_transactions(servers, committed=20, aborted=1000)
        for protocol in ("classic",) if kind == JAVA_3_9 else ("classic", "consumer"):
            assert read_all(servers, 21, protocol) == list(range(21))
        assert broker.complaints() == []


def test_levels_rise_under_brokers_that_stay(tmp_path: Path) -> None:
    """From the first level to the newest, under a producer: the brokers register again with their
    directories, and report where replicas are whose partitions change."""
    options: Any = {
        "brokers": dict.fromkeys(BROKERS, JAVA),
        "format_options": ("--release-version", "3.3-IV3"),
    }
    with MixedQuorum(tmp_path, {1: OURS}, PROPERTIES, **options) as cluster:
        cluster.start()
        servers = cluster.bootstrap_servers
        admin = with_topic(servers)
        with Sender(servers, TOPIC) as sender:
            sender.wait_flow()
            for release in ("3.7-IV1", "3.7-IV4", "4.3"):
                tool = ("--bootstrap-server", servers, "upgrade", "--release-version", release)
                run_kafka_tool("org.apache.kafka.tools.FeatureCommand", *tool)
                sender.wait_flow()
            image = cluster.members[1].image
            wait_until(
                lambda: all(broker.log_dirs for broker in image().brokers.values()),
                "brokers that have told their directories",
                cluster.last_lines,
            )
            cluster.members[102].kill()
            cluster.members[102].start()
            cluster.members[102].wait_ready()
            sender.wait_flow()
        wait_until(lambda: in_sync(admin) == 3, "replicas that are in sync again")
        wait_until(lambda: has_directories(image()), "directories", cluster.last_lines)
        assert sender.failures == []
        assert image().metadata_version == 30
        assert image().features["eligible.leader.replicas.version"] == 1
        cluster.check_health()


@pytest.mark.slow
@pytest.mark.parametrize("other", [OURS, JAVA])
def test_the_levels_of_4_4_come_between_two_failovers(tmp_path: Path, other: str) -> None:
    """Under a producer, also where the third controller is one of Kafka's, which then leads; a
    controller is unregistered by Kafka's own tool (C-FEA-9, C-CREG-2)."""
    options: Any = {
        "brokers": dict.fromkeys(BROKERS, JAVA),
        "format_options": ("--release-version", "4.3"),
    }
    with MixedQuorum(tmp_path, {1: OURS, 2: OURS, 3: other}, PROPERTIES, **options) as cluster:
        cluster.start()
        servers = cluster.bootstrap_servers
        with_topic(servers)
        with Sender(servers, TOPIC) as sender:
            sender.wait_flow()
            fail_over(cluster)
            sender.wait_flow()
            # A voter that has just started tells the leader what it supports in a while.
            wait_until(lambda: is_raised(servers, "4.4"), "the new levels", cluster.last_lines)
            sender.wait_flow()
            fail_over(cluster)
            sender.wait_flow()
        image = cluster.members[1].image
        wait_until(lambda: image().metadata_version == 33, "the new level", cluster.last_lines)
        assert image().features["share.version"] == 2
        print(f"{len(sender.sends)} sends, the longest took {sender.worst(0):.1f} s")
        assert sender.failures == []
        assert contents(servers, TOPIC) == Counter(sender.acknowledged)
        for node_id, text in ((9, "9 is not"), (cluster.leader(), "unregister itself")):
            tool = ("unregister-controller", "--bootstrap-server", servers, "--id", str(node_id))
            result = run_kafka_tool("org.apache.kafka.tools.ClusterTool", *tool, check=False)
            assert result.returncode == 1
            assert text in result.stderr
        cluster.check_health()


def with_topic(servers: str) -> Any:
    """Create the topic; returns the client for administrators."""
    admin = admin_module.AdminClient({"bootstrap.servers": servers, "log_level": 0})
    topic = admin_module.NewTopic(TOPIC, num_partitions=3, replication_factor=2)
    admin.create_topics([topic])[TOPIC].result(60)
    return admin


def is_raised(servers: str, release: str) -> bool:
    """Whether kafka-features raises all levels to those of a release."""
    tool = ("--bootstrap-server", servers, "upgrade", "--release-version", release)
    command = "org.apache.kafka.tools.FeatureCommand"
    return run_kafka_tool(command, *tool, check=False).returncode == 0


def fail_over(cluster: MixedQuorum) -> None:
    """Kill the leader, wait for another one, and start the first again."""
    leader = cluster.leader()
    cluster.members[leader].kill()
    cluster.leader(among=[each.node_id for each in cluster.controllers if each.node_id != leader])
    cluster.members[leader].start()
    cluster.members[leader].wait_ready()


def has_directories(image: MetadataImage) -> bool:
    """Whether it is known where all replicas are."""
    partitions = [partition for _, partition in image.topics.all()]
    return all(
        each.directories and min(each.directories) > RESERVED_DIRECTORIES for each in partitions
    )


def leaders(admin: Any) -> set[int]:
    """The leaders of the topic's partitions."""
    return {one.leader for one in partitions(admin)}


def in_sync(admin: Any) -> int:
    """How many partitions of the topic have all of their replicas in sync."""
    return sum(len(one.isrs) == 2 for one in partitions(admin))


def partitions(admin: Any) -> list[Any]:
    """The partitions of the topic."""
    return list(admin.list_topics(TOPIC, timeout=30).topics[TOPIC].partitions.values())


def check_no_broker_was_fenced(cluster: MixedQuorum, killed: int) -> None:
    """A new controller gives every broker a fresh session (C-HB-1)."""
    for member in cluster.controllers:
        if member.node_id != killed:
            lines = member.lines
            active = [i for i, line in enumerate(lines) if "event=controller-active" in line]
            later = lines[active[-1] :] if active else []
            assert not [line for line in later if "brokers-fenced" in line]
