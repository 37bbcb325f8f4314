"""Rules for parts of requests: by topic, partition, group and transactional id."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.faults.rules import PASS, Need
from kraftwire.faults.selectors import RequestHead
from kraftwire.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kraftwire.messages.alter_configs_request import AlterConfigsRequest, AlterConfigsResource
from kraftwire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kraftwire.messages.describe_log_dirs_request import DescribeLogDirsRequest
from kraftwire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftwire.messages.find_coordinator_request import FindCoordinatorRequest
from kraftwire.messages.metadata_request import MetadataRequest
from kraftwire.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kraftwire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.refusals import SUCCESS, refusal
from tests.unit.faults.test_rules import Server

ORDERS = bytes([7]) * 16
IDS = {ORDERS: "orders"}


def produce(*topics: str, acks: int = -1) -> ProduceRequest:
    """Return a request with two partitions of each topic."""
    return ProduceRequest(
        acks=acks,
        topic_data=[
            TopicProduceData(
                name=name, partition_data=[PartitionProduceData(index=i) for i in (0, 1)]
            )
            for name in topics
        ],
    )


def test_the_other_partitions_are_written() -> None:
    """What is passed on lacks the refused one; the answer has both in the order of the request."""
    server = Server()
    rule = server.add(api="Produce", refuse="NOT_ENOUGH_REPLICAS", topic="or*", partition=1)
    decision = server.decide(produce("audit", "orders"), 9)
    passed: Any = decision.request
    assert [(t.name, len(t.partition_data)) for t in passed.topic_data] == [
        ("audit", 2),
        ("orders", 1),
    ]
    assert decision.changes_response
    joined: Any = decision.changed_response(refusal(passed, 9, lambda _: SUCCESS))
    assert [
        (t.name, p.index, p.error_code) for t in joined.responses for p in t.partition_responses
    ] == [("audit", 0, 0), ("audit", 1, 0), ("orders", 0, 0), ("orders", 1, 19)]
    assert server.decide(produce("audit"), 9) is PASS
    assert rule.count == 1


def test_all_is_refused_if_the_rule_says_so() -> None:
    """With `whole`, because of one partition; or because nothing else is left."""
    server = Server()
    server.add(api="Produce", refuse="NOT_ENOUGH_REPLICAS", topic="orders")
    answer: Any = server.decide(produce("orders"), 9).answer
    assert [p.error_code for t in answer.responses for p in t.partition_responses] == [19, 19]
    server.add(api="Produce", refuse="NOT_ENOUGH_REPLICAS", topic="orders", whole=True)
    answer = server.decide(produce("audit", "orders"), 9).answer
    assert {p.error_code for t in answer.responses for p in t.partition_responses} == {19}


@pytest.mark.parametrize(
    ("topics", "drop"), [(("orders",), "before"), (("audit", "orders"), "after")]
)
def test_a_producer_without_answers_loses_its_connection(
    topics: tuple[str, ...], drop: str
) -> None:
    """As from Kafka: there is no other way to tell it."""
    server = Server()
    server.add(api="Produce", refuse="NOT_ENOUGH_REPLICAS", topic="orders")
    decision = server.decide(produce(*topics, acks=0), 9)
    assert (decision.drop, decision.answer) == (drop, None)
    assert (decision.request is None) == (drop == "before")


def test_topics_are_known_by_their_ids() -> None:
    """From the names that the server knows; an unknown id is no topic of any rule."""
    server = Server()
    server.add(api="Produce", drop="before", topic="orders")
    head = RequestHead(ProduceRequest.API_KEY, 13)
    for topic_id, drop in ((ORDERS, "before"), (bytes(15) + b"1", None)):
        request = ProduceRequest(topic_data=[TopicProduceData(topic_id=topic_id)])
        assert server.rules.need(head, 100) is Need.BODY
        assert server.rules.decide(head, 100, request, IDS.get).drop == drop


def test_groups_and_transactions() -> None:
    """Whatever the field is called, and whatever another field says that it is."""
    server = Server()
    server.add(api="*", drop="before", group="g")
    server.add(api="*", drop="after", transactional_id="t")
    found = [
        server.decide(FindCoordinatorRequest(key="g", key_type=0), 3),
        server.decide(FindCoordinatorRequest(coordinator_keys=["x", "t"], key_type=1)),
        server.decide(FindCoordinatorRequest(coordinator_keys=["g"], key_type=1)),
        server.decide(ConsumerGroupHeartbeatRequest(group_id="g")),
        server.decide(
            AlterConfigsRequest(
                resources=[AlterConfigsResource(resource_type=32, resource_name="g")]
            )
        ),
        server.decide(
            AlterConfigsRequest(
                resources=[AlterConfigsResource(resource_type=2, resource_name="g")]
            )
        ),
    ]
    assert [each.drop for each in found] == ["before", "after", None, "before", "before", None]


def test_an_error_stands_where_kafka_puts_it() -> None:
    """An error of a group at the group, one of a partition at each of its partitions."""
    topics = [OffsetFetchRequestTopics(name="orders", partition_indexes=[0, 1])]
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=name, topics=topics) for name in "gh"]
    )
    server = Server()
    server.add(api="OffsetFetch", refuse="NOT_COORDINATOR", group="g")
    decision = server.decide(request, 9)
    joined: Any = decision.changed_response(refusal(_passed(decision), 9, lambda _: SUCCESS))
    assert [(each.group_id, each.error_code, len(each.topics)) for each in joined.groups] == [
        ("g", ErrorCode.NOT_COORDINATOR, 0),
        ("h", 0, 1),
    ]
    server.add(api="OffsetFetch", refuse="UNSTABLE_OFFSET_COMMIT", group="g")
    decision = server.decide(request, 9)
    joined = decision.changed_response(refusal(_passed(decision), 9, lambda _: SUCCESS))
    partitions = [p.error_code for g in joined.groups for t in g.topics for p in t.partitions]
    assert partitions == [88, 88, 0, 0]


def _passed(decision: Any) -> Any:
    assert decision.request is not None
    return decision.request


def test_an_error_of_a_partition_is_never_at_the_top() -> None:
    """A consumer would only open another session; without partitions there is no place for it."""
    server = Server()
    server.add(api="Fetch", refuse="NOT_LEADER_OR_FOLLOWER")
    answer: Any = server.decide(fetch(-1)).answer
    assert (answer.error_code, answer.responses[0].partitions[0].error_code) == (0, 6)
    server.add(api="Fetch", refuse="UNKNOWN_SERVER_ERROR")
    answer = server.decide(fetch(-1)).answer
    assert (answer.error_code, answer.responses) == (-1, [])


def test_parts_of_transactions() -> None:
    """The partitions of one transaction among those of others."""
    topic = AddPartitionsToTxnTopic(name="orders", partitions=[3])
    request = AddPartitionsToTxnRequest(
        transactions=[
            AddPartitionsToTxnTransaction(transactional_id=name, topics=[topic]) for name in "tu"
        ]
    )
    server = Server()
    server.add(api="AddPartitionsToTxn", refuse="INVALID_TXN_STATE", transactional_id="u")
    passed = _passed(server.decide(request, 5))
    assert [each.transactional_id for each in passed.transactions] == ["t"]


def test_what_is_asked_of_all_topics_is_asked_of_each() -> None:
    """Metadata of all topics, and log directories; a heartbeat without topics repeats the last."""
    server = Server()
    server.add(api="*", drop="before", topic="orders")
    for request, drop in (
        (MetadataRequest(topics=None), "before"),
        (MetadataRequest(topics=[]), None),
        (DescribeLogDirsRequest(topics=None), "before"),
        (ConsumerGroupHeartbeatRequest(subscribed_topic_names=None), None),
        (ConsumerGroupHeartbeatRequest(subscribed_topic_names=["orders"]), "before"),
    ):
        assert server.decide(request).drop == drop, request


def fetch(epoch: int, topic: str = "orders") -> FetchRequest:
    """Return a request of a session's epoch: in all but the first it lists nothing."""
    listed = [FetchTopic(topic=topic, partitions=[FetchPartition(partition=0)])]
    return FetchRequest(
        session_id=5 if epoch > 0 else 0,
        session_epoch=epoch,
        topics=[] if epoch > 0 else listed,
        max_wait_ms=500,
    )


def test_sessions_of_fetch_are_declined_while_a_rule_looks_at_partitions() -> None:
    """Their requests list no partitions: a rule would miss them, or refuse what others read."""
    server = Server()
    rule = server.add(api="Fetch", refuse="OFFSET_OUT_OF_RANGE", topic="orders", times=1)
    answer: Any = server.decide(fetch(1), 12).answer
    assert answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert rule.count == 0
    other: Any = server.decide(fetch(0, "audit"), 12)
    assert (other.request.session_epoch, other.rule) == (-1, None)
    answer = server.decide(fetch(0), 12).answer
    assert (answer.session_id, answer.responses[0].partitions[0].error_code) == (0, 1)
    assert server.decide(fetch(0), 12) is server.decide(fetch(1), 12) is PASS


def test_a_fetch_with_an_error_is_answered_at_once() -> None:
    """Kafka does not wait for records then."""
    server = Server()
    server.add(api="Fetch", refuse="OFFSET_OUT_OF_RANGE", topic="orders")
    request = fetch(-1)
    request.topics += fetch(-1, "audit").topics
    passed = _passed(server.decide(request, 12))
    assert ([each.topic for each in passed.topics], passed.max_wait_ms) == (["audit"], 0)
    assert request.max_wait_ms == 500
