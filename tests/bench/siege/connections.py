"""Attacks by mere connections: many of them, slow ones, and some that send no valid request."""

from __future__ import annotations

import os
import socket

import trio

from kraftwire.messages.fetch_response import FetchResponse
from kraftwire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftwire.protocol.envelope import decode_response
from kraftwire.records.batch import RecordBatch
from tests.bench.siege.peer import HOST, again_and_again, exchange, many, request, send
from tests.bench.siege.target import Target
from tests.support.raft_messages import fetch

__all__ = ["crowd", "idle", "parked"]

_PARKED = 4_300
_CROWD = 1_000
_EVER = (1 << 31) - 1
_OBSERVERS = 10_000
# A socket with unread data that is closed without lingering sends a reset, as after a crash.
_ABORT = (socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")


async def parked(target: Target) -> None:
    """Observers at the end of the log that wait for ever, each with its own id."""

    async def one(number: int) -> None:
        message = fetch(-1, 0, 0, target.epoch, max_wait_ms=_EVER)
        message.cluster_id = target.cluster_id
        message.replica_state.replica_id = _OBSERVERS + number
        message.min_bytes = _EVER
        partition = message.topics[0].partitions[0]

        async def talk(sock: trio.socket.SocketType) -> None:
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

    await many(_PARKED, one)


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

    async def slow(sock: trio.socket.SocketType) -> None:
        for position in range(len(data)):
            await send(sock, data[position : position + 1])
            await trio.sleep(1)

    async def garbage(sock: trio.socket.SocketType) -> None:
        await send(sock, os.urandom(64))
        while await sock.recv(4096):
            pass
        await trio.sleep(2)

    async def half_open(sock: trio.socket.SocketType) -> None:
        sock.setsockopt(*_ABORT)
        await send(sock, data[: len(data) // 2])
        await trio.sleep_forever()

    kinds = (slow, garbage, half_open)
    await many(_CROWD, lambda n: again_and_again(target.leader_port, kinds[n % 3]))
