"""confluent-kafka, that is librdkafka: metadata, cluster, and a consumer by assignment."""

from __future__ import annotations

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition, libversion, version
from confluent_kafka.admin import AdminClient

from tests.interop.clients.probe import (
    METADATA_TOPIC,
    READ_COUNT,
    bootstrap_servers,
    check_records,
    login,
    run,
)

_SECONDS = 20


def _config(**more: object) -> dict[str, object]:
    found = login()
    plain = {"bootstrap.servers": bootstrap_servers(), "client.id": "probe", **more}
    if found is None:
        return plain
    return plain | {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": found.ca,
        "sasl.mechanism": found.mechanism,
        "sasl.username": found.user,
        "sasl.password": found.password,
    }


def connect() -> str:
    """The cluster and its brokers."""
    admin = AdminClient(_config())  # the answer arrives only while the client exists
    cluster = admin.describe_cluster().result(_SECONDS)
    assert len(cluster.nodes) == 3, cluster.nodes
    assert len(cluster.cluster_id) == 22, cluster.cluster_id
    return "3 brokers"


def describe() -> str:
    """The quorum's topic; the client has no call for the quorum itself."""
    metadata = AdminClient(_config()).list_topics(timeout=_SECONDS)
    partition = metadata.topics[METADATA_TOPIC].partitions[0]
    assert partition.leader in (1, 2, 3), partition.leader
    assert sorted(partition.replicas) == [1, 2, 3], partition.replicas
    return "topic, its leader"


def read() -> str:
    """The quorum's topic from its beginning."""
    # The group is a formality: nothing joins it and nothing is committed.
    consumer = Consumer(_config(**{"group.id": "probe", "enable.auto.commit": False}))
    consumer.assign([TopicPartition(METADATA_TOPIC, 0, OFFSET_BEGINNING)])
    records = []
    while len(records) < READ_COUNT and (message := consumer.poll(_SECONDS)) is not None:
        assert message.error() is None, message.error()
        records.append((message.offset(), message.value()))
    consumer.close()
    return check_records(records)


if __name__ == "__main__":
    name = f"{version()} (librdkafka {libversion()[0]})"
    run(name, {"connect": connect, "describe": describe, "read": read})
