"""An honest client: it has records committed at a steady rate and records the latency.

Each connection alternately registers a broker that does not exist and unregisters it; both are
answered once their record is committed.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field

import trio

from kraftwire.errors import KraftwireError
from kraftwire.messages.add_raft_voter_request import AddRaftVoterRequest
from kraftwire.messages.add_raft_voter_request import Listener as AddListener
from kraftwire.messages.broker_registration_request import (
    BrokerRegistrationRequest,
    Feature,
    Listener,
)
from kraftwire.messages.describe_quorum_request import DescribeQuorumRequest
from kraftwire.messages.describe_quorum_request import PartitionData as DescribedPartition
from kraftwire.messages.describe_quorum_request import TopicData as DescribedTopic
from kraftwire.messages.describe_quorum_response import DescribeQuorumResponse
from kraftwire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraftwire.messages.unregister_broker_request import UnregisterBrokerRequest
from kraftwire.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kraftwire.messages.update_features_response import UpdateFeaturesResponse
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.payloads import decode_response
from kraftwire.protocol.topic_names import METADATA_TOPIC
from kraftwire.wire.message import Message
from tests.bench.siege.peer import Socket, ask, exchange, opened, request

__all__ = ["Commits", "change_voters", "commit_steadily", "lengthen_log", "upgrade"]

CONNECTIONS = 4
PERIOD_SECONDS = 0.6

_FIRST_BROKER_ID = 100_000
# Long records, within the bound of a registration.
_RACK = "r" * 32_000
# A broker has to know what is finalized.
_FINALIZED = ("metadata", "kraft", "transaction", "group", "share", "streams")
_FEATURES = (*(f"{name}.version" for name in _FINALIZED), "eligible.leader.replicas.version")
_PATIENCE_SECONDS = 10.0
_RETRY_SECONDS = 0.05
_VERSIONS: dict[type[Message], int] = {
    AddRaftVoterRequest: 1,
    BrokerRegistrationRequest: 3,
    DescribeQuorumRequest: 2,
    RemoveRaftVoterRequest: 0,
    UnregisterBrokerRequest: 0,
}


@dataclass(slots=True)
class Commits:
    """Every commit: when it was due, and the milliseconds from then to its answer.

    `failed` counts answers with errors and connections that ended.
    """

    times: list[tuple[float, float]] = field(default_factory=list)
    failed: int = 0
    last_problem: str = ""

    def since(self, start: float, end: float = float("inf")) -> list[float]:
        """Milliseconds of all that were due between two times."""
        return [took for due, took in self.times if start <= due < end]


async def commit_steadily(ports: Sequence[int], cluster_id: str, commits: Commits) -> None:
    """Commit until cancelled. The leader's port comes first."""
    async with trio.open_nursery() as nursery:
        for number in range(CONNECTIONS):
            client = _Client(ports, cluster_id, number, commits)
            nursery.start_soon(client.run)


async def lengthen_log(ports: Sequence[int], cluster_id: str, size: int) -> None:
    """Have the leader write this many bytes: a log that is worth fetching. Units: bytes.

    The leader's port comes first; the others follow when it no longer leads.
    """
    turns, left, broker_id = deque(ports), size, _FIRST_BROKER_ID - 1
    while left > 0:
        try:
            with closing(await opened(turns[0])) as sock:
                while left > 0:
                    await _committed(sock, _registration(broker_id, cluster_id, _RACK))
                    await _committed(sock, UnregisterBrokerRequest(broker_id=broker_id))
                    left -= len(_RACK)
        except (OSError, EOFError):
            turns.rotate(-1)
            await trio.sleep(_RETRY_SECONDS)


def upgrade(port: int) -> bool:
    """Have the voters in the log, where they can change, as those of new clusters are.

    Returns whether that is done: the leader must have heard from all voters.
    """
    raised = FeatureUpdateKey(feature="kraft.version", max_version_level=1, upgrade_type=1)
    answer = ask(port, UpdateFeaturesRequest(timeout_ms=10_000, feature_updates=[raised]))
    assert isinstance(answer, UpdateFeaturesResponse)
    return not answer.error_code


async def change_voters(port: int, cluster_id: str) -> float:
    """Remove a follower from the voters, and add it again.

    Each is asked for until it succeeds, as an operator would. Returns the longer one's seconds.
    """
    with closing(await opened(port)) as sock:
        quorum = await _described(sock)
        (place,) = quorum.topics[0].partitions
        voters = {one.replica_id: one.replica_directory_id for one in place.current_voters}
        node = next(one for one in quorum.nodes if one.node_id in voters.keys() - {place.leader_id})
        key = {"voter_id": node.node_id, "voter_directory_id": voters[node.node_id]}
        listeners = [AddListener(name=e.name, host=e.host, port=e.port) for e in node.listeners]
        addition = AddRaftVoterRequest(
            cluster_id=cluster_id, timeout_ms=1000, listeners=listeners, **key
        )
        removal = RemoveRaftVoterRequest(cluster_id=cluster_id, **key)
        return max([await _until_done(sock, one) for one in (removal, addition)])


async def _described(sock: Socket) -> DescribeQuorumResponse:
    topic = DescribedTopic(topic_name=METADATA_TOPIC, partitions=[DescribedPartition()])
    answer = await _answered(sock, DescribeQuorumRequest(topics=[topic]))
    assert isinstance(answer, DescribeQuorumResponse)
    return answer


async def _until_done(sock: Socket, message: Message) -> float:
    """Repeat a request until its answer has no error; returns the seconds that it took."""
    began = trio.current_time()
    while getattr(await _answered(sock, message), "error_code"):  # noqa: B009 - both answers have it
        await trio.sleep(_RETRY_SECONDS)
    return trio.current_time() - began


async def _answered(sock: Socket, message: Message) -> Message:
    version = _VERSIONS[type(message)]
    payload = await exchange(sock, request(message, version))
    return decode_response(payload, message.API_KEY, version)[1]


async def _committed(sock: Socket, message: Message) -> None:
    """Have this record committed. Raises: EOFError with the error's name if it is not."""
    with trio.fail_after(_PATIENCE_SECONDS):
        answer = await _answered(sock, message)
    code = ErrorCode(getattr(answer, "error_code"))  # noqa: B009 - both answers have one
    if code != ErrorCode.NONE:
        raise EOFError(code.name)


def _registration(
    broker_id: int, cluster_id: str, rack: str | None = None
) -> BrokerRegistrationRequest:
    return BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id=cluster_id,
        incarnation_id=os.urandom(16),
        listeners=[Listener(name="PLAINTEXT", host="127.0.0.1", port=9)],
        features=[Feature(name=name, max_supported_version=99) for name in _FEATURES],
        rack=rack,
        log_dirs=[os.urandom(16)],
    )


class _Client:
    """One connection, with one request in flight."""

    def __init__(
        self, ports: Sequence[int], cluster_id: str, number: int, commits: Commits
    ) -> None:
        self._ports = deque(ports)
        self._cluster_id = cluster_id
        self._broker_id = _FIRST_BROKER_ID + number
        self._delay = number * PERIOD_SECONDS / CONNECTIONS
        self._commits = commits
        self._is_registered = False

    async def run(self) -> None:
        """Commit whenever one is due: a late one makes the next ones late too."""
        due = trio.current_time() + self._delay
        while True:
            try:
                with closing(await opened(self._ports[0])) as sock:
                    while True:
                        await trio.sleep_until(due)
                        await self._commit(sock)
                        took = (trio.current_time() - due) * 1000
                        self._commits.times.append((due, took))
                        due += PERIOD_SECONDS
            except (OSError, EOFError, KraftwireError, trio.TooSlowError) as error:
                self._commits.failed += 1
                self._commits.last_problem = repr(error)
                self._ports.rotate()
                await trio.sleep(_RETRY_SECONDS)

    async def _commit(self, sock: Socket) -> None:
        await _committed(sock, self._next())
        self._is_registered = not self._is_registered

    def _next(self) -> Message:
        if self._is_registered:
            return UnregisterBrokerRequest(broker_id=self._broker_id)
        return _registration(self._broker_id, self._cluster_id)
