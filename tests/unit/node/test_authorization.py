"""Who may ask what of a node: the one place that decides (SEC-A1 to SEC-A14)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from kraftwire.messages import begin_quorum_epoch_request as begin
from kraftwire.messages import end_quorum_epoch_request as end
from kraftwire.messages.access_control_entry_record import AccessControlEntryRecord
from kraftwire.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraftwire.messages.controller_registration_request import ControllerRegistrationRequest
from kraftwire.messages.create_delegation_token_request import CreateDelegationTokenRequest
from kraftwire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftwire.messages.create_topics_response import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsResponse,
)
from kraftwire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftwire.messages.describe_acls_request import DescribeAclsRequest
from kraftwire.messages.describe_acls_response import DescribeAclsResponse
from kraftwire.messages.describe_cluster_request import DescribeClusterRequest
from kraftwire.messages.describe_quorum_request import DescribeQuorumRequest
from kraftwire.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from kraftwire.messages.fetch_request import FetchRequest, ReplicaState
from kraftwire.messages.fetch_snapshot_request import FetchSnapshotRequest
from kraftwire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftwire.messages.produce_request import ProduceRequest, TopicProduceData
from kraftwire.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kraftwire.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from kraftwire.messages.topic_record import TopicRecord
from kraftwire.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kraftwire.messages.vote_request import PartitionData, TopicData, VoteRequest
from kraftwire.node import handlers
from kraftwire.node.authorization import Authorization
from kraftwire.node.config_security import AuthorizerSettings, NodeSecurity
from kraftwire.node.context import Context, Request
from kraftwire.node.logs import RateLimit
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.security.acls import ALLOW, LITERAL, Operation, ResourceType
from kraftwire.security.principal import Principal
from kraftwire.wire.message import Message
from tests.support.nodes.stub import StubNode, request_of

pytestmark = pytest.mark.trio

ROOT, ALICE = Principal("User", "root"), Principal("User", "alice")
SETTINGS = AuthorizerSettings(frozenset({"User:root"}), False)


def acl(operation: int, resource_type: int = ResourceType.CLUSTER, **values: Any) -> Message:
    """The record of an ACL for alice, on the cluster if nothing else is said."""
    return AccessControlEntryRecord(
        id=bytes(15) + bytes([operation]),
        resource_type=resource_type,
        resource_name=values.get("name", "kafka-cluster"),
        pattern_type=LITERAL,
        principal="User:alice",
        host="*",
        operation=operation,
        permission_type=ALLOW,
    )


class Node:
    """A node with an authorizer, and who asks it."""

    def __init__(
        self,
        settings: AuthorizerSettings | None = SETTINGS,
        pins: dict[int, Principal] | None = None,
    ) -> None:
        self.stub = StubNode()
        self.stub.raft.high_watermark = 1
        self.authorization = Authorization(settings, pins or {}, RateLimit(lambda: 0.0))
        self.asked: list[Message] = []
        self.answer: Message | None = None

    async def ask(
        self, message: Message, version: int, who: Principal = ALICE, to: str = "peer"
    ) -> Any:
        """What somebody gets as an answer; a request that goes through is noted."""
        request = request_of(message, version, to=to)
        request.principal, request.host = who, "10.0.0.1"
        handler = handlers.route(request)
        assert handler is not None
        route: Callable[[Request, Context], Awaitable[Message | None]] = handler

        async def noted(request: Request, context: Context) -> Message | None:
            self.asked.append(request.message)
            if isinstance(message, DescribeClusterRequest | MetadataRequest):
                return await route(request, context)
            return self.answer

        context: Any = self.stub
        return await self.authorization.answer(request, context, noted)


async def test_super_users_at_once_others_after_the_acls() -> None:
    """Before they are loaded the answer is no final one (SEC-A4)."""
    node = Node()
    await node.ask(VoteRequest(), 2, ROOT)
    assert len(node.asked) == 1
    answer = await node.ask(VoteRequest(), 2)
    assert answer.error_code == -1
    node.stub.commit_records((acl(Operation.CLUSTER_ACTION), 0))
    await node.ask(VoteRequest(), 2)
    assert len(node.asked) == 2


async def test_acls_of_the_log() -> None:
    """They count as soon as they are committed, and no longer than that."""
    node = Node()
    node.stub.commit_records((acl(Operation.READ, ResourceType.TOPIC, name="a"), 0))
    question = DescribeQuorumRequest()
    assert (await node.ask(question, 2)).error_code == 31
    record = acl(Operation.DESCRIBE)
    node.stub.commit_records((record, 0))
    await node.ask(question, 2)
    assert node.asked == [question]
    assert isinstance(record, AccessControlEntryRecord)
    node.stub.commit_records((RemoveAccessControlEntryRecord(id=record.id), 0))
    answer = await node.ask(question, 2)
    assert (answer.error_code, answer.error_message) == (
        31,
        "not authorized: this needs DESCRIBE on the cluster",
    )


async def test_topics_of_a_client() -> None:
    """What is refused and what is answered stand in one response; what nobody named is hidden."""
    node = Node()
    topic = node.stub.config.topic.name
    node.stub.commit_records((acl(Operation.READ, ResourceType.TOPIC, name="other"), 0))
    everything = await node.ask(MetadataRequest(topics=None), 12, to="client")
    assert everything.topics == []
    named = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    refused = await node.ask(named, 12, to="client")
    assert [(one.name, one.error_code) for one in refused.topics] == [(topic, 29)]
    assert refused.cluster_id
    answer = await node.ask(named, 12, ROOT, to="client")
    assert [(one.name, one.error_code) for one in answer.topics] == [(topic, 0)]
    assert [
        one.name
        for one in (await node.ask(MetadataRequest(topics=None), 12, ROOT, to="client")).topics
    ] == [topic]


async def test_who_creates_a_topic_may_not_see_its_configuration() -> None:
    """That is another right; without it numbers are not told either (C-TOP-7)."""
    node = Node()
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    request = CreateTopicsRequest(topics=[topic, CreatableTopic(name="x")], timeout_ms=9000)

    def answered() -> CreateTopicsResponse:
        configs = [CreatableTopicConfigs(name="retention.ms", value="5")]
        made = CreatableTopicResult(
            name="t", num_partitions=1, replication_factor=1, configs=configs
        )
        refused = CreatableTopicResult(name="x", error_code=ErrorCode.POLICY_VIOLATION)
        return CreateTopicsResponse(topics=[made, refused])

    node.stub.commit_records((acl(Operation.CREATE), 0))
    for record, told in (
        (acl(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, name="u"), (29, -1, -1, 0)),
        (acl(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, name="t"), (0, 1, 1, 1)),
    ):
        node.stub.commit_records((record, 0))
        node.answer = answered()
        made, refused = (await node.ask(request, 7)).topics
        seen = made.topic_config_error_code, made.num_partitions, made.replication_factor
        assert (*seen, len(made.configs)) == told
        assert (refused.error_code, refused.topic_config_error_code) == (44, 0)


async def test_operations_in_an_answer_are_those_of_the_sender() -> None:
    """Not what a node without an authorizer would say (SEC-A14)."""
    node = Node()
    node.stub.commit_records((acl(Operation.ALTER), 0))
    question = DescribeClusterRequest(include_cluster_authorized_operations=True, endpoint_type=2)
    answer = await node.ask(question, 1)
    assert answer.cluster_authorized_operations == 1 << 7 | 1 << 8


async def test_a_producer_that_expects_no_answer() -> None:
    """Its connection is closed."""
    node = Node()
    node.stub.commit_records((acl(Operation.ALTER), 0))
    topics = [TopicProduceData(name="a")]
    assert await node.ask(ProduceRequest(acks=0, topic_data=topics), 9, to="client") is None
    answer = await node.ask(ProduceRequest(acks=1, topic_data=topics), 9, to="client")
    assert answer.responses[0].name == "a"


async def test_acls_are_described() -> None:
    """Those of the log that pass; they cannot be changed here, and without an authorizer there are
    none."""
    node = Node()
    node.stub.commit_records(
        (acl(Operation.DESCRIBE), 0), (acl(Operation.READ, ResourceType.TOPIC, name="a"), 0)
    )
    request = request_of(
        DescribeAclsRequest(
            resource_type_filter=2,
            resource_name_filter=None,
            pattern_type_filter=1,
            principal_filter=None,
            host_filter=None,
            operation=1,
            permission_type=1,
        ),
        3,
        to="peer",
    )
    disabled = await node.stub.answer(request)
    assert isinstance(disabled, DescribeAclsResponse)
    assert disabled.error_code == 54
    node.stub.config = replace(node.stub.config, security=NodeSecurity(authorizer=SETTINGS))
    answer = await node.stub.answer(request)
    assert isinstance(answer, DescribeAclsResponse)
    (resource,) = answer.resources
    assert (resource.resource_type, resource.resource_name) == (2, "a")
    assert [(one.principal, one.operation) for one in resource.acls] == [("User:alice", 3)]
    bad = DescribeAclsRequest(resource_type_filter=99)
    found = await node.stub.answer(request_of(bad, 3, to="peer"))
    assert isinstance(found, DescribeAclsResponse)
    assert found.error_code == 42


async def test_topics_by_their_ids() -> None:
    """An id is as good as the name: it must not be a way around the ACLs."""
    node = Node()
    topic_id = bytes(range(16))
    node.stub.commit_records((TopicRecord(name="a", topic_id=topic_id), 0))
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=None, topic_id=topic_id)])
    answer = await node.ask(request, 6)
    assert [one.error_code for one in answer.responses] == [29]
    assert node.asked == []


def vote_of(replica_id: int) -> VoteRequest:
    """A vote for a replica."""
    return VoteRequest(topics=[TopicData(partitions=[PartitionData(replica_id=replica_id)])])


async def test_a_voter_belongs_to_its_principal() -> None:
    """Kafka does not check that: a broker's certificate can pose as a voter there."""
    for settings in (None, SETTINGS):
        node = Node(settings, {2: ROOT})
        assert (await node.ask(vote_of(2), 2)).error_code == 31
        fetch = FetchRequest(replica_state=ReplicaState(replica_id=2))
        assert (await node.ask(fetch, 17)).error_code == 31
        assert (await node.ask(BeginQuorumEpochRequest(), 1, ROOT)) is None
        await node.ask(vote_of(2), 2, ROOT)
        assert len(node.asked) == 2
    node = Node(None, {2: ROOT})
    await node.ask(vote_of(3), 2)
    assert len(node.asked) == 1


@pytest.mark.parametrize("settings", [None, SETTINGS], ids=["no authorizer", "authorizer"])
@pytest.mark.parametrize(
    ("message", "version"),
    [
        (vote_of(2), 2),
        (
            BeginQuorumEpochRequest(
                topics=[begin.TopicData(partitions=[begin.PartitionData(leader_id=2)])]
            ),
            1,
        ),
        (
            EndQuorumEpochRequest(
                topics=[end.TopicData(partitions=[end.PartitionData(leader_id=2)])]
            ),
            1,
        ),
        (FetchRequest(replica_state=ReplicaState(replica_id=2)), 17),
        (FetchRequest(replica_id=2), 12),
        (FetchSnapshotRequest(replica_id=2), 1),
        (UpdateRaftVoterRequest(voter_id=2), 0),
        (ControllerRegistrationRequest(controller_id=2), 0),
    ],
    ids=lambda value: getattr(value, "NAME", str(value)),
)
async def test_nobody_else_speaks_for_a_pinned_voter(
    message: Message, version: int, settings: AuthorizerSettings | None
) -> None:
    """With every request that names its sender, whether or not there is an authorizer."""
    node = Node(settings, {2: ALICE, 3: Principal("User", "other")})
    node.stub.commit_records((acl(Operation.CLUSTER_ACTION), 0))
    answer = await node.ask(message, version, ROOT)
    assert (answer.error_code, node.asked) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])
    await node.ask(message, version, ALICE)
    assert len(node.asked) == 1


async def test_the_audit_log(caplog: pytest.LogCaptureFixture) -> None:
    """Who was refused what, from where, and by which rule (SEC-A7)."""
    node = Node()
    node.stub.commit_records((acl(Operation.READ, ResourceType.TOPIC, name="a"), 0))
    with caplog.at_level(logging.DEBUG, logger="kraftwire.node"):
        await node.ask(DescribeQuorumRequest(), 2)
        await node.ask(DescribeQuorumRequest(), 2, ROOT)
    lines = [(r.getMessage(), getattr(r, "fields", {})) for r in caplog.records]
    denied = next(fields for event, fields in lines if event == "denied")
    assert {key: str(value) for key, value in denied.items()} == {
        "principal": "User:alice",
        "operation": "DESCRIBE on the cluster",
        "host": "10.0.0.1",
        "api": "DescribeQuorum",
        "rule": "DefaultDeny",
    }
    assert next(fields for event, fields in lines if event == "allowed")["rule"] == "SuperUser"


async def test_tokens_for_others_need_a_right() -> None:
    """Nobody needs one for a token of his own (SEC-A15)."""
    node = Node()
    node.stub.commit_records((acl(Operation.CREATE, ResourceType.TOPIC, name="t"), 0))

    def asked(owner: str) -> CreateDelegationTokenRequest:
        return CreateDelegationTokenRequest(owner_principal_type="User", owner_principal_name=owner)

    for own in (CreateDelegationTokenRequest(), asked("alice")):
        await node.ask(own, 3)
    answer = await node.ask(asked("bob"), 3)
    assert answer.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    record = acl(Operation.CREATE_TOKENS, ResourceType.USER, name="User:bob")
    node.stub.commit_records((record, 0))
    await node.ask(asked("bob"), 3)
    await node.ask(RenewDelegationTokenRequest(), 2)
    assert len(node.asked) == 4
