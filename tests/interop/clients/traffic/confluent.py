"""Traffic of librdkafka by confluent-kafka: its admin client, transactions, groups."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    Producer,
    TopicPartition,
    libversion,
    version,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)

from tests.interop.clients.probe import bootstrap_servers, run
from tests.interop.clients.traffic.orders import (
    BATCH,
    COUNT,
    MORE,
    PARTITIONS,
    RETENTION,
    SECONDS,
    TRANSACTIONS,
    key,
    until,
    value,
)

NAME = "librdkafka"
TOPIC = "librdkafka-orders"
GROUPS = {"classic": "librdkafka-readers", "consumer": "librdkafka-watchers"}
LEDGER = "librdkafka-ledger"
FIRST = TopicPartition(TOPIC, 0)


def config(**more: object) -> dict[str, object]:
    """A client's configuration; underscores stand for dots."""
    given = {name.replace("_", "."): each for name, each in more.items()}
    return {"bootstrap.servers": bootstrap_servers(), "client.id": NAME, **given}


admin = AdminClient(config())


def wait(futures: Mapping[Any, Future[Any]]) -> list[Any]:
    """Wait for all answers. Raises: KafkaException if one is an error."""
    return [future.result(SECONDS) for future in futures.values()]


def cluster() -> str:
    """The brokers."""
    found = admin.describe_cluster().result(SECONDS)
    assert len(found.cluster_id) == 22, found.cluster_id
    return f"{len(found.nodes)} brokers"


def topics() -> str:
    """A topic, with more partitions than at first."""
    wait(admin.create_topics([NewTopic(TOPIC, PARTITIONS - 1)]))
    until(lambda: len(_partitions()) == PARTITIONS - 1, "a topic")
    wait(admin.create_partitions([NewPartitions(TOPIC, PARTITIONS)]))
    until(lambda: len(_partitions()) == PARTITIONS, "partitions")
    return f"{PARTITIONS} partitions of {len(_partitions()[0].replicas)} replicas"


def _partitions() -> dict[int, Any]:
    return dict(admin.list_topics(TOPIC, timeout=SECONDS).topics[TOPIC].partitions)


def configs() -> str:
    """A property that is changed."""
    entry = ConfigEntry("retention.ms", RETENTION, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(
        ConfigResource.Type.TOPIC, TOPIC, incremental_configs=[entry]
    )
    wait(admin.incremental_alter_configs([resource]))
    until(lambda: _configs()["retention.ms"].value == RETENTION, "a changed property")
    return f"{len(_configs())} properties"


def _configs() -> dict[str, Any]:
    (found,) = wait(admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, TOPIC)]))
    return dict(found)


def _produce(count: int, *, is_idempotent: bool) -> str:
    """Send batches, each of them answered before the next."""
    producer = Producer(config(compression_type="lz4", enable_idempotence=is_idempotent))
    errors: list[Any] = []
    for number in range(count):
        producer.produce(
            TOPIC,
            value(NAME, number),
            key(number),
            on_delivery=lambda error, _: errors.append(error),
        )
        if number % BATCH == BATCH - 1:
            producer.flush(SECONDS)
    assert errors == [None] * count, errors
    return f"{count} records"


def transactions() -> str:
    """Each third of them is aborted; offsets are part of them."""
    producer = Producer(config(transactional_id="librdkafka-transactions"))
    consumer = Consumer(config(group_id=LEDGER))
    producer.init_transactions(SECONDS)
    for number in range(TRANSACTIONS):
        producer.begin_transaction()
        producer.produce(TOPIC, value(NAME, number), key(number))
        offsets = [TopicPartition(TOPIC, 0, number)]
        group = consumer.consumer_group_metadata()
        producer.send_offsets_to_transaction(offsets, group, SECONDS)
        if number % 3 == 2:
            producer.abort_transaction(SECONDS)
        else:
            producer.commit_transaction(SECONDS)
    consumer.close()
    return f"offset {_offsets(LEDGER)}"


def _offsets(group: str) -> int:
    """The sum of a group's offsets."""
    asked = ConsumerGroupTopicPartitions(group)
    (found,) = wait(admin.list_consumer_group_offsets([asked]))
    return sum(partition.offset for partition in found.topic_partitions)


def _consume(protocol: str) -> str:
    """Read everything as the member of a group, committing now and then."""
    more = config(group_id=GROUPS[protocol], group_protocol=protocol, fetch_wait_max_ms=200)
    started = config(auto_offset_reset="earliest", enable_auto_commit=False)
    consumer = Consumer({**more, **started, "max.partition.fetch.bytes": 100})
    consumer.subscribe([TOPIC])
    count = 0

    def read() -> bool:
        nonlocal count
        found = consumer.consume(BATCH, 1)
        count += len(found)
        if found:
            consumer.commit(asynchronous=False)
        return count >= COUNT + MORE

    until(read, "all records")
    consumer.close()
    return f"{count} records"


def groups() -> str:
    """The groups and their offsets, and where the partitions end."""
    found = admin.list_consumer_groups().result(SECONDS)
    assert set(GROUPS.values()) <= {group.group_id for group in found.valid}, found.valid
    described = wait(admin.describe_consumer_groups([*GROUPS.values()]))
    states = " and ".join(f"{group.type.name} {group.state.name}" for group in described)
    offsets = [_offsets(group) for group in GROUPS.values()]
    partitions = [TopicPartition(TOPIC, index) for index in range(PARTITIONS)]
    ends = wait(admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.latest())))
    assert offsets == [sum(end.offset for end in ends)] * 2, (offsets, ends)
    return f"{states}, offsets {offsets[0]}"


def delete() -> str:
    """Records, groups, and the topic."""
    wait(admin.delete_records([TopicPartition(TOPIC, 0, 5)]))
    wait(admin.delete_consumer_groups([*GROUPS.values()]))
    wait(admin.delete_topics([TOPIC]))
    until(lambda: TOPIC not in admin.list_topics(timeout=SECONDS).topics, "a topic that is gone")
    return "records, groups, topic"


if __name__ == "__main__":
    run(
        f"{version()} (librdkafka {libversion()[0]})",
        {
            "cluster": cluster,
            "topics": topics,
            "configs": configs,
            "produce": lambda: _produce(COUNT, is_idempotent=False),
            "idempotent": lambda: _produce(MORE, is_idempotent=True),
            "classic": lambda: _consume("classic"),
            "consumer": lambda: _consume("consumer"),
            "groups": groups,
            "transactions": transactions,
            "delete": delete,
        },
    )
