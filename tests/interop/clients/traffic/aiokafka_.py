"""Traffic of aiokafka: its admin client, a producer, and a group."""

from __future__ import annotations

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from tests.interop.clients.traffic.orders import (
    BATCH,
    COUNT,
    PARTITIONS,
    ROUNDS,
    key,
    servers,
    value,
)

NAME = "aiokafka"
TOPIC = "aiokafka-orders"
GROUP = "aiokafka-readers"


async def produce() -> None:
    """Send batches, each of them answered before the next."""
    producer = AIOKafkaProducer(bootstrap_servers=servers(), client_id=NAME, linger_ms=5)
    await producer.start()
    for start in range(0, ROUNDS * BATCH, BATCH):
        sent = [
            await producer.send(TOPIC, value(NAME, number), key(number))
            for number in range(start, start + BATCH)
        ]
        await asyncio.gather(*sent)
    await producer.stop()


async def consume() -> None:
    """Read everything as the member of a group, committing each batch."""
    consumer = AIOKafkaConsumer(
        TOPIC,
        bootstrap_servers=servers(),
        client_id=NAME,
        group_id=GROUP,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_partition_fetch_bytes=100,
    )
    await consumer.start()
    count = 0
    while count < COUNT:
        found = await consumer.getmany(timeout_ms=1000, max_records=BATCH)
        count += sum(map(len, found.values()))
        await consumer.commit()
    await consumer.stop()


async def main() -> None:
    """Create a topic, use it, look at it, delete it."""
    admin = AIOKafkaAdminClient(bootstrap_servers=servers(), client_id=NAME)
    await admin.start()
    await admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])
    await produce()
    await consume()
    for _ in range(3):
        await admin.describe_topics([TOPIC])
        await admin.list_consumer_groups()
        await admin.describe_consumer_groups([GROUP])
        await admin.list_consumer_group_offsets(GROUP)
    await admin.delete_topics([TOPIC])
    await admin.close()


if __name__ == "__main__":
    asyncio.run(main())
