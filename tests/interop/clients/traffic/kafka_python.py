"""Traffic of kafka-python: its admin client, a producer, and a group."""

from __future__ import annotations

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic

from tests.interop.clients.traffic.orders import (
    BATCH,
    COUNT,
    PARTITIONS,
    key,
    servers,
    value,
)

NAME = "kafka-python"
TOPIC = "kafka-python-orders"
GROUP = "kafka-python-readers"


def produce() -> None:
    """Send batches, each of them answered before the next."""
    producer = KafkaProducer(bootstrap_servers=servers(), client_id=NAME, linger_ms=5)
    for number in range(COUNT):
        producer.send(TOPIC, value(NAME, number), key(number))
        if number % BATCH == BATCH - 1:
            producer.flush()
    producer.close()


def consume() -> None:
    """Read everything as the member of a group, committing each poll."""
    consumer = KafkaConsumer(
        TOPIC,
        bootstrap_servers=servers(),
        client_id=NAME,
        group_id=GROUP,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_partition_fetch_bytes=100,
    )
    count = 0
    while count < COUNT:
        count += sum(map(len, consumer.poll(timeout_ms=1000, max_records=BATCH).values()))
        consumer.commit()
    consumer.close()


def describe(admin: KafkaAdminClient) -> None:
    """Look at everything that an administrator looks at."""
    for _ in range(3):
        admin.describe_topics([TOPIC])
        admin.describe_cluster()
        admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, TOPIC)])
        admin.describe_metadata_quorum()
        admin.describe_features()
        admin.list_topics()


if __name__ == "__main__":
    client = KafkaAdminClient(bootstrap_servers=servers(), client_id=NAME)
    client.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])
    produce()
    consume()
    describe(client)
    client.delete_topics([TOPIC])
    client.close()
