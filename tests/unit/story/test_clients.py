"""The story of clients: what failed, what was sent again, where, and how it ended."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from kraftwire.capture.framing.frames import Ending
from kraftwire.capture.framing.health import Health
from kraftwire.cli.main import main
from kraftwire.decode.body.frame import Frame, FrameDecoder
from kraftwire.decode.body.records import Settings
from kraftwire.inspect.stories.clients import ClientsWriter
from kraftwire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftwire.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from kraftwire.messages.describe_cluster_request import DescribeClusterRequest
from kraftwire.messages.describe_cluster_response import (
    DescribeClusterBroker,
    DescribeClusterResponse,
)
from kraftwire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftwire.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from kraftwire.messages.find_coordinator_request import FindCoordinatorRequest
from kraftwire.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from kraftwire.messages.heartbeat_request import HeartbeatRequest
from kraftwire.messages.heartbeat_response import HeartbeatResponse
from kraftwire.messages.metadata_request import MetadataRequest
from kraftwire.messages.metadata_response import MetadataResponse, MetadataResponseBroker
from kraftwire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraftwire.messages.produce_response import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.records import BatchHeader, Record, build_batch
from kraftwire.story.clients import story as story_module
from kraftwire.wire.message import Message
from tests.support.captures.frames import FrameMaker

PROXY = Path(__file__).resolve().parents[2] / "golden" / "captures" / "proxy.pcapng.xz"
FIRST = "10.0.0.1:50000-10.0.0.2:9092"
OTHER = "10.0.0.1:50001-10.0.0.3:9092"
AGAIN = "10.0.0.1:50002-10.0.0.2:9092"
UPSTREAM = "10.0.0.9:1-10.0.0.8:9092"
Seen = Frame | Ending


class Dialogue:
    """Frames of several connections, in the order of one clock."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        # The makers of frames by connection, and when each was used.
        self._makers: dict[str, tuple[FrameMaker, float]] = {}
        self._now = 0.0

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self._now += seconds

    def ask(
        self, body: Message, version: int, connection: str = FIRST,
        **more: Any,
    ) -> None:
        """Send a request."""
        self.seen.append(self._maker(connection).request(body, version, **more))

    def answer(self, body: Message, connection: str = FIRST) -> None:
        """Answer the last request of a connection, a millisecond later."""
        self.wait(0.001)
        self.seen.append(self._maker(connection).response(body, 0))

    def end(
        self, connection: str = FIRST, *, by_client: bool = False
    ) -> None:
        """End a connection."""
        time_ns = round((1000 + self._now) * 1e9)
        self.seen.append(Ending(connection, time_ns, is_by_client=by_client, is_reset=False))

    def _maker(self, connection: str) -> FrameMaker:
        maker, time = self._makers.get(connection, (FrameMaker(connection), 0.0))
        maker.wait(self._now - time)
        self._makers[connection] = maker, self._now
        return maker


def written(
    dialogue: Dialogue,
    passed_on: dict[str, str] | None = None,
    *,
    unwanted: tuple[int, ...] = (),
) -> dict[str, Any]:
    """The story as JSON; frames of numbers that are `unwanted` did not pass a filter."""
    stream = io.StringIO()
    settings = Settings()
    writer = ClientsWriter(stream, topics=settings.topics, as_json=True)
    if passed_on:
        writer.begin_capture(Health(passed_on=passed_on))
    decoder = FrameDecoder(settings)
    for number, each in enumerate(dialogue.seen):
        if isinstance(each, Ending):
            writer.ending(each)
        else:
            show = writer.unwanted if number in unwanted else writer.frame
            show(decoder.decode(each))
    writer.finish()
    found: dict[str, Any] = json.loads(stream.getvalue())
    return found


def texts(found: dict[str, Any]) -> list[str]:
    """What the events say."""
    return [each["text"] for each in found["events"]]


def produce(value: bytes = b"a", sequence: int | None = 3, *partitions: int) -> ProduceRequest:
    """A Produce to partitions of orders, by default to the first one; idempotent if it has a
    sequence.
    """
    header = BatchHeader()
    if sequence is not None:
        header = BatchHeader(producer_id=7, producer_epoch=0, base_sequence=sequence)
    batch = build_batch([Record(0, 0, None, value)], header)
    parts = [PartitionProduceData(index=each, records=batch) for each in partitions or (0,)]
    data = [TopicProduceData(name="orders", partition_data=parts)]
    return ProduceRequest(acks=-1, topic_data=data)


def produced(*results: tuple[int, int]) -> ProduceResponse:
    """An answer with error and base offset for each of the partitions from 0 on."""
    parts = [
        PartitionProduceResponse(index=index, error_code=code, base_offset=offset)
        for index, (code, offset) in enumerate(results)
    ]
    return ProduceResponse(
        responses=[TopicProduceResponse(name="orders", partition_responses=parts)]
    )


def test_a_lost_answer_is_followed_to_its_retry() -> None:
    """On a new connection; without the node's first answer nothing is said of a duplicate."""
    story = Dialogue()
    story.ask(produce(), 9)
    story.wait(0.5)
    story.end()
    story.wait(0.1)
    story.ask(produce(), 9, AGAIN)
    story.answer(produced((0, 5)), AGAIN)
    found = written(story)
    assert texts(found) == [
        "Produce of orders-0 (sequence 3) to 10.0.0.2:9092: no answer, the server ends the "
        "connection after 500 ms; sent again after 100 ms on a new connection: done, 601 ms after "
        "the first try"
    ]
    (one,) = found["requests"]
    assert one["parts"] == [
        {"topic": "orders", "partition": 0, "producerId": 7, "producerEpoch": 0, "baseSequence": 3}
    ]
    assert [each["outcome"] for each in one["tries"]] == ["lost", "done"]
    assert one["ending"] == "done"
    (client,) = found["clients"]
    assert (client["requests"], client["failed"], client["sentAgain"]) == (2, 1, 1)


def test_other_batches_for_the_same_partition_are_no_retry() -> None:
    """A sequence tells batches apart; without one their bytes do."""
    for first, second in [
        (produce(sequence=3), produce(sequence=4)),
        (produce(b"a", None), produce(b"b", None)),
    ]:
        story = Dialogue()
        story.ask(first, 9)
        story.end()
        story.ask(second, 9, AGAIN)
        story.answer(produced((0, 5)), AGAIN)
        (text,) = texts(written(story))
        assert text.endswith("the same batch is not sent again in what was recorded")


def test_the_same_batch_without_a_sequence_is_a_retry() -> None:
    """Its bytes are the same."""
    story = Dialogue()
    story.ask(produce(sequence=None), 9)
    story.answer(produced((ErrorCode.NOT_ENOUGH_REPLICAS, -1)))
    story.wait(0.2)
    story.ask(produce(sequence=None), 9)
    story.answer(produced((0, 5)))
    assert texts(written(story)) == [
        "Produce of orders-0 to 10.0.0.2:9092: NOT_ENOUGH_REPLICAS; sent again after 200 ms: done, "
        "202 ms after the first try"
    ]


def through_proxy(sequence: int | None, *offsets: int) -> dict[str, Any]:
    """A lost answer and the retry, through a proxy; the node appends them at these offsets."""
    story = Dialogue()
    for at, offset in enumerate(offsets):
        story.ask(produce(sequence=sequence), 9)
        story.ask(produce(sequence=sequence), 9, UPSTREAM)
        story.wait(0.009)
        story.answer(produced((0, offset)), UPSTREAM)
        if at == len(offsets) - 1:
            story.answer(produced((0, offset)))
        else:
            story.end()
            story.wait(0.1)
    return written(story, {UPSTREAM: FIRST})


def test_a_duplicate_that_the_broker_recognises_is_called_so() -> None:
    """The answer to it has the offset of the first append, which the proxy's other side shows."""
    found = through_proxy(3, 5, 5)
    assert texts(found) == [
        "Produce of orders-0 (sequence 3) to 10.0.0.2:9092: no answer, the proxy ends the "
        "connection after 10 ms (the node had appended it at offset 5); sent again after 100 ms: a "
        "duplicate that the node recognises (offset 5), 121 ms after the first try"
    ]
    (client,) = found["clients"]
    assert client["requests"] == 2
    assert client["endings"] == {"duplicate": 1}


def test_a_batch_that_was_appended_twice_is_called_so() -> None:
    """As nothing tells the broker that it has it already."""
    (event,) = through_proxy(None, 5, 6)["events"]
    assert event["kind"] == "appended-twice"
    assert event["text"].endswith(": appended a second time (offset 6), 121 ms after the first try")


def test_partitions_of_a_lost_request_are_judged_by_their_own_offsets() -> None:
    """One was appended by the first try, the other was not."""
    story = Dialogue()
    first = produced((0, 5), (ErrorCode.NOT_ENOUGH_REPLICAS, -1))
    for results in (first, produced((0, 5), (0, 9))):
        story.ask(produce(b"a", 3, 0, 1), 9)
        story.ask(produce(b"a", 3, 0, 1), 9, UPSTREAM)
        story.answer(results, UPSTREAM)
        if results is first:
            story.end()
        else:
            story.answer(results)
    found = written(story, {UPSTREAM: FIRST})
    assert {each["parts"][0]["partition"]: each["ending"] for each in found["requests"]} == {
        0: "duplicate", 1: "done",
    }  # fmt: skip


def test_the_brokers_word_for_a_duplicate_is_enough() -> None:
    """DUPLICATE_SEQUENCE_NUMBER is a success for producers."""
    story = Dialogue()
    story.ask(produce(), 9)
    story.end()
    story.ask(produce(), 9, AGAIN)
    story.answer(produced((ErrorCode.DUPLICATE_SEQUENCE_NUMBER, -1)), AGAIN)
    assert [each["ending"] for each in written(story)["requests"]] == ["duplicate"]


def test_a_request_that_a_proxy_refuses_was_not_passed_on() -> None:
    """The node never saw it."""
    story = Dialogue()
    story.ask(MetadataRequest(), 9)
    story.ask(MetadataRequest(), 9, UPSTREAM)
    story.ask(produce(), 9)
    story.answer(produced((ErrorCode.NOT_ENOUGH_REPLICAS, -1)))
    (text,) = texts(written(story, {UPSTREAM: FIRST}))
    assert "NOT_ENOUGH_REPLICAS (the proxy did not pass it on); the same batch is not sent" in text


def test_parts_of_a_request_have_histories_of_their_own() -> None:
    """One partition fails, another does not; the retry of the first goes to another broker."""
    story = Dialogue()
    story.ask(produce(b"a", 3, 0, 1), 9)
    story.answer(produced((ErrorCode.NOT_LEADER_OR_FOLLOWER, -1), (0, 8)))
    story.wait(0.1)
    story.ask(produce(b"a", 3, 0), 9, OTHER)
    story.answer(produced((0, 8)), OTHER)
    assert texts(written(story)) == [
        "Produce of orders-0 (sequence 3) to 10.0.0.2:9092: NOT_LEADER_OR_FOLLOWER; sent again "
        "after 100 ms to 10.0.0.3:9092: done, 102 ms after the first try"
    ]


def test_parts_of_a_lost_request_may_end_in_different_ways() -> None:
    """One history becomes two."""
    story = Dialogue()
    story.ask(produce(b"a", 3, 0, 1), 9)
    story.end()
    story.ask(produce(b"a", 3, 0, 1), 9, AGAIN)
    story.answer(produced((0, 8), (ErrorCode.NOT_ENOUGH_REPLICAS, -1)), AGAIN)
    found = written(story)
    assert {each["parts"][0]["partition"]: each["ending"] for each in found["requests"]} == {
        0: "done", 1: "not-again",
    }  # fmt: skip
    assert [each["count"] for each in found["requests"]] == [2, 2]


def test_a_batch_that_is_sent_again_before_its_answer_timed_out() -> None:
    """librdkafka leaves the connection open; the late answer shows that the first was appended."""
    story = Dialogue()
    story.ask(produce(), 9)
    late = story.seen[0]
    assert isinstance(late, Frame)
    story.wait(2)
    story.ask(produce(), 9, AGAIN)
    story.answer(produced((0, 5)))
    story.answer(produced((0, 5)), AGAIN)
    (text,) = texts(written(story))
    assert "no answer within 2 s (the node had appended it at offset 5); sent again at once" in text
    assert ": a duplicate that the node recognises (offset 5)" in text


def test_tries_that_fail_are_counted_with_their_errors() -> None:
    """And the pauses between them; after a refusal by a coordinator the search for another."""
    story = Dialogue()
    for code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):
        story.ask(HeartbeatRequest(group_id="g"), 4)
        story.answer(HeartbeatResponse(error_code=code))
        story.wait(0.1)
    story.ask(FindCoordinatorRequest(coordinator_keys=["g"]), 4)
    story.answer(FindCoordinatorResponse(coordinators=[Coordinator(key="g")]))
    story.wait(0.2)
    story.ask(HeartbeatRequest(group_id="g"), 4)
    story.answer(HeartbeatResponse())
    (text,) = texts(written(story))
    assert text == (
        "Heartbeat of g to 10.0.0.2:9092: NOT_COORDINATOR; sent again 2 times, each after 100 ms "
        "to 301 ms (COORDINATOR_LOAD_IN_PROGRESS 1): done, 404 ms after the first try"
    )


def test_a_search_for_the_coordinator_is_told_of_the_group_that_lost_it() -> None:
    """Not of another group."""
    for key, is_told in (("g", True), ("other", False)):
        story = Dialogue()
        story.ask(HeartbeatRequest(group_id="g"), 4)
        story.answer(HeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR))
        story.ask(FindCoordinatorRequest(coordinator_keys=[key]), 4)
        story.answer(FindCoordinatorResponse(coordinators=[Coordinator(key=key)]))
        story.ask(HeartbeatRequest(group_id="g"), 4)
        story.answer(HeartbeatResponse())
        (text,) = texts(written(story))
        assert ("FindCoordinator in between" in text) == is_told


def test_a_rebalance_is_no_failure() -> None:
    """Members are told to join again in this way."""
    story = Dialogue()
    story.ask(HeartbeatRequest(group_id="g"), 4)
    story.answer(HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    assert not texts(written(story))


def fetch(*partitions: int, session: int = 0) -> FetchRequest:
    """A Fetch that lists these partitions of orders."""
    parts = [FetchPartition(partition=each) for each in partitions]
    topics = [FetchTopic(topic="orders", partitions=parts)] if parts else []
    return FetchRequest(max_wait_ms=500, session_id=session, topics=topics)


def fetched(**codes: int) -> FetchResponse:
    """An answer to a Fetch, with an error code for each partition, such as p0."""
    parts = [
        PartitionData(partition_index=int(name[1:]), error_code=code)
        for name, code in codes.items()
    ]
    topics = [FetchableTopicResponse(topic="orders", partitions=parts)] if parts else []
    return FetchResponse(session_id=9, responses=topics)


def test_the_requests_of_a_session_continue_what_their_answers_name() -> None:
    """They list only what has changed; the answer names a partition whose error has gone."""
    story = Dialogue()
    story.ask(fetch(0, 1), 12)
    story.answer(fetched(p0=ErrorCode.NOT_LEADER_OR_FOLLOWER, p1=0))
    story.wait(0.1)
    story.ask(fetch(session=9), 12)
    story.answer(fetched())
    story.ask(fetch(session=9), 12)
    story.answer(fetched(p0=0))
    (text,) = texts(written(story))
    assert text == (
        "Fetch of orders-0 to 10.0.0.2:9092: NOT_LEADER_OR_FOLLOWER; sent again after 101 ms: "
        "done, 103 ms after the first try"
    )


def test_a_consumer_that_leaves_has_no_failure() -> None:
    """Its Fetch waits for records when it ends the connection; a time that ran out is told."""
    for seconds, is_told in ((1.4, False), (30, True)):
        story = Dialogue()
        story.ask(fetch(0), 12)
        story.wait(seconds)
        story.end(by_client=True)
        story.ask(fetch(0), 12, AGAIN)
        story.answer(fetched(p0=0), AGAIN)
        found = texts(written(story))
        assert len(found) == is_told
        assert all("no answer, the client ends the connection after 30 s" in each for each in found)


def test_a_request_that_names_nothing_is_known_by_its_body() -> None:
    """And one that is never sent again is said to be so; repetitions are one line."""
    story = Dialogue()
    refused = DescribeClusterResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    for is_whole in (True, False):
        story.ask(DescribeClusterRequest(include_cluster_authorized_operations=is_whole), 0)
        story.answer(refused)
    story.ask(DescribeClusterRequest(include_cluster_authorized_operations=True), 0)
    story.answer(DescribeClusterResponse())
    found = written(story)
    assert sorted(each["ending"] for each in found["requests"]) == ["done", "not-again"]


def create(*names: str) -> CreateTopicsRequest:
    """A request for topics."""
    return CreateTopicsRequest(topics=[CreatableTopic(name=each) for each in names])


def created(**codes: int) -> CreateTopicsResponse:
    """An answer with these errors."""
    return CreateTopicsResponse(
        topics=[CreatableTopicResult(name=name, error_code=code) for name, code in codes.items()]
    )


def test_what_was_not_recorded_is_not_told() -> None:
    """After half a minute without any packet nobody knows whether it was sent again."""
    story = Dialogue()
    story.ask(create("a"), 5)
    story.answer(created(a=ErrorCode.NOT_CONTROLLER))
    story.ask(create("b"), 5)
    story.wait(60)
    story.ask(create("a"), 5, AGAIN)
    story.answer(created(a=0), AGAIN)
    found = written(story)
    assert texts(found) == [
        "CreateTopics of a to 10.0.0.2:9092: NOT_CONTROLLER; what follows is not recorded",
        "nothing is recorded for 60 s",
    ]


def test_a_request_that_waits_at_the_end_is_open() -> None:
    """Unless it was just sent, or waits for records as it should."""
    story = Dialogue()
    story.ask(create("a"), 5)
    story.wait(3)
    story.ask(create("b"), 5, OTHER)
    story.ask(fetch(0), 12, AGAIN)
    assert texts(written(story)) == [
        "CreateTopics of a to 10.0.0.2:9092: no answer when the recording ends"
    ]


def test_a_request_that_is_passed_over_has_no_answer() -> None:
    """Servers answer in order: none comes any more."""
    story = Dialogue()
    story.ask(create("a"), 5)
    story.ask(create("b"), 5)
    first, second = story.seen
    assert isinstance(first, Frame)
    assert isinstance(second, Frame)
    assert first.request
    assert second.request
    second.request.skipped = (first.request,)
    story.answer(created(b=0))
    (text,) = texts(written(story))
    assert text.startswith("CreateTopics of a to 10.0.0.2:9092: no answer, although later requests")


def test_a_lost_packet_is_no_lost_answer() -> None:
    """The server sent it, and the capture lacks it."""
    story = Dialogue()
    story.ask(create("a"), 5)
    (first,) = story.seen
    assert isinstance(first, Frame)
    assert first.request
    first.request.lost = (1, 30)
    story.ask(create("b"), 5)
    assert isinstance(story.seen[1], Frame)
    assert story.seen[1].request
    story.seen[1].request.skipped = (first.request,)
    story.answer(created(b=0))
    assert not texts(written(story))


def test_brokers_are_named_once_an_answer_has() -> None:
    """Also those of a cluster that calls itself localhost."""
    story = Dialogue()
    brokers = [
        MetadataResponseBroker(node_id=4, host="10.0.0.2", port=9092),
        MetadataResponseBroker(node_id=5, host="localhost", port=1),
    ]
    story.ask(MetadataRequest(), 9)
    story.answer(MetadataResponse(brokers=brokers))
    for connection in (FIRST, "127.0.0.1:7-127.0.0.1:1"):
        story.ask(create("a"), 5, connection)
        story.answer(created(a=ErrorCode.TOPIC_ALREADY_EXISTS), connection)
    found = texts(written(story))
    assert ["broker 4" in found[0], "broker 5" in found[1]] == [True, True]


def test_controllers_are_called_so() -> None:
    """An answer to DescribeCluster says which kind it lists."""
    story = Dialogue()
    nodes = [DescribeClusterBroker(broker_id=3, host="10.0.0.2", port=9092)]
    story.ask(DescribeClusterRequest(endpoint_type=2), 1)
    story.answer(DescribeClusterResponse(endpoint_type=2, brokers=nodes))
    story.ask(create("a"), 5)
    story.answer(created(a=ErrorCode.NOT_CONTROLLER))
    (text,) = texts(written(story))
    assert "to controller 3: NOT_CONTROLLER" in text


def test_a_filter_hides_no_retry() -> None:
    """Frames that do not pass it continue what others began, and begin nothing."""
    story = Dialogue()
    story.ask(create("a"), 5)
    story.answer(created(a=ErrorCode.NOT_CONTROLLER))
    story.ask(create("a", "b"), 5)
    story.answer(created(a=0, b=ErrorCode.NOT_CONTROLLER))
    found = written(story, unwanted=(2, 3))
    assert [(each["parts"], each["ending"]) for each in found["requests"]] == [
        ([{"topic": "a"}], "done")
    ]
    assert found["clients"][0]["requests"] == 1
    assert not written(story, unwanted=(0, 1, 2, 3))["clients"]


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million topics that cannot be created must not fill the memory."""
    monkeypatch.setattr(story_module, "PARTS_MAX", 4)
    monkeypatch.setattr(story_module, "TRIES_KEPT_MAX", 3)
    monkeypatch.setattr(story_module, "CLIENTS_MAX", 2)
    story = Dialogue()
    for number in range(6):
        story.ask(create(f"t{number}"), 5)
        story.answer(created(**{f"t{number}": ErrorCode.INVALID_TOPIC_EXCEPTION}))
    for name in ("a", "b"):
        story.ask(MetadataRequest(), 9, client_id=name)
    found = written(story)
    assert (len(found["events"]), len(found["requests"]), len(found["clients"])) == (4, 3, 2)


def test_many_tries_keep_the_first_and_the_last() -> None:
    """All are counted."""
    story = Dialogue()
    for _ in range(40):
        story.ask(create("a"), 5)
        story.answer(created(a=ErrorCode.NOT_CONTROLLER))
        story.wait(0.1)
    found = written(story)
    assert "sent again 39 times, each after 100 ms (NOT_CONTROLLER 38): NOT_C" in texts(found)[0]
    (one,) = found["requests"]
    assert (one["count"], len(one["tries"]), one["failures"]) == (40, 10, {"NOT_CONTROLLER": 40})
    numbers = [each["correlationId"] for each in one["tries"]]
    assert numbers == [1, 2, 3, 4, 5, 36, 37, 38, 39, 40]


def test_real_clients_through_a_proxy(capsys: pytest.CaptureFixture[str]) -> None:
    """librdkafka and the Java client meet lost answers, refusals and an answer that is late."""
    assert main(["story", "clients", str(PROXY), "--json", "-q"]) == 0
    found = json.loads(capsys.readouterr().out)
    seen = {
        (each["client"], each["api"]): (each["tries"][0]["outcome"], each["ending"], each["count"])
        for each in found["requests"]
    }
    assert seen == {
        ("admin", "CreateTopics"): ("refused", "not-again", 1),
        ("console-consumer", "Fetch"): ("refused", "done", 3),
        ("java-shop", "Produce"): ("lost", "duplicate", 2),
        ("late", "Produce"): ("timed-out", "duplicate", 2),
        ("plain", "Produce"): ("lost", "appended-twice", 2),
        ("reader", "Heartbeat"): ("refused", "done", 2),
        ("refused", "Produce"): ("refused", "done", 3),
        ("shop", "Produce"): ("lost", "duplicate", 2),
    }
    requests = {each["id"]: each["requests"] for each in found["clients"]}
    # As the proxy counted them.
    assert requests["shop"] == 11
    (shop,) = [each for each in found["clients"] if each["id"] == "java-shop"]
    assert shop["software"] == "apache-kafka-java 4.3.1"
