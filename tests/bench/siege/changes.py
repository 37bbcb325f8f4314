"""Attacks by legal changes: registrations, and changes of voters in others' names."""

from __future__ import annotations

import os

import trio

from kraftwire.messages.add_raft_voter_request import AddRaftVoterRequest
from kraftwire.messages.add_raft_voter_request import Listener as AddListener
from kraftwire.messages.broker_registration_request import (
    BrokerRegistrationRequest,
    Feature,
    Listener,
)
from kraftwire.messages.describe_quorum_request import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from kraftwire.messages.describe_quorum_response import DescribeQuorumResponse
from kraftwire.messages.update_raft_voter_request import (
    KRaftVersionFeature,
    UpdateRaftVoterRequest,
)
from kraftwire.messages.update_raft_voter_request import Listener as UpdateListener
from kraftwire.protocol.payloads import decode_response
from kraftwire.protocol.topic_names import METADATA_TOPIC
from tests.bench.siege.connections import observe
from tests.bench.siege.peer import HOST, Socket, again_and_again, exchange, many, request
from tests.bench.siege.target import Target

__all__ = ["additions", "many_directories", "registrations", "updates"]

_BROKERS = 200_000
_NEW_VOTERS = 300_000
_LISTENERS = ("PLAINTEXT", "CONTROLLER")
_REGISTRATION, _DESCRIPTION, _ADDITION = 3, 2, 1


def _registration(number: int, target: Target, directories: int) -> BrokerRegistrationRequest:
    return BrokerRegistrationRequest(
        broker_id=_BROKERS + number,
        cluster_id=target.cluster_id,
        incarnation_id=number.to_bytes(16, "big"),
        listeners=[Listener(name="PLAINTEXT", host=HOST, port=9)],
        features=[
            Feature(name="metadata.version", min_supported_version=1, max_supported_version=99)
        ],
        rack=None,
        log_dirs=[os.urandom(16) for _ in range(directories)],
    )


async def many_directories(target: Target) -> None:
    """60 brokers that exist in the log only, each with as many directories as are allowed."""

    async def one(number: int) -> None:
        frames = [request(_registration(number, target, n), _REGISTRATION) for n in (9_000, 250)]

        async def talk(sock: Socket) -> None:
            for frame in frames:
                await exchange(sock, frame)
            await trio.sleep_forever()

        await again_and_again(target.leader_port, talk)

    await many(60, one)


async def registrations(target: Target) -> None:
    """Ever more brokers, from many connections at once."""
    count = 0

    async def talk(sock: Socket) -> None:
        nonlocal count
        while True:
            count += 1
            await exchange(sock, request(_registration(count, target, 1), _REGISTRATION))

    await many(200, lambda _: again_and_again(target.leader_port, talk))


async def updates(target: Target) -> None:
    """Addresses and versions of the voters, in their names, with and without a difference."""
    description = DescribeQuorumRequest(
        topics=[TopicData(topic_name=METADATA_TOPIC, partitions=[PartitionData()])]
    )

    async def talk(sock: Socket) -> None:
        answer = await exchange(sock, request(description, _DESCRIPTION))
        told = decode_response(answer, DescribeQuorumRequest.API_KEY, _DESCRIPTION)[1]
        assert isinstance(told, DescribeQuorumResponse)
        quorum = told.topics[0].partitions[0]
        while True:
            for voter in quorum.current_voters:
                for port in (9, target.ports[str(voter.replica_id)]):
                    update = UpdateRaftVoterRequest(
                        cluster_id=target.cluster_id,
                        current_leader_epoch=quorum.leader_epoch,
                        voter_id=voter.replica_id,
                        voter_directory_id=voter.replica_directory_id,
                        listeners=[
                            UpdateListener(name=n, host=HOST, port=port) for n in _LISTENERS
                        ],
                        kraft_version_feature=KRaftVersionFeature(
                            min_supported_version=0, max_supported_version=1
                        ),
                    )
                    await exchange(sock, request(update, 0))

    await many(20, lambda _: again_and_again(target.leader_port, talk))


async def additions(target: Target) -> None:
    """New voters that follow, at an address that accepts connections and never answers."""
    silent = trio.socket.socket()
    await silent.bind((HOST, 0))
    silent.listen(1_000)
    port = silent.getsockname()[1]

    async def one(number: int) -> None:
        key = _NEW_VOTERS + number, os.urandom(16)
        addition = AddRaftVoterRequest(
            cluster_id=target.cluster_id,
            timeout_ms=1 << 30,
            voter_id=key[0],
            voter_directory_id=key[1],
            listeners=[AddListener(name=n, host=HOST, port=port) for n in _LISTENERS],
        )

        async def talk(sock: Socket) -> None:
            while True:
                await exchange(sock, request(addition, _ADDITION))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(observe, target, *key)
            nursery.start_soon(again_and_again, target.leader_port, talk)

    await many(100, one)
