"""aiokafka: cluster and topics through its admin client, and a consumer by assignment."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Coroutine
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition, __version__
from aiokafka.admin import AIOKafkaAdminClient

from tests.interop.clients.probe import (
    METADATA_TOPIC,
    READ_COUNT,
    bootstrap_servers,
    check_records,
    login,
    run,
)


def _config() -> dict[str, Any]:
    found = login()
    plain = {"bootstrap_servers": bootstrap_servers(), "client_id": "probe"}
    if found is None:
        return plain
    return plain | {
        "security_protocol": "SASL_SSL",
        "ssl_context": ssl.create_default_context(cafile=found.ca),
        "sasl_mechanism": found.mechanism,
        "sasl_plain_username": found.user,
        "sasl_plain_password": found.password,
    }


async def connect() -> str:
    """The cluster and its brokers."""
    admin = AIOKafkaAdminClient(**_config())
    await admin.start()
    try:
        cluster = await admin.describe_cluster()
    finally:
        await admin.close()
    assert len(cluster["brokers"]) == 3, cluster
    assert len(cluster["cluster_id"]) == 22, cluster
    return "3 brokers"


async def describe() -> str:
    """The quorum's topic; the client has no call for the quorum itself."""
    admin = AIOKafkaAdminClient(**_config())
    await admin.start()
    try:
        names = await admin.list_topics()
        (topic,) = await admin.describe_topics([METADATA_TOPIC])
    finally:
        await admin.close()
    assert METADATA_TOPIC in names, names
    partition = topic["partitions"][0]
    assert partition["leader"] in (1, 2, 3), topic
    return "topic, its leader"


async def read() -> str:
    """The quorum's topic from its beginning."""
    consumer = AIOKafkaConsumer(**_config(), enable_auto_commit=False)
    await consumer.start()
    try:
        partition = TopicPartition(METADATA_TOPIC, 0)
        consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        records = []
        async with asyncio.timeout(20):
            while len(records) < READ_COUNT:
                record = await consumer.getone()
                records.append((record.offset, record.value))
    finally:
        await consumer.stop()
    return check_records(records)


def _sync(step: Callable[[], Coroutine[Any, Any, str]]) -> Callable[[], str]:
    return lambda: asyncio.run(step())


if __name__ == "__main__":
    run(
        __version__,
        {"connect": _sync(connect), "describe": _sync(describe), "read": _sync(read)},
    )
