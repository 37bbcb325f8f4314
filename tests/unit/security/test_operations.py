"""What each API asks, and how refusals look (SEC-A10 to SEC-A12)."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire import messages
from kraftwire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftwire.messages.describe_cluster_request import DescribeClusterRequest
from kraftwire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kraftwire.messages.find_coordinator_request import FindCoordinatorRequest
from kraftwire.messages.incremental_alter_configs_request import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraftwire.messages.init_producer_id_request import InitProducerIdRequest
from kraftwire.messages.list_groups_response import ListedGroup, ListGroupsResponse
from kraftwire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftwire.messages.metadata_response import MetadataResponse, MetadataResponseTopic
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.node.handlers.versions import BROKER_VERSIONS, CONTROLLER_VERSIONS
from kraftwire.security.acls import Operation, ResourceType
from kraftwire.security.operations import (
    CLUSTER,
    RULES,
    Access,
    Verdict,
    conceal_response,
    judge_request,
    rule_of,
)
from kraftwire.wire.message import Message

OFFERED = {
    (key, version)
    for table in (CONTROLLER_VERSIONS, BROKER_VERSIONS)
    for key, (low, high) in table.items()
    for version in range(low, high + 1)
}
TOPIC_ID = bytes(range(16))


def nobody(_: Access) -> bool:
    """Allows nothing."""
    return False


def topic_name(topic_id: bytes) -> str | None:
    """One topic is known by its id."""
    return "known" if topic_id == TOPIC_ID else None


def verdict(
    message: Message, version: int, *allowed: Access, is_controller_only: bool = False
) -> Verdict:
    """What is left of a request whose sender may do only this."""
    rule = rule_of(message, is_controller_only=is_controller_only)
    return judge_request(message, version, rule, allowed.__contains__, topic_name)


def refused(message: Message, version: int, *allowed: Access, **values: bool) -> Any:
    """The response to a request that is refused as a whole."""
    found = verdict(message, version, *allowed, **values)
    assert found.permitted is None
    return found.refused


def test_every_api_of_every_listener_has_a_rule() -> None:
    """A forgotten one would ask for ALTER on the cluster."""
    names = {messages.API_NAMES[key] for key, _ in OFFERED}
    assert names == set(RULES)


@pytest.mark.parametrize(("key", "version"), sorted(OFFERED))
def test_a_request_without_rights_is_refused(key: int, version: int) -> None:
    """Empty requests of each version: refused in their own form, unless they ask for nothing."""
    message = messages.request_class(key)()
    name = messages.API_NAMES[key]
    rule = rule_of(message, is_controller_only=key in CONTROLLER_VERSIONS)
    found = judge_request(message, version, rule, nobody, topic_name)
    if rule.cluster is None or rule.element is not None:
        assert found.permitted is message or found.refused is not None
        return
    assert found.permitted is None, name
    assert found.refused is not None
    fields = found.refused.facts().root.fields
    has_code = any(one.attribute == "error_code" and version in one.versions for one in fields)
    assert not has_code or getattr(found.refused, "error_code", 0) == 31, name
    found.refused.encode(version)


def test_replicas_need_cluster_action() -> None:
    """On a controller's listener every Fetch is one of a replica, elsewhere by its id."""
    allowed = Access(Operation.CLUSTER_ACTION, *CLUSTER)
    vote = VoteRequest()
    assert verdict(vote, 2, allowed).permitted is vote
    assert refused(vote, 2, Access(Operation.ALTER, *CLUSTER)).error_code == 31
    consumer = FetchRequest(replica_state=ReplicaState(replica_id=-1))
    assert refused(consumer, 17, is_controller_only=True).error_code == 31
    assert verdict(consumer, 17).permitted is consumer
    replica = FetchRequest(replica_state=ReplicaState(replica_id=1))
    assert refused(replica, 17).error_code == 31
    assert refused(FetchRequest(replica_id=1), 12).error_code == 31
    old = FetchRequest(replica_id=1, topics=[FetchTopic(topic="a", partitions=[FetchPartition()])])
    assert refused(old, 4).responses[0].partitions[0].error_code == 31


def test_describe_cluster() -> None:
    """ALTER for controllers, nothing for brokers (SEC-A10)."""
    brokers = DescribeClusterRequest(endpoint_type=1)
    assert verdict(brokers, 1).permitted is brokers
    assert refused(brokers, 1, is_controller_only=True).error_code == 31
    assert refused(DescribeClusterRequest(endpoint_type=2), 1).error_code == 31


def test_some_topics_are_refused() -> None:
    """They are answered with their partitions; the rest is asked as if it stood alone."""
    read = Access(Operation.READ, ResourceType.TOPIC, "known")
    partitions = [FetchPartition(partition=3), FetchPartition(partition=4)]
    known = FetchTopic(topic_id=TOPIC_ID, partitions=partitions)
    unknown = FetchTopic(topic_id=bytes(16), partitions=partitions)
    request = FetchRequest(topics=[known, unknown])
    found = verdict(request, 17)
    assert isinstance(found.permitted, FetchRequest)
    assert found.permitted.topics == [unknown]
    assert request.topics == [known, unknown]
    response: Any = found.refused
    (topic,) = response.responses
    assert topic.topic_id == TOPIC_ID
    assert [(p.partition_index, p.error_code) for p in topic.partitions] == [(3, 29), (4, 29)]
    assert verdict(request, 17, read).permitted is request
    assert verdict(FetchRequest(topics=[known]), 17).permitted is None


def test_a_topic_without_a_name_needs_the_right_too() -> None:
    """As with Kafka: nobody learns without it what is wrong with a name."""
    request = CreateTopicsRequest(topics=[CreatableTopic(name="")])
    assert [topic.error_code for topic in refused(request, 7).topics] == [29]
    assert verdict(request, 7, Access(Operation.CREATE, ResourceType.TOPIC, "")).permitted


def test_refusals_join_the_answer() -> None:
    """The response has both, whoever made them."""
    topics = [MetadataRequestTopic(name="a"), MetadataRequestTopic(name="b")]
    found = verdict(
        MetadataRequest(topics=topics), 12, Access(Operation.DESCRIBE, ResourceType.TOPIC, "a")
    )
    assert isinstance(found.permitted, MetadataRequest)
    assert found.permitted.topics == topics[:1]
    answer = MetadataResponse(topics=[MetadataResponseTopic(name="a")], cluster_id="x")
    joined = found.joined_response(answer)
    assert isinstance(joined, MetadataResponse)
    assert [(one.name, one.error_code) for one in joined.topics] == [("a", 0), ("b", 29)]
    assert joined.cluster_id == "x"


def test_nothing_is_left_to_ask() -> None:
    """Metadata still tells the brokers, but from version 1 on, where no topics are not all."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name="a")])
    left = verdict(request, 12).permitted
    assert isinstance(left, MetadataRequest)
    assert left.topics == []
    assert refused(request, 0).topics[0].error_code == 29
    everything = MetadataRequest(topics=None)
    assert verdict(everything, 12).permitted is everything


def test_requests_that_are_their_own_element() -> None:
    """A group or a transaction, each with its own code."""
    old = FindCoordinatorRequest(key="g")
    assert refused(old, 3).error_code == 30
    group = Access(Operation.DESCRIBE, ResourceType.GROUP, "g")
    assert verdict(old, 3, group).permitted is old
    new = FindCoordinatorRequest(key_type=1, coordinator_keys=["t", "u"])
    found: Any = refused(new, 6)
    assert [(one.key, one.error_code) for one in found.coordinators] == [("t", 53), ("u", 53)]
    assert refused(InitProducerIdRequest(transactional_id=None), 5).error_code == 31
    assert refused(InitProducerIdRequest(transactional_id="t"), 5).error_code == 53


def test_configurations() -> None:
    """By kind of resource."""
    resources = [
        AlterConfigsResource(resource_type=kind, resource_name="x") for kind in (2, 4, 8, 16, 32)
    ]
    found: Any = refused(IncrementalAlterConfigsRequest(resources=resources), 1)
    codes = [(one.resource_type, one.error_code) for one in found.responses]
    assert codes == [(2, 29), (4, 31), (8, 31), (16, 31), (32, 30)]
    assert found.responses[2].error_message.endswith("this needs CLUSTER_ACTION on the cluster")
    assert found.responses[0].error_message.endswith("this needs ALTER_CONFIGS on TOPIC x")


def test_what_is_concealed() -> None:
    """Topics and groups that nobody named, and operations that one does not have."""
    describe = Access(Operation.DESCRIBE, ResourceType.TOPIC, "a")
    topics = [
        MetadataResponseTopic(name="a", topic_authorized_operations=1),
        MetadataResponseTopic(name="b"),
        MetadataResponseTopic(name="c", error_code=29),
    ]
    response = MetadataResponse(topics=topics, cluster_authorized_operations=1)
    conceal_response(response, lambda access: access == describe, lambda kind, _: 1 << kind)
    assert [one.name for one in response.topics] == ["a", "c"]
    assert response.topics[0].topic_authorized_operations == 1 << ResourceType.TOPIC
    assert response.cluster_authorized_operations == 1 << ResourceType.CLUSTER
    groups = ListGroupsResponse(groups=[ListedGroup(group_id="g"), ListedGroup(group_id="h")])
    group = Access(Operation.DESCRIBE, ResourceType.GROUP, "h")
    conceal_response(groups, lambda access: access == group, lambda *_: 0)
    assert [one.group_id for one in groups.groups] == ["h"]
