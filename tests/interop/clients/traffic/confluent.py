"""Traffic of librdkafka by confluent-kafka: its admin client, transactions, and a group."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec

from tests.interop.clients.traffic.orders import BATCH, COUNT, PARTITIONS, key, servers, value

NAME = "librdkafka"
TOPIC = "librdkafka-orders"
GROUP = "librdkafka-readers"
SECONDS = 30


def config(**more: object) -> dict[str, object]:
    """A client's configuration; underscores stand for dots."""
    given = {name.replace("_", "."): each for name, each in more.items()}
    return {"bootstrap.servers": servers(), "client.id": NAME, **given}


def wait(futures: Mapping[Any, Future[Any]]) -> None:
    """Wait for all answers. Raises: KafkaException if one is an error."""
    for future in futures.values():
        future.result(SECONDS)


def produce() -> None:
    """Send batches, each of them answered before the next."""
    producer = Producer(config(compression_type="lz4", enable_idempotence=True))
    for number in range(COUNT):
        producer.produce(TOPIC, value(NAME, number), key(number))
        if number % BATCH == BATCH - 1:
            producer.flush(SECONDS)


def transact() -> None:
    """Some transactions, each third of them aborted."""
    producer = Producer(config(transactional_id="librdkafka-transactions"))
    consumer = Consumer(config(group_id="librdkafka-ledger"))
    producer.init_transactions(SECONDS)
    for number in range(12):
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


def consume() -> None:
    """Read everything as the member of a group, committing now and then."""
    more = config(group_id=GROUP, auto_offset_reset="earliest", enable_auto_commit=False)
    consumer = Consumer({**more, "max.partition.fetch.bytes": 100, "fetch.wait.max.ms": 200})
    consumer.subscribe([TOPIC])
    count = 0
    while count < COUNT:
        found = consumer.consume(BATCH, 1)
        count += len(found)
        if found:
            consumer.commit(asynchronous=False)
    consumer.close()


def describe(admin: AdminClient) -> None:
    """Look at everything that an administrator looks at."""
    partition = TopicPartition(TOPIC, 0)
    for _ in range(3):
        admin.list_topics(timeout=SECONDS)
        admin.describe_cluster().result(SECONDS)
        admin.list_consumer_groups().result(SECONDS)
        wait(admin.describe_consumer_groups([GROUP]))
        wait(admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, TOPIC)]))
        wait(admin.list_offsets({partition: OffsetSpec.latest()}))


def main() -> None:
    """Create a topic, use it, look at it, delete it."""
    admin = AdminClient(config())
    wait(admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)]))
    produce()
    transact()
    consume()
    describe(admin)
    wait(admin.delete_records([TopicPartition(TOPIC, 0, 5)]))
    wait(admin.delete_consumer_groups([GROUP]))
    wait(admin.delete_topics([TOPIC]))


if __name__ == "__main__":
    main()
