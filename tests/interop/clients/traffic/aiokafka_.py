"""Traffic of aiokafka: its admin client, producers, transactions, and a group."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition, __version__
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

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
    value,
)

NAME = "aiokafka"
TOPIC = "aiokafka-orders"
GROUP = "aiokafka-readers"
LEDGER = "aiokafka-ledger"
CONFIG = {"bootstrap_servers": bootstrap_servers(), "client_id": NAME}
FIRST = TopicPartition(TOPIC, 0)

Administration = Callable[[AIOKafkaAdminClient], Coroutine[Any, Any, str]]


def administer(step: Administration) -> Callable[[], str]:
    """A step with an admin client of its own."""

    async def take() -> str:
        admin = AIOKafkaAdminClient(**CONFIG)
        await admin.start()
        try:
            return await asyncio.wait_for(step(admin), SECONDS)
        finally:
            await admin.close()

    return lambda: asyncio.run(take())


async def cluster(admin: AIOKafkaAdminClient) -> str:
    """The brokers."""
    found = await admin.describe_cluster()
    assert len(found["cluster_id"]) == 22, found
    return f"{len(found['brokers'])} brokers"


async def topics(admin: AIOKafkaAdminClient) -> str:
    """A topic, with more partitions than at first."""
    brokers = len((await admin.describe_cluster())["brokers"])
    check(await admin.create_topics([NewTopic(TOPIC, PARTITIONS - 1, brokers)]))
    check(await admin.create_partitions({TOPIC: NewPartitions(PARTITIONS)}))
    while len((await describe(admin))["partitions"]) < PARTITIONS:
        pass
    replicas = (await describe(admin))["partitions"][0]["replicas"]
    return f"{PARTITIONS} partitions of {len(replicas)} replicas"


def check(answer: Any) -> None:
    """An answer's elements begin with a name and an error code. Raises: AssertionError."""
    (element,) = getattr(answer, "topic_errors", None) or answer.topic_error_codes
    assert element[1] == 0, answer


async def describe(admin: AIOKafkaAdminClient) -> dict[str, Any]:
    """The topic."""
    (topic,) = await admin.describe_topics([TOPIC])
    return dict(topic)


async def configs(admin: AIOKafkaAdminClient) -> str:
    """A property that is changed."""
    wanted = {"retention.ms": RETENTION}
    await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, TOPIC, wanted)])
    found: dict[str, str] = {}
    while found.get("retention.ms") != RETENTION:
        (answer,) = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, TOPIC)])
        found = {entry[0]: entry[1] for entry in answer.resources[0][4]}
    return f"{len(found)} properties"


async def produce(count: int, *, is_idempotent: bool) -> str:
    """Send batches, each of them answered before the next."""
    producer = AIOKafkaProducer(**CONFIG, linger_ms=5, enable_idempotence=is_idempotent)
    await producer.start()
    for start in range(0, count, BATCH):
        sent = [
            await producer.send(TOPIC, value(NAME, number), key(number))
            for number in range(start, start + BATCH)
        ]
        await asyncio.gather(*sent)
    await producer.stop()
    return f"{count} records"


async def classic() -> str:
    """Read everything as the member of a group, committing each batch."""
    consumer = AIOKafkaConsumer(
        TOPIC,
        **CONFIG,
        group_id=GROUP,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_partition_fetch_bytes=100,
    )
    await consumer.start()
    count = 0
    async with asyncio.timeout(SECONDS):
        while count < COUNT + MORE:
            found = await consumer.getmany(timeout_ms=1000, max_records=BATCH)
            count += sum(map(len, found.values()))
            await consumer.commit()
    await consumer.stop()
    return f"{count} records"


async def groups(admin: AIOKafkaAdminClient) -> str:
    """The group and its offsets."""
    assert GROUP in str(await admin.list_consumer_groups())
    (answer,) = await admin.describe_consumer_groups([GROUP])
    offsets = await admin.list_consumer_group_offsets(GROUP)
    total = sum(one.offset for one in offsets.values())
    return f"{answer.groups[0][2]}, offsets {total}"


async def transactions(admin: AIOKafkaAdminClient) -> str:
    """Each third of them is aborted; offsets are part of them."""
    producer = AIOKafkaProducer(**CONFIG, transactional_id="aiokafka-transactions")
    await producer.start()
    for number in range(TRANSACTIONS):
        await producer.begin_transaction()
        await producer.send_and_wait(TOPIC, value(NAME, number), key(number))
        await producer.send_offsets_to_transaction({FIRST: number}, LEDGER)
        if number % 3 == 2:
            await producer.abort_transaction()
        else:
            await producer.commit_transaction()
    await producer.stop()
    (offset,) = (await admin.list_consumer_group_offsets(LEDGER)).values()
    return f"offset {offset.offset}"


async def delete(admin: AIOKafkaAdminClient) -> str:
    """Records and the topic."""
    await admin.delete_records({FIRST: RecordsToDelete(5)})
    await admin.delete_topics([TOPIC])
    while TOPIC in await admin.list_topics():
        pass
    return "records, topic"


if __name__ == "__main__":
    run(
        __version__,
        {
            "cluster": administer(cluster),
            "topics": administer(topics),
            "configs": administer(configs),
            "produce": lambda: asyncio.run(produce(COUNT, is_idempotent=False)),
            "idempotent": lambda: asyncio.run(produce(MORE, is_idempotent=True)),
            "classic": lambda: asyncio.run(classic()),
            "groups": administer(groups),
            "transactions": administer(transactions),
            "delete": administer(delete),
        },
    )
