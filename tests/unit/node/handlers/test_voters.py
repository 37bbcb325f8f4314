"""What nodes report about voters that change, and the path of requests that change them."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.errors import ApiError
from kraftwire.messages.add_raft_voter_request import AddRaftVoterRequest
from kraftwire.messages.add_raft_voter_response import AddRaftVoterResponse
from kraftwire.messages.describe_cluster_request import DescribeClusterRequest
from kraftwire.messages.describe_quorum_request import DescribeQuorumRequest
from kraftwire.messages.describe_quorum_response import DescribeQuorumResponse
from kraftwire.messages.envelope_request import EnvelopeRequest
from kraftwire.messages.fetch_snapshot_request import FetchSnapshotRequest
from kraftwire.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraftwire.messages.register_controller_record import (
    ControllerEndpoint,
    RegisterControllerRecord,
)
from kraftwire.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraftwire.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kraftwire.messages.request_header import RequestHeader
from kraftwire.messages.update_features_request import UpdateFeaturesRequest
from kraftwire.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kraftwire.messages.update_raft_voter_response import UpdateRaftVoterResponse
from kraftwire.node import handlers
from kraftwire.node.admission import LONG_ANSWER_BYTES_MIN
from kraftwire.protocol.endpoint import Endpoint
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.payloads import decode_response, encode_request
from kraftwire.raft.voters import ReplicaKey, Voter, VoterSet
from kraftwire.security.principal import Principal, encode_principal
from kraftwire.wire.message import Message
from tests.support.nodes.stub import StubNode, answer_of, request_of

pytestmark = pytest.mark.trio

# Requests to the core, with its answers: those for clients first.
CHANGES: list[tuple[Message, Message]] = [
    (AddRaftVoterRequest(), AddRaftVoterResponse(error_message="x")),
    (RemoveRaftVoterRequest(), RemoveRaftVoterResponse(error_message="x")),
]
OF_PEERS: list[tuple[Message, Message]] = [
    (UpdateRaftVoterRequest(), UpdateRaftVoterResponse(error_code=7)),
    (FetchSnapshotRequest(), FetchSnapshotResponse(error_code=7)),
]


def _highest(message: Message) -> int:
    return type(message).VERSIONS.high


def _dynamic(*ids: int) -> StubNode:
    """A node whose voters are in the log, with two listeners each."""
    node = StubNode()
    node.raft.kraft_version = 1
    node.raft.voters = VoterSet.of(
        *(
            Voter(
                ReplicaKey(number, bytes([number]) * 16),
                (Endpoint("CONTROLLER", "first", number), Endpoint("OTHER", "second", number)),
            )
            for number in ids
        )
    )
    return node


async def _controllers(node: StubNode, listener: str) -> list[tuple[int, str, int]]:
    request = request_of(DescribeClusterRequest(endpoint_type=2), 2, to="peer")
    request.listener = listener
    answer = await answer_of(node, request)
    return [(one.broker_id, one.host, one.port) for one in answer.brokers]


async def test_voters_are_named_at_the_listener_that_is_asked() -> None:
    """A client that reached one network of a controller may not reach the other."""
    node = _dynamic(1, 5)
    assert await _controllers(node, "CONTROLLER") == [(1, "first", 1), (5, "first", 5)]
    assert await _controllers(node, "OTHER") == [(1, "second", 1), (5, "second", 5)]
    assert await _controllers(node, "THIRD") == [(1, "first", 1), (5, "first", 5)]


async def test_controllers_come_and_go_with_the_voters_in_force() -> None:
    """A controller that only observes is listed too, once it is registered."""
    node = _dynamic(1, 2)
    node.raft.voters = _dynamic(1, 7).raft.voters
    assert [one[0] for one in await _controllers(node, "CONTROLLER")] == [1, 7]
    endpoint = ControllerEndpoint(name="CONTROLLER", host="observer", port=9)
    node.commit_records((RegisterControllerRecord(controller_id=9, end_points=[endpoint]), 0))
    assert await _controllers(node, "CONTROLLER") == [
        (1, "first", 1),
        (7, "first", 7),
        (9, "observer", 9),
    ]


@pytest.mark.parametrize(("message", "answer"), CHANGES + OF_PEERS)
async def test_a_controllers_listener_lets_the_core_answer(
    message: Message, answer: Message
) -> None:
    """Whatever this node's role: the leader decides, and the core says who leads."""
    node = _dynamic(1, 2)
    node.raft.leader_id, node.core_answer = 2, answer
    found = await answer_of(node, request_of(message, _highest(message), to="peer"))
    assert found is answer
    assert node.forwarded == []


@pytest.mark.parametrize(("message", "answer"), CHANGES)
async def test_a_brokers_listener_passes_changes_of_voters_on(
    message: Message, answer: Message
) -> None:
    """Kafka's tool may connect to brokers."""
    node = _dynamic(1, 2)
    node.raft.leader_id, node.forward_answer = 2, answer
    assert await answer_of(node, request_of(message, _highest(message))) is answer
    assert node.forwarded == [message]
    node.forward_answer = ApiError(ErrorCode.REQUEST_TIMED_OUT, "too slow")
    failed = await answer_of(node, request_of(message, _highest(message)))
    assert (failed.error_code, failed.error_message) == (ErrorCode.REQUEST_TIMED_OUT, "too slow")


@pytest.mark.parametrize(("message", "_"), OF_PEERS)
async def test_clients_are_not_offered_what_is_between_replicas(
    message: Message, _: Message
) -> None:
    """As on Kafka's brokers."""
    assert handlers.route(request_of(message, _highest(message))) is None


async def _enveloped(node: StubNode, message: Message) -> Any:
    version = _highest(message)
    header = RequestHeader(
        request_api_key=message.API_KEY, request_api_version=version, correlation_id=77
    )
    envelope = EnvelopeRequest(
        request_data=encode_request(header, message),
        request_principal=encode_principal(Principal("User", "c")),
        client_host_address=bytes(4),
    )
    answer = await answer_of(node, request_of(envelope, 0, to="peer"))
    if answer.error_code or answer.response_data is None:
        return answer.error_code
    found, inner, _ = decode_response(answer.response_data, message.API_KEY, version)
    assert found.correlation_id == 77
    return inner


@pytest.mark.parametrize(
    ("message", "answer"),
    [*CHANGES, (DescribeQuorumRequest(), DescribeQuorumResponse(error_message="x"))],
)
async def test_what_brokers_forward_reaches_the_core(message: Message, answer: Message) -> None:
    """Kafka's brokers put a client's request into an Envelope."""
    node = _dynamic(1, 2)
    node.core_answer = answer
    assert await _enveloped(node, message) == answer


@pytest.mark.parametrize(("replicas", "is_long"), [(3, False), (4096, True)])
async def test_a_long_description_waits_for_its_turn(replicas: int, is_long: bool) -> None:
    """Thousands may follow as observers, and each of them makes every answer longer."""
    node = _dynamic(1, 2)
    admitted: list[int] = []
    node.raft.replica_count = replicas
    node.core_answer = DescribeQuorumResponse()

    async def admit(size: int) -> None:
        admitted.append(size)

    await answer_of(node, request_of(DescribeQuorumRequest(), 2, to="peer", admit=admit))
    assert [size >= LONG_ANSWER_BYTES_MIN for size in admitted] == [is_long]


async def test_a_forwarded_update_of_features_is_carried_out() -> None:
    """The tool that raises kraft.version connects to brokers."""
    answer = await _enveloped(_dynamic(1), UpdateFeaturesRequest())
    assert answer.error_code == ErrorCode.NONE


@pytest.mark.parametrize(("message", "_"), OF_PEERS)
async def test_requests_between_replicas_are_not_forwarded(message: Message, _: Message) -> None:
    """It would be another replica's request under the broker's name."""
    assert await _enveloped(_dynamic(1), message) == ErrorCode.INVALID_REQUEST
