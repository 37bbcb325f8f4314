"""Attacks by mere connections: many of them, slow ones, and some that send no valid request."""

from __future__ import annotations

import os
import socket

import trio

from kraftwire.messages.describe_quorum_request import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from kraftwire.messages.describe_quorum_response import DescribeQuorumResponse
from kraftwire.messages.fetch_response import FetchResponse
from kraftwire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftwire.protocol.payloads import decode_response
from kraftwire.protocol.topic_names import METADATA_TOPIC
from kraftwire.records.batch import RecordBatch
from tests.bench.siege.peer import (
    HOST,
    Socket,
    again_and_again,
    ask,
    exchange,
    many,
    request,
    send,
)
from tests.bench.siege.target import Target
from tests.support.raft.messages import fetch

__all__ = ["crowd", "described", "idle", "observe", "parked"]

_PARKED = 4_300
_DESCRIBERS = 30
_CROWD = 1_000
_EVER = (1 << 31) - 1
_OBSERVERS = 10_000
# A socket with unread data that is closed without lingering sends a reset, as after a crash.
_ABORT = (socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")


async def parked(target: Target) -> None:
    """Observers at the end of the log that wait for ever, each with its own id."""
    offset = await trio.to_thread.run_sync(_committed_end, target.leader_port)
    await many(_PARKED, lambda number: observe(target, _OBSERVERS + number, offset=offset))


async def described(target: Target) -> None:
    """The same observers, and some who want to see the list of them without a pause."""
    topic = TopicData(topic_name=METADATA_TOPIC, partitions=[PartitionData()])
    data = request(DescribeQuorumRequest(topics=[topic]), 2)

    async def talk(sock: Socket) -> None:
        while True:
            await exchange(sock, data)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(parked, target)
        await many(_DESCRIBERS, lambda _: again_and_again(target.leader_port, talk))


def _committed_end(port: int) -> int:
    """The leader's high watermark."""
    partition = PartitionData(partition_index=0)
    topic = TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    told = ask(port, DescribeQuorumRequest(topics=[topic]))
    assert isinstance(told, DescribeQuorumResponse)
    return told.topics[0].partitions[0].high_watermark


async def observe(
    target: Target, replica_id: int, directory_id: bytes = bytes(16), *, offset: int = 0
) -> None:
    """Follow the leader from an offset as a replica does, without keeping anything."""
    epoch = target.epoch if offset else 0
    message = fetch(-1, offset, epoch, target.epoch, max_wait_ms=_EVER)
    message.cluster_id = target.cluster_id
    message.replica_state.replica_id = replica_id
    message.min_bytes = _EVER
    partition = message.topics[0].partitions[0]
    partition.replica_directory_id = directory_id

    async def talk(sock: Socket) -> None:
        while True:
            answer = await exchange(sock, request(message, 17))
            told = decode_response(answer, message.API_KEY, 17)[1]
            assert isinstance(told, FetchResponse)
            data = told.responses[0].partitions[0]
            records, position = bytes(data.records or b""), 0
            while position < len(records):
                batch = RecordBatch(records, position)
                position = batch.end
                partition.fetch_offset = batch.last_offset + 1
                partition.last_fetched_epoch = batch.partition_leader_epoch

    await again_and_again(target.leader_port, talk)


async def idle(target: Target) -> None:
    """More connections than the leader has descriptors, none of which sends a byte."""
    kept = []
    for number in range(target.descriptors + 200):
        sock = trio.socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        try:
            await sock.connect((HOST, target.leader_port))
        except OSError:
            await trio.sleep(0.1)
        kept.append(sock)
        if number % 50 == 49:
            await trio.sleep(0.02)
    await trio.sleep_forever()


async def crowd(target: Target) -> None:
    """A third sends a byte now and then, a third garbage, a third only half a request."""
    topics = [MetadataRequestTopic(name=f"topic-{n}") for n in range(500)]
    data = request(MetadataRequest(topics=topics), 8)

    async def slow(sock: Socket) -> None:
        for position in range(len(data)):
            await send(sock, data[position : position + 1])
            await trio.sleep(1)

    async def garbage(sock: Socket) -> None:
        await send(sock, os.urandom(64))
        while await sock.recv(4096):
            pass
        await trio.sleep(2)

    async def half_open(sock: Socket) -> None:
        sock.setsockopt(*_ABORT)
        await send(sock, data[: len(data) // 2])
        await trio.sleep_forever()

    kinds = (slow, garbage, half_open)
    await many(_CROWD, lambda n: again_and_again(target.leader_port, kinds[n % 3]))
