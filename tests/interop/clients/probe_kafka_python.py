"""kafka-python: its own admin calls for the quorum, and a consumer by assignment."""

from __future__ import annotations

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition, __version__

from tests.interop.clients.probe import (
    METADATA_TOPIC,
    READ_COUNT,
    bootstrap_servers,
    check_records,
    login,
    run,
)


def _config() -> dict[str, object]:
    found = login()
    if found is None:
        return {"bootstrap_servers": bootstrap_servers(), "client_id": "probe"}
    return {
        "bootstrap_servers": bootstrap_servers(),
        "client_id": "probe",
        "security_protocol": "SASL_SSL",
        "ssl_cafile": found.ca,
        "sasl_mechanism": found.mechanism,
        "sasl_plain_username": found.user,
        "sasl_plain_password": found.password,
    }


def connect() -> str:
    """The cluster and its brokers."""
    admin = KafkaAdminClient(**_config())
    cluster = admin.describe_cluster()
    admin.close()
    assert len(cluster["brokers"]) == 3, cluster
    assert len(cluster["cluster_id"]) == 22, cluster
    return "3 brokers"


def describe() -> str:
    """The quorum, and its topic."""
    admin = KafkaAdminClient(**_config())
    quorum = admin.describe_metadata_quorum()
    partition = quorum["topics"][0]["partitions"][0]
    (topic,) = admin.describe_topics([METADATA_TOPIC])
    features = admin.describe_features()
    admin.close()
    assert len(partition["current_voters"]) == 3, partition
    assert topic["partitions"][0]["leader_id"] == partition["leader_id"], (topic, partition)
    assert "metadata.version" in features, features
    return "quorum of 3, its leader; topic; features"


def read() -> str:
    """The quorum's topic from its beginning."""
    consumer = KafkaConsumer(
        **_config(),
        enable_auto_commit=False,
        consumer_timeout_ms=20_000,
    )
    partition = TopicPartition(METADATA_TOPIC, 0)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    records = []
    for record in consumer:
        records.append((record.offset, record.value))
        if len(records) == READ_COUNT:
            break
    consumer.close()
    return check_records(records)


if __name__ == "__main__":
    run(__version__, {"connect": connect, "describe": describe, "read": read})
