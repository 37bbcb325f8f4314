"""Attacks by false claims: epochs, snapshots, identities."""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable

import trio

from kraftwire.messages import request_class
from kraftwire.messages.api_versions_request import ApiVersionsRequest
from kraftwire.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from kraftwire.messages.begin_quorum_epoch_request import LeaderEndpoint
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.protocol.payloads import decode_request_header, encode_response
from kraftwire.raft.epochs import EPOCH_MAX
from kraftwire.records.offsets import OffsetAndEpoch
from kraftwire.wire.frame import frame
from kraftwire.wire.message import Message
from tests.bench.siege.peer import HOST, again_and_again, exchange, request, send
from tests.bench.siege.target import Target
from tests.support.raft.messages import begin, end, fetched, vote

__all__ = ["claims", "epochs", "identities"]

_PAUSE_SECONDS = 0.02
_STRANGER = 66
_AHEAD = (1 << 20, 1 << 40)

Talk = Callable[[trio.socket.SocketType], Awaitable[None]]


async def _at_all(target: Target, frames: list[bytes]) -> None:
    """Send these to every node, fifty a second to each."""

    async def talk(sock: trio.socket.SocketType) -> None:
        while True:
            for data in frames:
                await exchange(sock, data)
                await trio.sleep(_PAUSE_SECONDS)

    async with trio.open_nursery() as nursery:
        for port in target.ports.values():
            nursery.start_soon(again_and_again, port, talk)


async def epochs(target: Target) -> None:
    """The last possible epoch from voters and strangers, the next ones from a stranger."""
    who, id_ = target.follower_id, target.cluster_id
    messages = [
        *(vote(one, EPOCH_MAX, _AHEAD, cluster_id=id_) for one in (who, _STRANGER)),
        *(begin(one, EPOCH_MAX, cluster_id=id_) for one in (who, _STRANGER)),
        *(end(one, EPOCH_MAX, cluster_id=id_) for one in (who, _STRANGER)),
        *(vote(_STRANGER, target.epoch + n, _AHEAD, cluster_id=id_) for n in (1, 2, 100, 101)),
        begin(_STRANGER, target.epoch + 1, cluster_id=id_),
        end(_STRANGER, target.epoch + 1, cluster_id=id_),
    ]
    await _at_all(target, [request(one, 1) for one in messages])


async def identities(target: Target) -> None:
    """The name of another software, then a Vote that is refused, under the voters' ids."""
    name = ApiVersionsRequest(
        client_software_name="apache-kafka-java", client_software_version="1.2.3"
    )
    frames = [request(name, 3)]
    for number in target.ports:
        refused = vote(int(number), max(target.epoch - 1, 0), cluster_id=target.cluster_id)
        frames.append(request(refused, 1))
    await _at_all(target, frames)


async def claims(target: Target) -> None:
    """The leader's announcement with a false address, whose Fetch answers name snapshots.

    The epoch stays the leader's: a node that believed it would download snapshots for ever.
    """
    listening = trio.socket.socket()
    await listening.bind((HOST, 0))
    listening.listen(100)
    port = listening.getsockname()[1]
    announcement = begin(target.leader_id, target.epoch, cluster_id=target.cluster_id)
    announcement.leader_endpoints = [
        LeaderEndpoint(name=name, host=HOST, port=port) for name in ("PLAINTEXT", "CONTROLLER")
    ]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_lead_falsely, listening, target, nursery)
        await _at_all(target, [request(announcement, 1)])


async def _lead_falsely(
    listening: trio.socket.SocketType, target: Target, nursery: trio.Nursery
) -> None:
    while True:
        sock, _ = await listening.accept()
        nursery.start_soon(_answer_falsely, sock, target)


async def _answer_falsely(sock: trio.socket.SocketType, target: Target) -> None:
    try:
        while head := await sock.recv(4):
            payload = b""
            while len(payload) < struct.unpack(">i", head)[0]:
                payload += await sock.recv(1 << 16)
            header, position = decode_request_header(payload)
            version = header.request_api_version
            request_class(header.request_api_key).decode(payload, version, position)
            answer = _false_answer(header.request_api_key, target)
            response = ResponseHeader(correlation_id=header.correlation_id)
            await send(sock, frame(encode_response(response, answer, version)))
    except OSError:
        sock.close()


def _false_answer(api_key: int, target: Target) -> Message:
    if api_key == 1:
        snapshot = OffsetAndEpoch(1 << 30, target.epoch)
        return fetched(target.leader_id, target.epoch, snapshot=snapshot)
    keys = [
        ApiVersion(api_key=key, min_version=0, max_version=high)
        for key, high in ((1, 17), (18, 3), (52, 1), (53, 1), (54, 1), (59, 1))
    ]
    return ApiVersionsResponse(api_keys=keys)
