"""Controllers in the test's process: what they hold, delay, refuse and falsify, without brokers."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kraftwire.client.sync import BlockingConnection
from kraftwire.controller.versions import SUPPORTED_FEATURES
from kraftwire.errors import ApiError, StorageError, UsageError
from kraftwire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftwire.messages.broker_registration_request import BrokerRegistrationRequest, Feature
from kraftwire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftwire.messages.describe_cluster_request import DescribeClusterRequest
from kraftwire.messages.envelope_request import EnvelopeRequest
from kraftwire.messages.request_header import RequestHeader
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.payloads import encode_request
from kraftwire.security.principal import ANONYMOUS, encode_principal
from kraftwire.testing import Cluster, kafka_cluster
from kraftwire.wire.message import Message

BROKER = 7


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three controllers, and no broker."""
    folder, short = tmp_path_factory.mktemp("cluster"), {"broker.session.timeout.ms": 1000}
    with kafka_cluster(3, 0, folder=folder, properties=short) as found:
        yield found


@pytest.fixture(autouse=True)
def without_rules(cluster: Cluster) -> Iterator[None]:
    """Each test begins without rules."""
    yield
    cluster.controller._faults.clear()


def ask(cluster: Cluster, message: Message) -> Any:
    """Send a request to the active controller."""
    leader = cluster.controller.leader()
    address = cluster.bootstrap_controllers.split(",")[leader - 1]
    host, port = address.split(":")
    with BlockingConnection((host, int(port)), client_id="test", timeout_s=30) as connection:
        return connection.request(message)


def create(cluster: Cluster) -> Any:
    """Ask for a topic that no broker can hold; returns the answer about it."""
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    return ask(cluster, CreateTopicsRequest(topics=[topic])).topics[0]


def register(cluster: Cluster) -> int:
    """Register a broker as one does; returns its epoch."""
    features = [
        Feature(name=name, min_supported_version=low, max_supported_version=high)
        for name, (low, high) in SUPPORTED_FEATURES.items()
    ]
    request = BrokerRegistrationRequest(
        broker_id=BROKER,
        cluster_id=cluster.cluster_id,
        incarnation_id=b"7" * 16,
        features=features,
        log_dirs=[b"8" * 16],
    )
    answer = ask(cluster, request)
    assert answer.error_code == ErrorCode.NONE
    return int(answer.broker_epoch)


def beat(cluster: Cluster, epoch: int) -> bool:
    """Send a heartbeat that wants to be unfenced; returns whether the broker is fenced."""
    request = BrokerHeartbeatRequest(
        broker_id=BROKER, broker_epoch=epoch, current_metadata_offset=1 << 40, want_fence=False
    )
    return bool(ask(cluster, request).is_fenced)


def test_a_refusal_has_the_error_and_decides_nothing(cluster: Cluster) -> None:
    """In the elements, as the API has it; for as many requests as wanted."""
    with cluster.controller.refuse("CreateTopics", "POLICY_VIOLATION", times=1) as rule:
        assert create(cluster).error_code == ErrorCode.POLICY_VIOLATION
        assert create(cluster).error_code == ErrorCode.INVALID_REPLICATION_FACTOR
        assert rule.count == 1
    with cluster.controller.refuse("CreateTopics", "POLICY_VIOLATION"):
        assert create(cluster).error_code == ErrorCode.POLICY_VIOLATION
    assert create(cluster).error_code == ErrorCode.INVALID_REPLICATION_FACTOR


def test_the_newest_rule_counts_and_others_pass(cluster: Cluster) -> None:
    """A rule about one broker leaves others alone."""
    with (
        cluster.controller.refuse("DescribeCluster", "UNKNOWN_SERVER_ERROR"),
        cluster.controller.refuse("DescribeCluster", "REQUEST_TIMED_OUT"),
        cluster.controller.refuse("BrokerHeartbeat", "UNKNOWN_SERVER_ERROR", broker=BROKER + 1),
    ):
        answer = ask(cluster, DescribeClusterRequest(endpoint_type=2))
        assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
        heartbeat = BrokerHeartbeatRequest(broker_id=BROKER, broker_epoch=-1)
        assert ask(cluster, heartbeat).error_code != ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("undecided", [False, True])
def test_an_answer_is_held_until_its_rule_is_removed(cluster: Cluster, undecided: bool) -> None:
    """And the sender waits."""
    answers: list[Any] = []
    sender = threading.Thread(target=lambda: answers.append(create(cluster)))
    with cluster.controller.hold("CreateTopics", undecided=undecided) as rule:
        sender.start()
        rule.wait()
        assert not answers
    sender.join()
    assert answers[0].error_code == ErrorCode.INVALID_REPLICATION_FACTOR


def test_an_answer_is_delayed(cluster: Cluster) -> None:
    """By the controllers' clock."""
    cluster.controller.delay("CreateTopics", 0.2)
    before = time.monotonic()
    create(cluster)
    assert time.monotonic() - before >= 0.2


def test_a_topic_is_refused_and_another_decided(cluster: Cluster) -> None:
    """Each as if it stood alone, in the order of the request."""
    topics = [
        CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in ("t", "u")
    ]
    with cluster.controller.refuse("CreateTopics", "POLICY_VIOLATION", topic="t"):
        answer = ask(cluster, CreateTopicsRequest(topics=topics))
    assert [(each.name, each.error_code) for each in answer.topics] == [
        ("t", ErrorCode.POLICY_VIOLATION),
        ("u", ErrorCode.INVALID_REPLICATION_FACTOR),
    ]


@pytest.mark.parametrize("is_forwarded", [False, True])
def test_a_connection_ends_in_place_of_an_answer(cluster: Cluster, is_forwarded: bool) -> None:
    """Also where a broker forwards the request of a client."""
    request: Message = CreateTopicsRequest()
    if is_forwarded:
        header = RequestHeader(
            request_api_key=request.API_KEY, request_api_version=7, correlation_id=1, client_id="c"
        )
        request = EnvelopeRequest(
            request_data=encode_request(header, request),
            request_principal=encode_principal(ANONYMOUS),
            client_host_address=bytes([127, 0, 0, 1]),
        )
    rule = cluster.controller.drop("CreateTopics", "after")
    with pytest.raises(ApiError, match="closed"):
        ask(cluster, request)
    assert rule.count == 1


def test_an_answer_is_falsified(cluster: Cluster) -> None:
    """In place, or by another message."""

    def lie(answer: Any) -> None:
        answer.topics[0].error_code = ErrorCode.NONE

    cluster.controller.falsify("CreateTopics", lie)
    assert create(cluster).error_code == ErrorCode.NONE


def test_a_broker_is_fenced_by_rule_and_by_time(cluster: Cluster) -> None:
    """Although its heartbeats want otherwise, until the rule ends; then by its session."""
    epoch = register(cluster)
    assert not beat(cluster, epoch)

    def beat_until_fenced() -> None:
        while not beat(cluster, epoch):
            pass

    broker = threading.Thread(target=beat_until_fenced)
    broker.start()
    with cluster.controller.fence(BROKER):
        broker.join()
        assert beat(cluster, epoch)
    assert not beat(cluster, epoch)
    cluster.controller.advance_clock(10)
    cluster.controller.wait_fenced(BROKER)
    assert not beat(cluster, epoch)


def test_the_leadership_changes_at_once(cluster: Cluster) -> None:
    """Another controller leads; and again, where one is killed."""
    first = cluster.controller.leader()
    second = cluster.controller.change_leader()
    assert second != first
    cluster.controller.kill(second)
    third = cluster.controller.leader()
    assert third != second
    with pytest.raises(UsageError, match=f"controller {second} is not running"):
        cluster.controller.kill(second)
    cluster.controller.start(second)
    with pytest.raises(UsageError, match="there is no controller 9, only 1, 2, 3"):
        cluster.controller.start(9)


def test_unknown_names_are_refused(cluster: Cluster) -> None:
    """A rule about nothing would make a test pass."""
    for api in ("AlterPartitions", "ListGroups"):
        with pytest.raises(UsageError, match=f"there is no API '{api}' here"):
            cluster.controller.refuse(api, "NOT_CONTROLLER")
    with pytest.raises(UsageError, match="there is no error 'NOT_LEADER'"):
        cluster.controller.refuse("AlterPartition", "NOT_LEADER")
    with pytest.raises(UsageError, match="there is no broker 101"):
        cluster.controller.fence(101)
    with pytest.raises(UsageError, match="there is no broker 101"):
        cluster.kill(101)


def test_a_rule_without_an_effect_is_refused(cluster: Cluster) -> None:
    """About no request, or about time that does not pass."""
    with pytest.raises(UsageError, match="times: expected a whole number of at least 1, found 0"):
        cluster.controller.hold("AlterPartition", times=0)
    with pytest.raises(UsageError, match="delay: expected a number of at least 0, found -1"):
        cluster.controller.delay("AlterPartition", -1)
    with pytest.raises(UsageError, match="time goes forward only, not by -1 s"):
        cluster.controller.advance_clock(-1)


def test_a_node_that_cannot_start_says_why(tmp_path: Path) -> None:
    """Instead of a test that hangs."""
    with kafka_cluster(1, 0, folder=tmp_path) as lone:
        lone.controller.kill(1)
        (tmp_path / "node-1" / "data" / "meta.properties").write_text("version=7\n")
        with pytest.raises(StorageError, match=r"meta\.properties"):
            lone.controller.start(1)
