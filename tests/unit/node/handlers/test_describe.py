"""What nodes report about themselves: ApiVersions, Metadata, DescribeCluster, configurations."""

from __future__ import annotations

import pytest

from kraftwire.controller.features import SUPPORTED_FEATURES
from kraftwire.controller.step import config_record
from kraftwire.errors import ApiError
from kraftwire.messages import describe_configs_request as configs
from kraftwire.messages.api_versions_request import ApiVersionsRequest
from kraftwire.messages.describe_cluster_request import DescribeClusterRequest
from kraftwire.messages.describe_configs_request import DescribeConfigsRequest
from kraftwire.messages.describe_quorum_request import DescribeQuorumRequest
from kraftwire.messages.describe_quorum_response import DescribeQuorumResponse
from kraftwire.messages.describe_topic_partitions_request import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from kraftwire.messages.feature_level_record import FeatureLevelRecord
from kraftwire.messages.list_config_resources_request import ListConfigResourcesRequest
from kraftwire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftwire.messages.no_op_record import NoOpRecord
from kraftwire.messages.topic_record import TopicRecord
from kraftwire.node.config_security import ListenerSecurity, NodeSecurity
from kraftwire.properties import Properties
from kraftwire.protocol.endpoint import Endpoint
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.topic_names import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftwire.raft.voters import ReplicaKey, Voter, VoterSet
from kraftwire.security.settings import SecuritySettings
from tests.support.nodes.stub import (
    CLUSTER_ID,
    StubNode,
    answer_of,
    request_of,
    with_brokers,
)

pytestmark = pytest.mark.trio

NAMED = ApiVersionsRequest(client_software_name="x", client_software_version="1")


def _cluster(endpoint_type: int, **more: bool) -> DescribeClusterRequest:
    return DescribeClusterRequest(endpoint_type=endpoint_type, **more)  # type: ignore[arg-type]


async def test_ranges_from_zero_are_hidden_below_version_4() -> None:
    """Older clients treat a range that begins at 0 as an error (KAFKA-17011)."""
    node = with_brokers(StubNode())
    names = {}
    for version in (3, 4):
        answer = await answer_of(node, request_of(NAMED, version))
        names[version] = [feature.name for feature in answer.supported_features]
    own = "kraftwire.version"
    assert names == {3: ["metadata.version", own], 4: [*SUPPORTED_FEATURES, own]}


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "to", "code"),
    [
        (CLUSTER_ID, 1, "client", 0),
        (None, -1, "client", 0),
        (CLUSTER_ID, 2, "client", ErrorCode.REBOOTSTRAP_REQUIRED),
        ("another", 1, "client", ErrorCode.REBOOTSTRAP_REQUIRED),
        ("another", 2, "peer", 0),
    ],
)
async def test_who_means_another_node_begins_anew(
    cluster_id: str | None, node_id: int, to: str, code: int
) -> None:
    """An address may be another node's by now; Kafka's controllers do not look (R-SRV-8)."""
    request = ApiVersionsRequest(
        client_software_name="x",
        client_software_version="1",
        cluster_id=cluster_id,
        node_id=node_id,
    )
    answer = await answer_of(with_brokers(StubNode()), request_of(request, 5, to=to))
    assert answer.error_code == code
    assert bool(answer.api_keys) == (code == 0)


async def test_finalized_levels_are_those_of_the_log() -> None:
    """What is not committed is not in force; the epoch is the offset of the last change."""
    node = with_brokers(StubNode())
    for more, epoch in ((), 0), ((("group.version", 1),), 2):
        answer = await answer_of(node, request_of(NAMED, 4))
        levels = [(f.name, f.max_version_level) for f in answer.finalized_features]
        assert levels == [*more, ("metadata.version", 30)]
        assert answer.finalized_features_epoch == epoch
        node.commit_records((NoOpRecord(), 0))
        node.commit_records((FeatureLevelRecord(name="group.version", feature_level=1), 0))


async def test_a_finalized_kraft_version_is_reported_if_it_is_not_zero() -> None:
    """The level is in control records, so the core knows it (R-SRV-3)."""
    node = with_brokers(StubNode())
    node.raft.kraft_version = 1
    answer = await answer_of(node, request_of(NAMED, 4))
    assert [f.name for f in answer.finalized_features] == ["kraft.version", "metadata.version"]


async def test_metadata_lists_the_brokers_and_the_quorums_topic() -> None:
    """Ordinary consumers find the leader of the log like that of any topic."""
    node = with_brokers(StubNode(), 1, 2)
    node.raft.leader_id = 2
    answer = await answer_of(node, request_of(MetadataRequest(topics=None), 12))
    assert [(b.node_id, b.port) for b in answer.brokers] == [(1, 9091), (2, 9092)]
    assert (answer.cluster_id, answer.controller_id) == (CLUSTER_ID, 2)
    (topic,) = answer.topics
    assert (topic.name, topic.topic_id, topic.is_internal) == (
        METADATA_TOPIC,
        METADATA_TOPIC_ID,
        True,
    )
    (partition,) = topic.partitions
    assert (partition.leader_id, partition.leader_epoch) == (2, 1)
    assert (partition.isr_nodes, partition.offline_replicas) == ([1, 2], [3])


async def test_fenced_brokers_are_not_listed() -> None:
    """A client would wait for a node that is gone."""
    node = with_brokers(StubNode(), 1, is_fenced=True)
    answer = await answer_of(node, request_of(MetadataRequest(topics=[]), 12))
    assert (answer.brokers, answer.controller_id) == ([], -1)


async def test_a_leader_that_is_not_a_broker_cannot_be_read_from() -> None:
    """Clients then retry instead of using an address that they cannot have."""
    node = with_brokers(StubNode(), 1)
    node.raft.leader_id = 3
    answer = await answer_of(node, request_of(MetadataRequest(topics=None), 12))
    partition = answer.topics[0].partitions[0]
    assert (partition.error_code, partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)


async def test_unknown_topics_are_unknown_by_name_and_by_id() -> None:
    """Nothing is created, whatever the client allows."""
    node = with_brokers(StubNode(), 1)
    names = [MetadataRequestTopic(name=name) for name in ("nope", "a b")]
    answer = await answer_of(node, request_of(MetadataRequest(topics=names), 12))
    assert [topic.error_code for topic in answer.topics] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    ]
    ids = [MetadataRequestTopic(name=None, topic_id=bytes(15) + b"\x07")]
    answer = await answer_of(node, request_of(MetadataRequest(topics=ids), 12))
    assert [topic.error_code for topic in answer.topics] == [ErrorCode.UNKNOWN_TOPIC_ID]


async def test_an_empty_list_of_topics_means_all_in_version_0_only() -> None:
    """The oldest clients cannot send null."""
    node = with_brokers(StubNode(), 1)
    for version, count in ((0, 1), (1, 0)):
        answer = await answer_of(node, request_of(MetadataRequest(topics=[]), version))
        assert len(answer.topics) == count


async def test_describe_cluster_lists_brokers_to_clients_and_voters_to_peers() -> None:
    """KIP-919: each kind of listener describes its own kind of node."""
    node = with_brokers(StubNode(), 1, 2)
    brokers = await answer_of(node, request_of(_cluster(1), 2))
    assert [broker.broker_id for broker in brokers.brokers] == [1, 2]
    controllers = await answer_of(node, request_of(_cluster(2), 2, to="peer"))
    assert [(b.broker_id, b.port) for b in controllers.brokers] == [(1, 9191), (2, 9192), (3, 9193)]
    assert (controllers.endpoint_type, controllers.controller_id) == (2, 1)


async def test_a_secured_listener_names_no_address_of_a_plaintext_one() -> None:
    """While it is added to one node after the other, some voters have no address for it."""
    secured = ListenerSecurity(SecuritySettings("SASL_SSL", Properties([], "node.properties")))
    security = NodeSecurity({"CONTROLLER_LOGIN": secured})
    node = with_brokers(StubNode(voter_count=1, security=security), 1)
    both = (Endpoint("CONTROLLER", "127.0.0.1", 9192), Endpoint("CONTROLLER_LOGIN", "here", 9392))
    node.raft.voters = VoterSet.of(*node.raft.voters, Voter(ReplicaKey(2), both))
    request = request_of(_cluster(2), 2, to="peer")
    request.listener = "CONTROLLER_LOGIN"
    controllers = await answer_of(node, request)
    assert [(b.broker_id, b.port) for b in controllers.brokers] == [(2, 9392)]
    request.listener = "ANOTHER_IN_CLEAR"
    controllers = await answer_of(node, request)
    assert [(b.broker_id, b.port) for b in controllers.brokers] == [(1, 9191), (2, 9192)]


async def test_describe_cluster_refuses_the_other_type_by_version() -> None:
    """R-SRV-5: the codes that Kafka's clients turn into their advice."""
    node = with_brokers(StubNode(), 1)
    cases = [
        (request_of(_cluster(2), 2), ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (request_of(_cluster(1), 1, to="peer"), ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (request_of(_cluster(1), 0, to="peer"), ErrorCode.INVALID_REQUEST),
        (request_of(_cluster(3), 2), ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    ]
    for request, code in cases:
        answer = await answer_of(node, request)
        assert (answer.error_code, answer.endpoint_type, answer.cluster_id) == (code, 1, "")


async def test_a_listener_for_all_describes_brokers_and_controllers() -> None:
    """Without process.roles there is only this one."""
    node = with_brokers(StubNode(), 1)
    for kind, count in ((1, 1), (2, 3)):
        answer = await answer_of(node, request_of(_cluster(kind), 2, to="both"))
        assert (answer.error_code, len(answer.brokers)) == (0, count)


async def test_fenced_brokers_are_described_if_asked_for() -> None:
    """KIP-1073: operators look for exactly these."""
    node = with_brokers(StubNode(), 1, is_fenced=True)
    assert not (await answer_of(node, request_of(_cluster(1), 2))).brokers
    answer = await answer_of(node, request_of(_cluster(1, include_fenced_brokers=True), 2))
    assert [broker.is_fenced for broker in answer.brokers] == [True]


async def test_topics_are_described_from_the_cursor_on() -> None:
    """Tools page through topics by name."""
    node = with_brokers(StubNode(), 1)
    topics = [TopicRequest(name=name) for name in ("a", METADATA_TOPIC, "z")]
    request = DescribeTopicPartitionsRequest(
        topics=topics, cursor=Cursor(topic_name=METADATA_TOPIC, partition_index=0)
    )
    answer = await answer_of(node, request_of(request, 0))
    assert [topic.name for topic in answer.topics] == [METADATA_TOPIC, "a", "z"]
    request.cursor = Cursor(topic_name="b", partition_index=0)
    answer = await answer_of(node, request_of(request, 0))
    assert [topic.name for topic in answer.topics] == ["z"]


async def test_configurations_of_this_broker_only_are_described() -> None:
    """Only the other broker knows its properties."""
    node = with_brokers(StubNode(), 1)
    resources = [
        configs.DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=None
        )
        for kind, name in ((4, "1"), (4, "2"), (2, METADATA_TOPIC), (2, "nope"), (77, ""))
    ]
    request = request_of(DescribeConfigsRequest(resources=resources), 4)
    answer = await answer_of(node, request)
    assert [result.error_code for result in answer.results] == [
        ErrorCode.NONE,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
    ]
    values = {config.name: config.value for config in answer.results[0].configs}
    assert values["node.id"] == "1"
    assert values["process.roles"] == "broker,controller"


async def test_a_resource_that_is_named_again_is_described_once() -> None:
    """9,000 times the same topic took 2.4 s and 150 MB of objects (SEC-WORK)."""
    node = with_brokers(StubNode(), 1)
    resources = [
        configs.DescribeConfigsResource(
            resource_type=2, resource_name=METADATA_TOPIC, configuration_keys=keys
        )
        for keys in (None, None, ["retention.ms"], ["retention.ms"])
    ]
    admitted = []

    async def admit(size: int) -> None:
        admitted.append(size)

    request = request_of(DescribeConfigsRequest(resources=resources), 4, admit=admit)
    first, second, third, fourth = (await answer_of(node, request)).results
    assert first is second
    assert third is fourth
    assert len(first.configs) > len(third.configs)
    assert len(admitted) == 1


async def test_a_clients_describe_quorum_goes_to_the_leader() -> None:
    """Only the leader knows who lags (as Kafka's brokers forward it)."""
    node = StubNode()
    node.raft.leader_id = 2
    node.forward_answer = DescribeQuorumResponse()
    answer = await answer_of(node, request_of(DescribeQuorumRequest(), 2))
    assert answer is node.forward_answer
    node.forward_answer = ApiError(ErrorCode.REQUEST_TIMED_OUT, "late")
    answer = await answer_of(node, request_of(DescribeQuorumRequest(), 2))
    assert (answer.error_code, answer.error_message) == (ErrorCode.REQUEST_TIMED_OUT, "late")


async def test_a_peers_describe_quorum_is_answered_here() -> None:
    """Tools follow the leader by themselves; two nodes must not pass a request back and forth."""
    node = StubNode()
    node.raft.leader_id = 2
    node.core_answer = DescribeQuorumResponse()
    for request in (
        request_of(DescribeQuorumRequest(), 2, to="peer"),
        request_of(DescribeQuorumRequest(), 2, to="both", software="kraftwire"),
    ):
        assert await answer_of(node, request) is node.core_answer
    assert node.forwarded == []


async def test_single_configurations_can_be_asked_for() -> None:
    """An empty list asks for all, as clients without a null write it."""
    node = with_brokers(StubNode(), 1)
    counts = {}
    for keys in ((), ("node.id", "nope")):
        resource = configs.DescribeConfigsResource(
            resource_type=4, resource_name="1", configuration_keys=list(keys)
        )
        request = DescribeConfigsRequest(resources=[resource])
        answer = await answer_of(node, request_of(request, 4))
        counts[keys] = len(answer.results[0].configs)
    assert counts[()] > 10
    assert counts["node.id", "nope"] == 1


async def test_what_the_log_configures_is_described_with_its_origin() -> None:
    """On the controller's listener tools ask for topics, groups and client metrics (C-CFG-16)."""
    node = with_brokers(StubNode(), 1)
    node.commit_records(
        config_record(32, "g", "consumer.session.timeout.ms", "50000"),
        config_record(4, "", "log.roll.ms", "5"),
    )
    resources = [
        configs.DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=None
        )
        for kind, name in ((32, "g"), (4, ""), (8, "1"), (8, ""))
    ]
    for synonyms in (False, True):
        message = DescribeConfigsRequest(resources=resources, include_synonyms=synonyms)
        answer = await answer_of(node, request_of(message, 4, to="peer"))
        group, brokers, loggers, nothing = answer.results
        session = next(one for one in group.configs if one.name == "consumer.session.timeout.ms")
        assert (session.value, session.config_source, session.read_only) == ("50000", 8, False)
        names = ["consumer.session.timeout.ms", "group.consumer.session.timeout.ms"]
        assert [one.name for one in session.synonyms] == (names if synonyms else [])
        assert [(one.name, one.read_only) for one in brokers.configs] == [("log.roll.ms", False)]
        assert (loggers.error_code, loggers.configs) == (ErrorCode.NONE, [])
        assert nothing.error_code == ErrorCode.INVALID_REQUEST


async def test_what_the_log_sets_for_brokers_has_a_type_and_what_it_hides() -> None:
    """A tool that shows one value shows the ones below it, too (C-CFG-16)."""
    node = with_brokers(StubNode(), 1)
    node.commit_records(
        config_record(4, "", "request.timeout.ms", "5"),
        config_record(4, "1", "request.timeout.ms", "6"),
        config_record(4, "1", "controller.quorum.voters", "a"),
        config_record(4, "1", "log.preallocate", "true"),
        config_record(4, "1", "plugin.of.mine", "x"),
    )
    resource = configs.DescribeConfigsResource(resource_type=4, resource_name="1")
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    answer = await answer_of(node, request_of(request, 4))
    found = {one.name: one for one in answer.results[0].configs}
    timeout = found["request.timeout.ms"]
    assert (timeout.value, timeout.config_type, timeout.read_only) == ("6", 3, False)
    layers = [(one.value, one.source) for one in timeout.synonyms]
    assert layers == [("6", 2), ("5", 3), ("30000", 5)]
    kinds = "controller.quorum.voters", "log.preallocate", "node.id", "plugin.of.mine"
    assert [found[name].config_type for name in kinds] == [7, 1, 3, 0]
    unknown = found["plugin.of.mine"]
    assert (unknown.value, unknown.is_sensitive) == (None, True)


async def test_resources_that_can_be_described_are_listed() -> None:
    """Of the types asked for, or of all; old clients mean client metrics (KIP-1142)."""
    node = with_brokers(StubNode(), 1)
    node.commit_records(
        (TopicRecord(name="t", topic_id=bytes(15) + b"\x09"), 0),
        config_record(16, "m", "interval.ms", "500"),
        config_record(32, "g", "consumer.session.timeout.ms", "50000"),
        config_record(4, "", "log.roll.ms", "5"),
    )
    everything = [(2, METADATA_TOPIC), (2, "t"), (4, "1"), (8, "1"), (16, "m"), (32, "g")]
    for version, types, expected in (
        (1, [], everything),
        (1, [32, 2, 32], [(32, "g"), (2, METADATA_TOPIC), (2, "t")]),
        (0, [], [(16, "m")]),
    ):
        request = ListConfigResourcesRequest(resource_types=types)
        answer = await answer_of(node, request_of(request, version))
        found = [(one.resource_type, one.resource_name) for one in answer.config_resources]
        assert (answer.error_code, found) == (0, expected)
    request = ListConfigResourcesRequest(resource_types=[2, 3])
    answer = await answer_of(node, request_of(request, 1))
    assert (answer.error_code, answer.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])


async def test_passwords_of_the_log_are_not_described() -> None:
    """They are configurations like others, which brokers keep to themselves."""
    node = with_brokers(StubNode(), 1)
    prefix = "listener.name.controller.ssl.keystore."
    values = {f"{prefix}password": "hush", f"{prefix}type": "PKCS12"}
    node.commit_records(*(config_record(4, "1", key, value) for key, value in values.items()))
    resource = configs.DescribeConfigsResource(
        resource_type=4, resource_name="1", configuration_keys=list(values)
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    answer = await answer_of(node, request_of(request, 4))
    password, kind = answer.results[0].configs
    assert (password.value, password.is_sensitive) == (None, True)
    assert [one.value for one in password.synonyms] == [None]
    assert (kind.value, kind.is_sensitive) == ("PKCS12", False)
