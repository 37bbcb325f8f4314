"""Refusals, with their codes and senders; requests that brokers forward."""

from __future__ import annotations

import pytest

from kraftwire.messages import produce_request as produce
from kraftwire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from kraftwire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kraftwire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftwire.messages.broker_registration_request import BrokerRegistrationRequest
from kraftwire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftwire.messages.create_topics_response import CreateTopicsResponse
from kraftwire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftwire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kraftwire.messages.envelope_request import EnvelopeRequest
from kraftwire.messages.find_coordinator_request import FindCoordinatorRequest
from kraftwire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraftwire.messages.init_producer_id_request import InitProducerIdRequest
from kraftwire.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
)
from kraftwire.messages.metadata_request import MetadataRequest
from kraftwire.messages.produce_request import ProduceRequest
from kraftwire.messages.request_header import RequestHeader
from kraftwire.node.handlers import cluster_changes
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.payloads import decode_response, encode_request
from kraftwire.protocol.topic_names import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftwire.security.principal import Principal, encode_principal
from kraftwire.wire.message import Message
from tests.support.nodes.stub import StubNode, active_node, answer_of, deciding, request_of

pytestmark = pytest.mark.trio


def topics(*names: str) -> CreateTopicsRequest:
    """A request for topics of these names."""
    named = [CreatableTopic(name=name) for name in names]
    return CreateTopicsRequest(topics=named, timeout_ms=60_000)


async def test_nothing_can_be_produced() -> None:
    """Only the quorum writes its log."""
    data = produce.TopicProduceData(
        name=METADATA_TOPIC, partition_data=[produce.PartitionProduceData(index=0)]
    )
    request = ProduceRequest(acks=-1, topic_data=[data])
    answer = await answer_of(StubNode(), request_of(request, 11))
    (partition,) = answer.responses[0].partition_responses
    assert (partition.index, partition.error_code) == (0, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


async def test_a_producer_without_acknowledgement_loses_its_connection() -> None:
    """It expects no answer, so it learns of the error this way, as with Kafka."""
    assert await answer_of(StubNode(), request_of(ProduceRequest(acks=0), 11)) is None


async def test_producers_get_no_id() -> None:
    """Idempotent producers stop at once instead of trying for ever."""
    for name, code in (
        (None, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        ("t", ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ):
        request = InitProducerIdRequest(transactional_id=name)
        assert (await answer_of(StubNode(), request_of(request, 5))).error_code == code


async def test_neither_groups_nor_transactions_have_a_coordinator() -> None:
    """Java's admin repeats a question whose answer may change, thousands of times a second."""
    codes = {}
    for kind in (0, 1, 2, 9):
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=["a"])
        answer = await answer_of(StubNode(), request_of(request, 6))
        codes[kind] = answer.coordinators[0].error_code
        assert (await answer_of(StubNode(), request_of(request, 3))).error_code == codes[kind]
    assert codes == {
        0: ErrorCode.NOT_COORDINATOR,
        1: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        2: ErrorCode.NOT_COORDINATOR,
        9: ErrorCode.INVALID_REQUEST,
    }


async def test_topics_are_refused_one_by_one() -> None:
    """Bad names are reported first, as in Kafka."""
    request = request_of(topics("fine", "a b", METADATA_TOPIC), 7)
    answer = await answer_of(StubNode(), request)
    assert [topic.error_code for topic in answer.topics] == [
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_REQUEST,
    ]
    assert all(topic.error_message for topic in answer.topics)


async def test_topics_that_do_not_exist_cannot_be_deleted() -> None:
    """Neither by name nor by id; the quorum's topic is refused."""
    states = [
        DeleteTopicState(name="nope"),
        DeleteTopicState(name=None, topic_id=bytes(15) + b"\x07"),
        DeleteTopicState(name=None, topic_id=METADATA_TOPIC_ID),
    ]
    answer = await answer_of(StubNode(), request_of(DeleteTopicsRequest(topics=states), 6))
    assert [response.error_code for response in answer.responses] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.POLICY_VIOLATION,
    ]
    old = DeleteTopicsRequest(topic_names=["nope", METADATA_TOPIC])
    answer = await answer_of(StubNode(), request_of(old, 5))
    assert [(r.name, r.error_code) for r in answer.responses] == [
        ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (METADATA_TOPIC, ErrorCode.POLICY_VIOLATION),
    ]


async def test_configurations_do_not_change() -> None:
    """Brokers read theirs from their files."""
    resources = [
        AlterConfigsResource(resource_type=kind, resource_name=name)
        for kind, name in ((4, "1"), (2, METADATA_TOPIC), (2, "nope"))
    ]
    request = IncrementalAlterConfigsRequest(resources=resources)
    answer = await answer_of(StubNode(), request_of(request, 1))
    assert [response.error_code for response in answer.responses] == [
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


async def test_peers_are_sent_to_the_active_controller() -> None:
    """Brokers try the next leader only after this code, clients too (C-MOD-10)."""
    node = StubNode()
    requests: list[tuple[Message, int]] = [
        (BrokerRegistrationRequest(), 4),
        (BrokerHeartbeatRequest(), 2),
        (AllocateProducerIdsRequest(), 0),
        (ListPartitionReassignmentsRequest(topics=None), 0),
    ]
    for message, version in requests:
        answer = await answer_of(node, request_of(message, version, to="peer"))
        assert answer.error_code == ErrorCode.NOT_CONTROLLER
    answer = await answer_of(node, request_of(topics("x"), 7, to="peer"))
    assert answer.topics[0].error_code == ErrorCode.NOT_CONTROLLER


async def test_elections_and_reassignments_are_refused_in_each_element_too() -> None:
    """At the top, where the version has that, and for each partition (C-ERR-5)."""
    wanted = [TopicPartitions(topic="t", partitions=[0, 3])]
    for version in (0, 1, 2):
        elect = ElectLeadersRequest(topic_partitions=wanted)
        answer = await answer_of(StubNode(), request_of(elect, version, to="peer"))
        assert answer.error_code == (ErrorCode.NOT_CONTROLLER if version else ErrorCode.NONE)
        (topic,) = answer.replica_election_results
        found = [(one.partition_id, one.error_code) for one in topic.partition_result]
        assert found == [(0, ErrorCode.NOT_CONTROLLER), (3, ErrorCode.NOT_CONTROLLER)]
        assert topic.partition_result[0].error_message
    nothing = ElectLeadersRequest(topic_partitions=None)
    answer = await answer_of(StubNode(), request_of(nothing, 2, to="peer"))
    assert (answer.error_code, answer.replica_election_results) == (ErrorCode.NOT_CONTROLLER, [])
    moved = [ReassignableTopic(name="t", partitions=[ReassignablePartition(partition_index=3)])]
    move = AlterPartitionReassignmentsRequest(topics=moved)
    answer = await answer_of(StubNode(), request_of(move, 1, to="peer"))
    (partition,) = answer.responses[0].partitions
    assert answer.error_code == partition.error_code == ErrorCode.NOT_CONTROLLER
    assert answer.error_message == partition.error_message != ""
    assert (answer.responses[0].name, partition.partition_index) == ("t", 3)


async def test_brokers_with_another_registration_are_stale() -> None:
    """This is checked before anything else."""
    codes = {}
    async with deciding() as node:
        for epoch in (1, 2):
            request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch)
            answer = await answer_of(node, request_of(request, 0, to="peer"))
            codes[epoch] = answer.error_code
    assert codes == {1: ErrorCode.NONE, 2: ErrorCode.STALE_BROKER_EPOCH}


async def test_a_request_that_names_nothing_or_comes_late_changes_nothing() -> None:
    """The first needs no controller (C-API-3), the second has nobody who waits (C-DL-1)."""
    answer = await answer_of(StubNode(), request_of(topics(), 7, to="peer"))
    assert answer.topics == []
    late = topics("x")
    late.timeout_ms = 0
    async with deciding() as node:
        answer = await answer_of(node, request_of(late, 7, to="peer"))
    assert answer.topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT


async def test_a_request_for_too_many_changes_is_refused_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All of them would be one batch, or they would not happen together (C-MOD-9)."""
    monkeypatch.setattr(cluster_changes, "RECORDS_MAX", 2)
    resources = [
        AlterConfigsResource(
            resource_type=32,
            resource_name=f"g{number}",
            configs=[AlterableConfig(name="share.delivery.count.limit", value="5")],
        )
        for number in range(3)
    ]
    async with deciding() as node:
        for count, code in ((3, ErrorCode.POLICY_VIOLATION), (2, ErrorCode.NONE)):
            request = IncrementalAlterConfigsRequest(resources=resources[:count])
            answer = await answer_of(node, request_of(request, 1, to="peer"))
            assert [one.error_code for one in answer.responses] == [code] * count


async def test_topics_are_deleted_where_the_file_allows_it() -> None:
    """An operator may have switched it off."""
    states = [DeleteTopicState(name="nope")]
    request = request_of(DeleteTopicsRequest(topics=states, timeout_ms=9000), 6, to="peer")
    async with deciding() as node:
        answer = await answer_of(node, request)
        assert answer.responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    async with deciding(deletes_topics=False) as node:
        old = DeleteTopicsRequest(topic_names=["nope"], timeout_ms=9000)
        answer = await answer_of(node, request_of(old, 2, to="peer"))
        assert answer.responses[0].error_code == ErrorCode.INVALID_REQUEST
        answer = await answer_of(node, request)
    assert answer.responses[0].error_code == ErrorCode.TOPIC_DELETION_DISABLED


def wrapped(message: Message, version: int) -> EnvelopeRequest:
    """A client's request as a broker forwards it."""
    header = RequestHeader(
        request_api_key=message.API_KEY,
        request_api_version=version,
        correlation_id=77,
        client_id="c",
    )
    return enveloped(encode_request(header, message))


def enveloped(data: bytes, **values: bytes) -> EnvelopeRequest:
    """An envelope for a client at an address."""
    principal = encode_principal(Principal("User", "alice"))
    given = {"request_principal": principal, "client_host_address": b"\x0a\0\0\1", **values}
    return EnvelopeRequest(request_data=data, **given)  # type: ignore[arg-type]


async def test_a_forwarded_request_is_answered_in_its_own_version() -> None:
    """A Java broker ends on an answer that it cannot read."""
    async with deciding() as node:
        for version in (2, 4, 5, 7):
            request = request_of(wrapped(topics("x", "x"), version), 0, to="peer")
            answer = await answer_of(node, request)
            assert answer.error_code == 0
            header, inner, end = decode_response(answer.response_data, 19, version)
            assert isinstance(inner, CreateTopicsResponse)
            assert (header.correlation_id, end) == (77, len(answer.response_data))
            assert inner.topics[0].error_code == ErrorCode.INVALID_REQUEST


async def test_what_brokers_do_not_forward_is_invalid() -> None:
    """An envelope must not be a way around a listener."""
    node = active_node()
    data = wrapped(topics("x"), 7).request_data
    nowhere = enveloped(data, client_host_address=b"\1\2\3")
    for request in (wrapped(MetadataRequest(), 12), enveloped(data + b"\0"), nowhere):
        answer = await answer_of(node, request_of(request, 0, to="peer"))
        assert (answer.error_code, answer.response_data) == (ErrorCode.INVALID_REQUEST, None)


async def test_a_broker_learns_that_the_controller_cannot_read_what_it_forwards() -> None:
    """It then closes its client's connection, which may be of a later version (C-ENV-1)."""
    node = active_node()
    data = wrapped(topics("x"), 7).request_data
    for unread in (b"", data[:5], data[:-3], b"\x7f" + data[1:], data[:2] + b"\0\x63" + data[4:]):
        answer = await answer_of(node, request_of(enveloped(unread), 0, to="peer"))
        assert (answer.error_code, answer.response_data) == (ErrorCode.UNSUPPORTED_VERSION, None)


async def test_an_envelope_names_a_client() -> None:
    """Who cannot be read can have no rights (SEC-A13)."""
    node = active_node()
    data = wrapped(topics("x"), 7).request_data
    for principal in (b"", b"\0\1", b"\0\0"):
        envelope = enveloped(data, request_principal=principal)
        answer = await answer_of(node, request_of(envelope, 0, to="peer"))
        assert answer.error_code == ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE


async def test_an_envelope_is_for_the_leader() -> None:
    """The broker then asks the new one."""
    node = StubNode()
    node.raft.leader_id = 2
    answer = await answer_of(node, request_of(wrapped(topics("x"), 7), 0, to="peer"))
    assert answer.error_code == ErrorCode.NOT_CONTROLLER


async def test_an_envelope_says_that_the_controller_has_moved() -> None:
    """A broker that got such an answer inside would pass it on to its client (C-ENV-3)."""
    node = active_node(handover="auto")
    node.raft.foreign_voters = frozenset({2})
    for message, version in ((topics("x"), 7), (topics("x", "y"), 2)):
        answer = await answer_of(node, request_of(wrapped(message, version), 0, to="peer"))
        assert (answer.error_code, answer.response_data) == (ErrorCode.NOT_CONTROLLER, None)
