"""A test of your own with real brokers, whose control plane does what the test says.

``pytest examples/test_brokers.py``. The fixture `kraftwire_cluster` is there wherever kraftwire is
installed; without Java the test is skipped. Kafka is fetched by Maven at first use, unless the
environment's KRAFTWIRE_KAFKA names an installation.
"""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.testing import Cluster

kafka = pytest.importorskip("confluent_kafka")
kafka_admin = pytest.importorskip("confluent_kafka.admin")


def create_topic(servers: str, name: str) -> None:
    """Create a topic with two replicas, or raise what the cluster says against it."""
    admin = kafka_admin.AdminClient({"bootstrap.servers": servers})
    topic = kafka_admin.NewTopic(name, num_partitions=1, replication_factor=2)
    admin.create_topics([topic])[name].result(60)


def send(producer: Any) -> None:
    """Send a record, and wait until all in-sync replicas have it."""
    errors: list[Any] = []
    producer.produce("orders", b"one more", callback=lambda error, _: errors.append(error))
    producer.flush(60)
    assert errors == [None]


def test_a_producer_gets_through_a_bad_day(kraftwire_cluster: Cluster) -> None:
    """Replace the producer by your program, and see what it makes of this."""
    cluster, controller = kraftwire_cluster, kraftwire_cluster.controller
    producer = kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
    first, second = cluster.broker_ids

    # The controller refuses a topic, once.
    refused = controller.refuse("CreateTopics", "POLICY_VIOLATION", times=1)
    with refused, pytest.raises(kafka.KafkaException, match="POLICY_VIOLATION"):
        create_topic(cluster.bootstrap_servers, "orders")
    create_topic(cluster.bootstrap_servers, "orders")
    send(producer)

    # Another controller leads; nobody notices.
    former = controller.leader()
    assert controller.change_leader() != former
    send(producer)

    # A broker is fenced, whatever it says, and its way back takes a second longer than usual.
    with controller.delay("AlterPartition", 1, broker=first) as late:
        with controller.fence(second):
            assert controller.partitions("orders")[0].leader == first
            send(producer)
        late.wait()
    controller.wait_in_sync("orders")

    # The leader dies; its session ends, and the other one leads.
    cluster.kill(first)
    send(producer)
    assert controller.is_fenced(first)
    assert controller.partitions("orders")[0].isr == [second]
