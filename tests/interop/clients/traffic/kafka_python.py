"""Traffic of kafka-python: its admin client, producers, transactions, and a group."""

from __future__ import annotations

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition, __version__
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.structs import OffsetAndMetadata

from tests.interop.clients.probe import bootstrap_servers, run
from tests.interop.clients.traffic.orders import (
    BATCH,
    COUNT,
    MORE,
    PARTITIONS,
    RETENTION,
    TRANSACTIONS,
    feature_levels,
    key,
    until,
    value,
)

NAME = "kafka-python"
TOPIC = "kafka-python-orders"
GROUP = "kafka-python-readers"
LEDGER = "kafka-python-ledger"
CONFIG = {"bootstrap_servers": bootstrap_servers(), "client_id": NAME}
FIRST = TopicPartition(TOPIC, 0)

admin = KafkaAdminClient(**CONFIG)


def cluster() -> str:
    """The brokers."""
    found = admin.describe_cluster()
    assert len(found["cluster_id"]) == 22, found
    return f"{len(found['brokers'])} brokers"


def quorum() -> str:
    """The voters."""
    (partition,) = admin.describe_metadata_quorum()["topics"][0]["partitions"]
    voters = [voter["replica_id"] for voter in partition["current_voters"]]
    assert partition["leader_id"] in voters, partition
    return f"{len(voters)} voters"


def features() -> str:
    """The finalized features."""
    found = admin.describe_features().items()
    return feature_levels({name: one["finalized"][1] for name, one in found if "finalized" in one})


def topics() -> str:
    """A topic, with more partitions than at first."""
    admin.create_topics({TOPIC: {"num_partitions": PARTITIONS - 1}}, wait_for_metadata=True)
    admin.create_partitions({TOPIC: PARTITIONS})
    until(lambda: len(_partitions()) == PARTITIONS, "partitions")
    assert TOPIC in admin.list_topics()
    return f"{PARTITIONS} partitions of {len(_partitions()[0]['replica_nodes'])} replicas"


def _partitions() -> list[dict[str, list[int]]]:
    (topic,) = admin.describe_topics([TOPIC])
    return list(topic["partitions"])


def configs() -> str:
    """A property that is changed."""
    wanted = {"retention.ms": RETENTION}
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, TOPIC, wanted)])
    until(lambda: RETENTION in str(_configs("modified")), "a changed property")
    return f"{len(_configs('all'))} properties"


def _configs(kind: str) -> dict[str, object]:
    asked = ConfigResource(ConfigResourceType.TOPIC, TOPIC)
    (found,) = admin.describe_configs([asked], config_filter=kind).values()
    return dict(found[TOPIC])


def _produce(count: int, *, is_idempotent: bool) -> str:
    """Send batches, each of them answered before the next."""
    producer = KafkaProducer(
        **CONFIG, linger_ms=5, acks="all", enable_idempotence=is_idempotent
    )
    for start in range(0, count, BATCH):
        sent = [
            producer.send(TOPIC, value(NAME, number), key(number))
            for number in range(start, start + BATCH)
        ]
        producer.flush()
        assert all(one.succeeded() for one in sent), [one.exception for one in sent]
    producer.close()
    return f"{count} records"


def classic() -> str:
    """Read everything as the member of a group, committing each poll."""
    consumer = KafkaConsumer(
        TOPIC,
        **CONFIG,
        group_id=GROUP,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_partition_fetch_bytes=100,
    )
    count = 0

    def read() -> bool:
        nonlocal count
        found = consumer.poll(timeout_ms=1000, max_records=BATCH)
        count += sum(map(len, found.values()))
        consumer.commit()
        return count >= COUNT + MORE

    until(read, "all records")
    consumer.close()
    return f"{count} records"


def groups() -> str:
    """The group and its offsets."""
    assert GROUP in str(admin.list_groups())
    state = admin.describe_groups([GROUP])[GROUP]["group_state"]
    offsets = admin.list_group_offsets([GROUP])[GROUP]
    total = sum(one.offset for one in offsets.values())
    return f"{state}, offsets {total}"


def transactions() -> str:
    """Each third of them is aborted; offsets are part of them."""
    producer = KafkaProducer(**CONFIG, transactional_id="kafka-python-transactions")
    producer.init_transactions()
    for number in range(TRANSACTIONS):
        producer.begin_transaction()
        producer.send(TOPIC, value(NAME, number), key(number))
        producer.send_offsets_to_transaction({FIRST: OffsetAndMetadata(number, "", -1)}, LEDGER)
        if number % 3 == 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    producer.close()
    (offset,) = admin.list_group_offsets([LEDGER])[LEDGER].values()
    return f"offset {offset.offset}"


def delete() -> str:
    """Records, the group, and the topic."""
    admin.delete_records({FIRST: 5})
    admin.delete_groups([GROUP])
    admin.delete_topics([TOPIC])
    until(lambda: TOPIC not in admin.list_topics(), "a topic that is gone")
    return "records, group, topic"


if __name__ == "__main__":
    run(
        __version__,
        {
            "cluster": cluster,
            "quorum": quorum,
            "features": features,
            "topics": topics,
            "configs": configs,
            "produce": lambda: _produce(COUNT, is_idempotent=False),
            "idempotent": lambda: _produce(MORE, is_idempotent=True),
            "classic": classic,
            "groups": groups,
            "transactions": transactions,
            "delete": delete,
        },
    )
    admin.close()
