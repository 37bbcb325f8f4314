"""The story of topics: changes, traffic, clients, leaders, offsets."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from kraftwire.capture.framing.frames import RawFrame
from kraftwire.cli.main import main
from kraftwire.decode.body.frame import FrameDecoder
from kraftwire.decode.body.records import Settings
from kraftwire.inspect.stories.topics import TopicsWriter
from kraftwire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftwire.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from kraftwire.messages.envelope_request import EnvelopeRequest
from kraftwire.messages.envelope_response import EnvelopeResponse
from kraftwire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraftwire.messages.incremental_alter_configs_response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from kraftwire.messages.metadata_request import MetadataRequest
from kraftwire.messages.metadata_response import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kraftwire.messages.request_header import RequestHeader
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.payloads import encode_request, encode_response
from kraftwire.story import topics as story_module
from kraftwire.wire.message import Message
from tests.support.captures.frames import FrameMaker

GROUPS = Path(__file__).resolve().parents[2] / "golden" / "captures" / "groups.pcapng.xz"


PROXY = GROUPS.with_name("proxy.pcapng.xz")


def test_what_a_proxy_passes_on_counts_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Its capture has each request on both sides; the story is that of its clients."""
    assert main(["story", "topics", str(PROXY), "-q", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["kind"] for each in found["events"]].count("createTopics") == 1
    (orders,) = found["topics"]
    # One record was acknowledged twice, as its client sent it again, and one never.
    assert (orders["producedRecords"], orders["partitions"][0]["end"]) == (13, 13)


def _recorded(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["story", "topics", str(GROUPS), "-q", *options]) == 0
    return capsys.readouterr().out


def _written(frames: list[RawFrame], *, show_secrets: bool = False) -> dict[str, Any]:
    stream = io.StringIO()
    settings = Settings()
    writer = TopicsWriter(
        stream, topics=settings.topics, show_secrets=show_secrets, as_json=True
    )
    decoder = FrameDecoder(settings)
    for frame in frames:
        writer.frame(decoder.decode(frame))
    writer.finish()
    found: dict[str, Any] = json.loads(stream.getvalue())
    return found


def test_traffic_is_counted_by_topic_and_client(capsys: pytest.CaptureFixture[str]) -> None:
    """Forty orders of the shop and one of the till; four and three payments."""
    topics = {each["topic"]: each for each in json.loads(_recorded(capsys, "--json"))["topics"]}
    orders = topics["orders"]
    assert orders["producedRecords"] == 41
    assert orders["producedBy"].keys() == {"shop", "till"}
    assert sum(orders["producedBy"].values()) == orders["producedBytes"]
    assert topics["payments"]["producedRecords"] == 7
    ends = [each["end"] for each in orders["partitions"]]
    assert ends == [12, 10, 10, 10]
    assert {each["leader"] for each in orders["partitions"]} == {1}


def test_only_topics_that_are_wanted_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """A Metadata answer that names a wanted topic may name all others as well."""
    found = json.loads(_recorded(capsys, "--json", "--topic", "ord*"))
    assert [each["topic"] for each in found["topics"]] == ["orders"]
    assert {each["topic"] for each in found["events"]} == {"orders"}
    assert found["topics"][0]["producedRecords"] == 41
    found = json.loads(_recorded(capsys, "--json", "--topic", "orders", "--partition", "0"))
    assert [each["topic"] for each in found["topics"]] == ["orders"]
    found = json.loads(_recorded(capsys, "--json", "--topic", "!orders"))
    assert "orders" not in [each["topic"] for each in found["topics"]]


def test_text_fits_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long names of clients continue in the next line of their cell."""
    monkeypatch.setenv("COLUMNS", "80")
    text = _recorded(capsys)
    assert max(map(len, text.splitlines())) <= 80
    assert "orders    is created (4 partitions) (by adminclient-1)" in text


def _metadata(maker: FrameMaker, name: str, leader: int, epoch: int) -> list[RawFrame]:
    part = MetadataResponsePartition(partition_index=2, leader_id=leader, leader_epoch=epoch)
    topic = MetadataResponseTopic(name=name, topic_id=bytes([1] * 16), partitions=[part])
    return [maker.request(MetadataRequest(), 12), maker.response(MetadataResponse(topics=[topic]))]


def test_a_new_leader_is_news_and_an_old_answer_is_not() -> None:
    """A broker that lags still names the leader of an epoch that is over."""
    maker = FrameMaker()
    frames = _metadata(maker, "t", 1, 5) + _metadata(maker, "t", 1, 5)
    frames += _metadata(maker, "t", 3, 6) + _metadata(maker, "t", 1, 5)
    frames += _metadata(maker, "t", -1, 7) + _metadata(maker, "t", 3, 8)
    found = _written(frames)
    assert [each["text"] for each in found["events"]] == [
        "partition 2 is led by 3 (before by 1, epoch 6)"
    ]
    (partition,) = found["topics"][0]["partitions"]
    assert (partition["leader"], partition["leaderEpoch"]) == (3, 8)


def test_secret_settings_stay_hidden() -> None:
    """A story quotes settings, and some hold passwords."""
    maker = FrameMaker()
    configs = [
        AlterableConfig(name="some.password", value="hunter2"),
        AlterableConfig(name="retention.ms", value="7"),
        AlterableConfig(name="cleanup.policy", config_operation=1, value=None),
    ]
    resource = AlterConfigsResource(resource_type=2, resource_name="t", configs=configs)
    frames = [
        maker.request(IncrementalAlterConfigsRequest(resources=[resource]), 1),
        maker.response(
            IncrementalAlterConfigsResponse(
                responses=[AlterConfigsResourceResponse(resource_type=2, resource_name="t")]
            )
        ),
    ]
    (event,) = _written(frames)["events"]
    assert event["text"] == (
        "is configured: some.password=[redacted], retention.ms=7, cleanup.policy is reset "
        "(by tester)"
    )
    assert "hunter2" in _written(frames, show_secrets=True)["events"][0]["text"]


def _in_envelope(maker: FrameMaker, request: Message, response: Message) -> list[RawFrame]:
    """What a broker passes on to the controller for its client."""
    version = 7
    header = RequestHeader(
        request_api_key=request.API_KEY, request_api_version=version, correlation_id=7,
        client_id="tester",
    )
    envelope = EnvelopeRequest(
        request_data=encode_request(header, request), client_host_address=bytes(4)
    )
    data = encode_response(ResponseHeader(correlation_id=7), response, version)
    answer = EnvelopeResponse(response_data=data)
    return [maker.request(envelope, 0, "10"), maker.response(answer)]


def _creation(name: str, error: int = 0) -> tuple[Message, Message]:
    requested = CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=3)])
    answered = CreatableTopicResult(name=name, error_code=error, num_partitions=3)
    return requested, CreateTopicsResponse(topics=[answered])


def test_what_a_broker_passes_on_is_seen_in_its_envelope() -> None:
    """A capture of only the traffic between nodes shows it nowhere else."""
    maker = FrameMaker("10.0.0.9:5-10.0.0.1:9001")
    frames = _in_envelope(maker, *_creation("t"))
    frames += _in_envelope(maker, *_creation("u", ErrorCode.POLICY_VIOLATION))
    assert [(each["topic"], each["text"]) for each in _written(frames)["events"]] == [
        ("t", "is created (3 partitions) (by tester)"),
        ("u", "CreateTopics is refused: POLICY_VIOLATION (by tester)"),
    ]


def test_an_envelope_that_brings_no_answer_is_no_event() -> None:
    """A controller that refuses the envelope itself says nothing about the request inside."""
    maker = FrameMaker("10.0.0.9:5-10.0.0.1:9001")
    asked, _ = _in_envelope(maker, *_creation("t"))
    refusal = EnvelopeResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    assert _written([asked, maker.response(refusal)])["events"] == []


def test_a_request_and_its_envelope_are_one_event() -> None:
    """A capture of everything shows it twice; the same request later is another one."""
    client = FrameMaker("10.0.0.99:5-10.0.0.9:9092")
    request, response = _creation("t", ErrorCode.TOPIC_ALREADY_EXISTS)
    frames = [client.request(request, 7)]
    frames += _in_envelope(FrameMaker("10.0.0.9:5-10.0.0.1:9001"), request, response)
    frames.append(client.response(response))
    (event,) = _written(frames)["events"]
    assert (event["kind"], event["count"]) == ("error", 1)
    frames += [client.request(request, 7), client.response(response)]
    (event,) = _written(frames)["events"]
    assert event["count"] == 2


def test_a_topic_is_found_in_an_envelope() -> None:
    """So filters by topic let the envelope pass."""
    decoder = FrameDecoder(Settings())
    requested, _ = _in_envelope(FrameMaker(), *_creation("t"))
    assert [each.name for each in decoder.decode(requested).topics] == ["t"]
    damaged = FrameMaker().request(EnvelopeRequest(request_data=b"\0\x13\0\7"), 0)
    assert decoder.decode(damaged).topics == []


def test_damaged_envelopes_are_passed_over() -> None:
    """So are those without an answer, and with requests about something else."""
    maker = FrameMaker()
    frames = []
    for data in (b"", b"\0\x13\0\7", b"\0\x12\0\0" + bytes(8)):
        frames.append(maker.request(EnvelopeRequest(request_data=data), 0))
        frames.append(maker.response(EnvelopeResponse(response_data=None)))
    assert _written(frames)["events"] == []


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster with a million topics must not fill the memory."""
    monkeypatch.setattr(story_module, "TOPICS_MAX", 3)
    monkeypatch.setattr(story_module, "TOPIC_PARTITIONS_MAX", 2)
    maker = FrameMaker()
    found = _written([f for n in range(9) for f in _metadata(maker, f"t{n}", 1, 1)])
    assert len(found["topics"]) == 3
    assert sum(len(each["partitions"]) for each in found["topics"]) == 2


def test_empty_results_are_not_mentioned() -> None:
    """There is no table without rows."""
    assert _written([])["topics"] == []
