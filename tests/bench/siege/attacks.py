"""The attacks of a client that reaches the port: one coroutine for each, and a table of them.

Each continues until it is cancelled. Most are aimed at the leader, which has most to do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

import trio

from kraftwire.limits import REQUEST_ELEMENTS_MAX, REQUEST_SIZE_MAX
from kraftwire.messages.api_versions_request import ApiVersionsRequest
from kraftwire.messages.broker_registration_request import BrokerRegistrationRequest, Listener
from kraftwire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kraftwire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftwire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftwire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraftwire.protocol.topic_names import METADATA_TOPIC, METADATA_TOPIC_ID
from tests.bench.siege import changes, connections, forged
from tests.bench.siege.peer import Socket, again_and_again, exchange, many, request, send
from tests.bench.siege.target import Target

__all__ = ["ATTACKS", "Attack", "Target"]

_EVER = (1 << 31) - 1
_PAUSE_SECONDS = 0.02
_MIB = 1024 * 1024
# The longest requests that are not refused for their length alone.
_ELEMENTS = REQUEST_ELEMENTS_MAX - 10
# Above REQUEST_SIZE_MAX a node refuses without decoding.
_TOO_MANY = 250_000


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack.

    `frame_bytes` is the longest frame that it sends, or asks for. With `changes_voters` an honest
    change of the voters must succeed meanwhile.
    """

    about: str
    carry_out: Callable[[Target], Awaitable[None]]
    frame_bytes: int = 64 * 1024
    changes_voters: bool = False


async def _repeat(target: Target, frames: list[bytes], connections_: int) -> None:
    """Send these frames alternately on each of some connections, and read the responses."""

    async def talk(sock: Socket) -> None:
        while True:
            for data in frames:
                await exchange(sock, data)

    await many(connections_, lambda _: again_and_again(target.leader_port, talk))


def _fetch(count: int, *, max_bytes: int = _EVER, offset: int = 0) -> FetchRequest:
    one = FetchPartition(fetch_offset=offset, partition_max_bytes=max_bytes)
    topic = FetchTopic(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[one] * count)
    wait = {"max_wait_ms": _EVER, "min_bytes": _EVER, "max_bytes": max_bytes}
    return FetchRequest(**wait, topics=[topic])


async def _huge_fetch(target: Target) -> None:
    """One partition named very often, within the length limits and above; no answer is read."""
    frames = [request(_fetch(count), 12) for count in (60_000, 9_000, 400)]

    async def talk(sock: Socket, data: bytes) -> None:
        await send(sock, data)
        await trio.sleep(1)

    async def one(number: int) -> None:
        await again_and_again(target.leader_port, partial(talk, data=frames[number % 3]))

    await many(30, one)


async def _greedy_fetch(target: Target) -> None:
    """The whole log again and again, on connections that read none of it."""
    data = request(_fetch(1), 12) * 100

    async def talk(sock: Socket) -> None:
        await send(sock, data)
        await trio.sleep_forever()

    await many(100, lambda _: again_and_again(target.leader_port, talk))


async def _produce(target: Target) -> None:
    """20 MB, and the longest that is accepted."""
    frames = []
    for size in (20 * 1000 * 1000, REQUEST_SIZE_MAX - 1024):
        data = PartitionProduceData(records=bytes(size))
        topic = TopicProduceData(name="t", partition_data=[data])
        frames.append(request(ProduceRequest(acks=1, topic_data=[topic]), 7))
    await many(4, lambda number: _keep_at(target, [frames[number % 2]]))


async def _keep_at(target: Target, frames: list[bytes]) -> None:
    await _repeat(target, frames, 1)


async def _elect_leaders(target: Target) -> None:
    """Requests of 1 MB are refused by their elements; those of 63 kB and 35 kB are answered."""
    frames = []
    for count in (_TOO_MANY, _ELEMENTS, 9_000):
        topics = [TopicPartitions(topic="t", partitions=list(range(count)))]
        message = ElectLeadersRequest(topic_partitions=topics, timeout_ms=_EVER)
        frames.append(request(message, 1))
    await many(40, lambda number: _keep_at(target, [frames[number % 3]]))


async def _metadata(target: Target) -> None:
    """Topics that do not exist: too many, as many as are answered, and a few very often."""
    frames = []
    for count in (120_000, _ELEMENTS, 600):
        topics = [MetadataRequestTopic(name=f"topic-{n}") for n in range(count)]
        frames.append(request(MetadataRequest(topics=topics), 8))
    await many(40, lambda number: _keep_at(target, [frames[number % 3]]))


async def _registrations(target: Target) -> None:
    """Brokers with very many log directories."""

    def registration(number: int, count: int) -> bytes:
        message = BrokerRegistrationRequest(
            broker_id=200_000 + number,
            cluster_id=target.cluster_id,
            incarnation_id=number.to_bytes(16, "big"),
            listeners=[Listener(name="PLAINTEXT", host="127.0.0.1", port=9)],
            rack=None,
            log_dirs=[n.to_bytes(16, "big") for n in range(1, count)],
        )
        return request(message, 3)

    async def one(number: int) -> None:
        frames = [registration(number, count) for count in (_ELEMENTS, 100, _TOO_MANY)]
        await _keep_at(target, [frames[number % 3]])

    await many(25, one)


async def _short_requests(target: Target) -> None:
    """As many short requests as 60 connections can have in flight."""
    frames = [
        request(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3),
        request(MetadataRequest(topics=[]), 8),
        request(_fetch(1, max_bytes=1), 12),
    ]

    async def read(sock: Socket) -> None:
        while await sock.recv(_MIB):
            pass

    async def talk(sock: Socket, data: bytes) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read, sock)
            while True:
                await send(sock, data)

    async def one(number: int) -> None:
        data = frames[number % 2] * 100
        await again_and_again(target.leader_port, partial(talk, data=data))

    await many(60, one)


async def _just_short(target: Target) -> None:
    """Requests that are just too short to count as long."""
    frames = []
    for count in (300, 1200):
        topics = [MetadataRequestTopic(name=f"{n:x}") for n in range(count)]
        frames.append(request(MetadataRequest(topics=topics), 8))
    await _repeat(target, frames, 60)


ATTACKS = {
    "epoch": Attack("forged epochs, to all nodes", forged.epochs),
    "claim": Attack("forged snapshot claims", forged.claims),
    "identity": Attack("another voter's software, by forgery", forged.identities),
    "huge-fetch": Attack("one partition, very often", _huge_fetch, 60_000 * 30),
    "greedy-fetch": Attack("the whole log, never read", _greedy_fetch, 8 * _MIB),
    "parked": Attack("4,300 Fetches that wait for ever", connections.parked),
    "described": Attack("the same, described without a pause", connections.described),
    "produce": Attack("Produce of 20 MB and of 2 MiB", _produce, 20 * 1000 * 1000),
    "elections": Attack("ElectLeaders of many partitions", _elect_leaders, _MIB),
    "metadata": Attack("Metadata of many topics", _metadata, 2 * _MIB),
    "brokers": Attack("registrations of many directories", _registrations, 4 * _MIB),
    "directories": Attack("60 brokers of 9,000 directories", changes.many_directories, _MIB),
    "registrations": Attack("brokers without end", changes.registrations),
    "updates": Attack("voters' addresses, in their names", changes.updates),
    "additions": Attack("new voters that never answer", changes.additions, changes_voters=True),
    "short": Attack("short requests, without a pause", _short_requests),
    "just-short": Attack("requests of 1 to 8 KiB", _just_short),
    "idle": Attack("idle connections, all descriptors", connections.idle),
    "crowd": Attack("1,000 slow, garbage, half-open", connections.crowd),
}
