"""Each fault before a real broker: what the client gets, what the rule counts, what the log has.

The client sends a Produce, and never again, so the log shows what was passed on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
import trio

from kraftwire.errors import ApiError
from kraftwire.faults.rules import FaultRule
from kraftwire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftwire.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kraftwire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftwire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.records import Record, build_batch
from kraftwire.testing import ThreadedProxy, kafka_cluster, proxy
from kraftwire.transport.client_connection import ClientConnection
from kraftwire.wire.message import Message
from tests.support.kafka.class_archive import archive_options
from tests.support.kafka.maven import KAFKA, directory_of, kafka_classpath
from tests.support.kafka.mixed_quorum import wait_until

_TOPIC = "orders"
_PARTITIONS = 40
_LATEST = -1
_TIMEOUT_S = 60.0
# For answers that never come.
_SHORT_S = 1.0

_ADDED = "NONE"
_REFUSED = "NOT_ENOUGH_REPLICAS"
_LOST = "NETWORK_EXCEPTION"
_SILENT = "REQUEST_TIMED_OUT"


def _ask(servers: str, *messages: Message, timeout_s: float = _TIMEOUT_S) -> Any:
    """The answer to the last request of a client that has just connected. Raises: ApiError."""
    host, _, port = servers.rpartition(":")

    async def ask() -> Any:
        connection = await ClientConnection.connect(
            (host, int(port)), client_id="tested", timeout_s=_TIMEOUT_S
        )
        try:
            for message in messages[:-1]:
                await connection.request(message, timeout_s=_TIMEOUT_S)
            return await connection.request(messages[-1], timeout_s=timeout_s)
        finally:
            connection.close()

    return trio.run(ask)


@dataclass
class Broker:
    """A broker with a topic, of which each test takes partitions of its own."""

    servers: str
    topic_id: bytes = b""
    free: Iterator[int] = field(default_factory=count)

    def make_topic(self) -> None:
        """Make the topic, and wait until each partition takes records."""
        topic = CreatableTopic(name=_TOPIC, num_partitions=_PARTITIONS, replication_factor=1)
        self.topic_id = _ask(self.servers, CreateTopicsRequest(topics=[topic])).topics[0].topic_id
        wait_until(
            lambda: all(self.end_offset(number) == 0 for number in range(_PARTITIONS)),
            "every partition has a leader",
        )

    def end_offset(self, partition: int) -> int | None:
        """How many records a partition has, asked without a proxy; None before it has a leader."""
        wanted = ListOffsetsPartition(partition_index=partition, timestamp=_LATEST)
        topic = ListOffsetsTopic(name=_TOPIC, partitions=[wanted])
        answer = _ask(self.servers, ListOffsetsRequest(replica_id=-1, topics=[topic]))
        (found,) = answer.topics[0].partitions
        return None if found.error_code else int(found.offset)

    def request(self, *partitions: int) -> ProduceRequest:
        """A request with a record for each partition."""
        batch = build_batch([Record(0, 0, None, b"one more")])
        data = [PartitionProduceData(index=each, records=batch) for each in partitions]
        topic = TopicProduceData(name=_TOPIC, topic_id=self.topic_id, partition_data=data)
        return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])

    def produce(self, p: ThreadedProxy, *partitions: int, timeout_s: float = _TIMEOUT_S) -> str:
        """Send a record to each partition through a proxy; returns the errors that come back."""
        # Rules are about names, and the newest Produce has ids alone.
        named = MetadataRequest(topics=[MetadataRequestTopic(name=_TOPIC)])
        request = self.request(*partitions)
        try:
            answer = _ask(p.bootstrap_servers, named, request, timeout_s=timeout_s)
        except ApiError as error:
            return error.code.name
        found = answer.responses[0].partition_responses
        codes = {each.index: ErrorCode(each.error_code).name for each in found}
        return " ".join(codes[each] for each in partitions)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """A broker on a controller."""
    kafka_classpath()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KAFKA_OPTS", " ".join(archive_options()))
        with kafka_cluster(1, 1, kafka=directory_of(KAFKA)) as cluster:
            found = Broker(cluster.bootstrap_servers)
            found.make_topic()
            yield found


Add = Callable[..., FaultRule]


def _falsified(response: Any) -> None:
    response.responses[0].partition_responses[0].error_code = ErrorCode.NOT_ENOUGH_REPLICAS


@pytest.mark.parametrize(
    ("add", "got", "appended"),
    [
        (lambda p, **which: p.refuse("Produce", _REFUSED, **which), _REFUSED, 0),
        (lambda p, **which: p.delay("Produce", 0.2, **which), _ADDED, 1),
        (lambda p, **which: p.falsify("Produce", _falsified, **which), _REFUSED, 1),
        (lambda p, **which: p.observe("Produce", **which), _ADDED, 1),
        (lambda p, **which: p.drop("Produce", "before", **which), _LOST, 0),
        (lambda p, **which: p.drop("Produce", "after", **which), _LOST, 1),
        (lambda p, **which: p.throttle("Produce", 1000, **which), _ADDED, 1),
        (lambda p, **which: p.hang_up_at("Produce", 5, **which), _LOST, 1),
        (lambda p, **which: p.script("Produce", [_REFUSED], **which), _REFUSED, 0),
        (lambda p, **which: p.script("Produce", [{"drop": "after"}], **which), _LOST, 1),
    ],
)
def test_the_log_has_what_a_fault_lets_through(
    broker: Broker, add: Add, got: str, appended: int
) -> None:
    """And the rule has met the one request that the client has sent."""
    partition = next(broker.free)
    with proxy(broker.servers) as p, add(p, topic=_TOPIC, partition=partition) as rule:
        assert broker.produce(p, partition) == got
        assert "tested: Produce 1, " in p.summary()
    assert rule.count == len(rule.requests) == 1
    assert broker.end_offset(partition) == appended


@pytest.mark.parametrize(
    ("direction", "appended"), [("both", 0), ("to_server", 0), ("to_client", 1)]
)
def test_a_black_hole_takes_requests_or_answers(
    broker: Broker, direction: Any, appended: int
) -> None:
    """The record that went in on one side is in the log as soon as the broker has it."""
    partition = next(broker.free)
    with proxy(broker.servers) as p:
        with p.black_hole("Produce", direction, partition=partition) as rule:
            assert broker.produce(p, partition, timeout_s=_SHORT_S) == _SILENT
            assert rule.count == 1
        assert broker.produce(p, partition) == _ADDED
    assert broker.end_offset(partition) == appended + 1


@pytest.mark.parametrize("undecided", [False, True])
def test_what_is_held_is_in_the_log_once(broker: Broker, undecided: bool) -> None:
    """Before the end of the rule only if it was carried out."""
    partition = next(broker.free)
    got: list[str] = []
    with proxy(broker.servers) as p:
        client = threading.Thread(target=lambda: got.append(broker.produce(p, partition)))
        with p.hold("Produce", undecided=undecided, partition=partition) as rule:
            client.start()
            rule.wait()
            if not undecided:
                wait_until(lambda: broker.end_offset(partition) == 1, "the record is in the log")
            assert broker.end_offset(partition) == (0 if undecided else 1)
            assert not got
        client.join()
    assert (got, rule.count, broker.end_offset(partition)) == ([_ADDED], 1, 1)


def test_a_script_goes_on_with_each_request(broker: Broker) -> None:
    """And then it is over."""
    partition = next(broker.free)
    answers = [_REFUSED, "NONE", {"drop": "before"}, {"drop": "after"}]
    with proxy(broker.servers) as p, p.script("Produce", answers, partition=partition) as rule:
        got = [broker.produce(p, partition) for _ in range(5)]
    assert got == [_REFUSED, _ADDED, _LOST, _LOST, _ADDED]
    assert (rule.count, broker.end_offset(partition)) == (4, 3)


def test_a_refusal_of_a_part_lets_the_others_be_appended(broker: Broker) -> None:
    """Unless the whole request is refused."""
    first, second = next(broker.free), next(broker.free)
    with proxy(broker.servers) as p:
        with p.refuse("Produce", _REFUSED, partition=first) as rule:
            assert broker.produce(p, first, second) == f"{_REFUSED} {_ADDED}"
        with p.refuse("Produce", _REFUSED, partition=first, whole=True) as whole:
            assert broker.produce(p, first, second) == f"{_REFUSED} {_REFUSED}"
    assert (rule.count, whole.count) == (1, 1)
    assert (broker.end_offset(first), broker.end_offset(second)) == (0, 1)


def test_limits_choose_which_requests_are_lost(broker: Broker) -> None:
    """Every second one, twice; requests for other partitions and of other clients do not count."""
    partition, other = next(broker.free), next(broker.free)
    which = {"partition": partition, "client_id": "test*", "every": 2, "times": 2}
    with (
        proxy(broker.servers) as p,
        p.drop("Produce", "before", **which) as rule,
        p.drop("Produce", "before", client_id="another") as none,
    ):
        got = [broker.produce(p, each) for each in (partition, other) * 6]
    assert got[1::2] == [_ADDED] * 6
    assert got[::2] == [_ADDED, _LOST, _ADDED, _LOST, _ADDED, _ADDED]
    assert (rule.count, none.count) == (2, 0)
    assert (broker.end_offset(partition), broker.end_offset(other)) == (4, 6)
