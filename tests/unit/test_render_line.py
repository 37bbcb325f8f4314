"""Lines of `kraftwire decode`: what stands in them, in which order, and for every API."""

from __future__ import annotations

import io
import re

import pytest

from kraftwire import messages
from kraftwire.decode.body.frame import FrameDecoder
from kraftwire.decode.body.records import Settings
from kraftwire.decode.body.topics import TopicNames
from kraftwire.decode.framing.frames import Frame
from kraftwire.decode.render.facts import request_facts, response_facts
from kraftwire.decode.render.line import LineWriter
from kraftwire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftwire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kraftwire.messages.metadata_response import MetadataResponse, MetadataResponseTopic
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.wire.message import Message
from tests.support.frames_made import FrameMaker
from tests.support.vectors import Vector, vectors

_COLUMNS = re.compile(
    r"(?P<time>\d\d:\d\d:\d\d\.\d{6}|-) +(?P<connection>\S+) +(?P<api>\S+) v(?P<version>\d+) +"
    r"(?P<correlation>-?\d+|-) +(?P<sizes>\S+) +(?P<ms>\S+) (?P<error>\S+) (?P<facts>.*)"
)


def _lines(frames: list[Frame], *, is_quick: bool = False) -> list[str]:
    stream, settings = io.StringIO(), Settings()
    writer = LineWriter(stream, topics=settings.topics)
    decoder = FrameDecoder(settings)
    for frame in frames:
        if not (is_quick and writer.quick(frame)):
            writer.frame(decoder.decode(frame))
    writer.finish()
    return [line for line in stream.getvalue().splitlines() if not line.startswith("#")]


def _fetch(maker: FrameMaker, *, error: int = 0, records: bytes | None = b"") -> list[Frame]:
    asked = FetchPartition(partition=3, fetch_offset=42, current_leader_epoch=5)
    told = PartitionData(
        partition_index=3, high_watermark=50, error_code=error,
        records=None if records is None else memoryview(records),
    )
    return [
        maker.request(
            FetchRequest(
                replica_id=-1,
                max_wait_ms=500,
                topics=[FetchTopic(topic="orders", partitions=[asked])],
            ),
            12,
        ),
        maker.response(
            FetchResponse(
                responses=[FetchableTopicResponse(topic="orders", partitions=[told])]
            )
        ),
    ]


def test_an_exchange_is_one_line_with_all_columns() -> None:
    """The default output: who reads it wants time, API, sizes, latency, error and the point."""
    maker = FrameMaker()
    (line,) = _lines(_fetch(maker, records=bytes(100)))
    found = _COLUMNS.fullmatch(line)
    assert found is not None, line
    assert found["time"] == "00:16:40.002500"
    assert found["connection"] == maker.connection
    assert (found["api"], found["version"], found["correlation"]) == ("Fetch", "12", "1")
    assert found["ms"] == "2.500"
    assert found["error"] == "-"
    assert found["facts"] == "orders-3 @42 epoch 5; hw 50, 100 B"
    assert re.fullmatch(r"\d+/\d+", found["sizes"])


def test_an_error_is_named() -> None:
    """A number would send the reader to a table."""
    (line,) = _lines(_fetch(FrameMaker(), error=ErrorCode.OFFSET_OUT_OF_RANGE))
    found = _COLUMNS.fullmatch(line)
    assert found is not None
    assert found["error"] == "OFFSET_OUT_OF_RANGE"


def test_the_day_stands_before_the_first_line_of_it() -> None:
    """A time without a day is worthless in a capture that runs over midnight."""
    maker = FrameMaker(time_s=86_399)
    frames = _fetch(maker)
    maker.wait(2)
    frames += _fetch(maker)
    stream = io.StringIO()
    writer = LineWriter(stream, topics=TopicNames())
    decoder = FrameDecoder(Settings())
    for frame in frames:
        writer.frame(decoder.decode(frame))
    writer.finish()
    days = [line for line in stream.getvalue().splitlines() if re.match(r"# \d{4}-", line)]
    assert days == ["# 1970-01-01 UTC", "# 1970-01-02 UTC"]


def test_requests_without_a_response_have_lines_of_their_own() -> None:
    """A lost response is what one looks for; it must not be lost by the tool as well."""
    maker = FrameMaker()
    first, _ = _fetch(maker)
    answered = _fetch(maker)
    last, _ = _fetch(maker)
    lines = _lines([first, *answered, last])
    assert len(lines) == 3
    assert [line.endswith("[no response]") for line in lines] == [True, False, True]


def test_a_request_that_wants_no_response_is_written_at_once() -> None:
    """Produce with acks=0 never gets one."""
    maker = FrameMaker()
    frame, _ = _fetch(maker)
    assert frame.request is not None
    frame.request.has_response = False
    (line,) = _lines([frame])
    assert "[no response]" not in line


def test_a_response_without_its_request_says_what_is_known() -> None:
    """The capture began too late: size and error are there all the same."""
    frame = _fetch(FrameMaker())[1]
    frame.request = frame.api_key = frame.api_version = frame.latency_ms = None
    (line,) = _lines([frame])
    assert " ? " in line
    assert f"-/{frame.size}" in line
    assert "[unmatched-response]" in line


def test_findings_stand_at_the_end() -> None:
    """Trailing bytes are odd and must be seen, but do not spoil the columns."""
    maker = FrameMaker()
    request, response = _fetch(maker)
    response.data += b"\0"
    response.size += 1
    (line,) = _lines([request, response])
    assert line.endswith("hw 50, no records [trailing-bytes]")


@pytest.mark.parametrize("change", ["none", "trailing", "cut", "unknown version", "unknown key"])
def test_the_quick_way_and_the_slow_one_write_the_same(change: str) -> None:
    """Speed must not change what is printed; what is not ordinary goes the slow way."""
    maker = FrameMaker()
    request, response = _fetch(maker)
    if change == "trailing":
        request.data += b"\0"
        request.size += 1
    elif change == "cut":
        response.data = response.data[:-3]
        response.missing = ((len(response.data), 3),)
    elif change == "unknown version":
        response.api_version = request.api_version = 99
    elif change == "unknown key":
        response.api_key = request.api_key = 999
    frames = [request, response]
    assert _lines(frames, is_quick=True) == _lines(frames)


def test_bare_frames_have_neither_time_nor_connection() -> None:
    """Hex from a log has no packets around it."""
    frame, _ = _fetch(FrameMaker())
    frame.time_ns, frame.connection = -1, ""
    (line,) = _lines([frame])
    assert line.split()[:3] == ["-", "-", "Fetch"]


def test_a_topic_id_is_shown_by_its_name_once_that_is_known() -> None:
    """Since version 13 a Fetch has ids only, which nobody knows by heart."""
    names = TopicNames()
    topic_id = bytes(range(16))
    asked = FetchRequest(
        topics=[FetchTopic(topic_id=topic_id, partitions=[FetchPartition(fetch_offset=1)])]
    )
    assert request_facts(1, asked, names).startswith("AAECAwQFBgcICQoLDA0ODw-0 @1")
    topic = MetadataResponseTopic(name="orders", topic_id=topic_id)
    names.learn(MetadataResponse(topics=[topic]), 12)
    assert request_facts(1, asked, names).startswith("orders-0 @1")


def _rpc_vectors() -> list[str]:
    return [f"{name}{side}" for name in messages.API_NAMES.values() for side in
            ("Request", "Response")]


@pytest.mark.parametrize("name", _rpc_vectors())
def test_every_message_of_kafka_has_facts(name: str) -> None:
    """No API, version or value may stop a run; facts are one line of bounded length."""
    names = TopicNames()
    make = request_facts if name.endswith("Request") else response_facts
    for vector in vectors().get(name, []):
        body = _decoded(vector)
        text = make(body.API_KEY, body, names)
        assert "\n" not in text
        assert len(text) < 2000


def _decoded(vector: Vector) -> Message:
    body, _ = messages.find(vector.name).decode(vector.data, vector.version)
    return body


@pytest.mark.parametrize(
    ("name", "version", "fields", "facts"),
    [
        (
            "VoteRequest",
            2,
            {
                "voterId": 1,
                "topics": [
                    {
                        "topicName": "__cluster_metadata",
                        "partitions": [
                            {
                                "partitionIndex": 0,
                                "replicaEpoch": 4,
                                "replicaId": 3,
                                "replicaDirectoryId": "AAAAAAAAAAAAAAAAAAAAAA",
                                "voterDirectoryId": "AAAAAAAAAAAAAAAAAAAAAA",
                                "lastOffsetEpoch": 3,
                                "lastOffset": 878,
                                "preVote": True,
                            }
                        ],
                    }
                ],
                "clusterId": None,
            },
            "pre-vote for 3 epoch 4, log end 878/3, voter 1",
        ),
        ("FindCoordinatorRequest", 1, {"key": "g1", "keyType": 0}, "group g1"),
        ("SaslHandshakeRequest", 1, {"mechanism": "PLAIN"}, "PLAIN"),
        (
            "SaslAuthenticateRequest",
            0,
            {"authBytes": "AGFsaWNlAHNlY3JldA=="},
            "token of 13 B",
        ),
        (
            "HeartbeatRequest",
            3,
            {"groupId": "g", "generationId": 7, "memberId": "m", "groupInstanceId": None},
            "group g generation 7 member m",
        ),
        (
            "BrokerHeartbeatRequest",
            0,
            {
                "brokerId": 10,
                "brokerEpoch": 5,
                "currentMetadataOffset": 33,
                "wantFence": True,
                "wantShutDown": False,
            },
            "broker 10 metadata offset 33, wants fence",
        ),
    ],
)
def test_facts_are_the_point_of_a_message(
    name: str, version: int, fields: dict[str, object], facts: str
) -> None:
    """The words are the tool's interface to people; tokens are never among them."""
    body = messages.find(name).from_json(fields, version)
    assert request_facts(body.API_KEY, body, TopicNames()) == facts


def test_somebody_who_watches_gets_each_line_at_once() -> None:
    """A line of a live capture is of no use when the next one comes an hour later."""
    stream = io.StringIO()
    writer = LineWriter(stream, topics=TopicNames(), is_live=True)
    decoder = FrameDecoder(Settings())
    for frame in _fetch(FrameMaker()):
        writer.frame(decoder.decode(frame))
    assert "orders-3 @42" in stream.getvalue()
