"""Lines of `kraftwire decode`: what is in them, in which order, and for every API."""

from __future__ import annotations

import io
import re

import pytest

from kraftwire.capture.framing.frames import RawFrame
from kraftwire.decode.body.context import TopicNames
from kraftwire.decode.body.frame import FrameDecoder
from kraftwire.decode.body.records import Settings
from kraftwire.inspect.lines.line import LineWriter
from kraftwire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftwire.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from kraftwire.messages.envelope_request import EnvelopeRequest
from kraftwire.messages.envelope_response import EnvelopeResponse
from kraftwire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftwire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kraftwire.protocol.error_codes import ErrorCode
from tests.support.captures.frames import FrameMaker
from tests.support.captures.payloads import request, response
from tests.support.nodes.fake_core import batch

_COLUMNS = re.compile(
    r"(?P<time>\d\d:\d\d:\d\d\.\d{6}|-) +(?P<connection>\S+) +(?P<api>\S+) v(?P<version>\d+) +"
    r"(?P<correlation>-?\d+|-) +(?P<sizes>\S+) +(?P<ms>\S+) (?P<error>\S+) (?P<facts>.*)"
)


def _lines(frames: list[RawFrame], *, is_quick: bool = False) -> list[str]:
    stream, settings = io.StringIO(), Settings()
    writer = LineWriter(stream, topics=settings.topics)
    decoder = FrameDecoder(settings)
    for frame in decoder.decode_bodies(frames, 0) if is_quick else map(decoder.decode, frames):
        writer.frame(frame)
    writer.finish()
    return [line for line in stream.getvalue().splitlines() if not line.startswith("#")]


def _fetch(maker: FrameMaker, *, error: int = 0, records: bytes | None = b"") -> list[RawFrame]:
    requested = FetchPartition(partition=3, fetch_offset=42, current_leader_epoch=5)
    returned = PartitionData(
        partition_index=3, high_watermark=50, error_code=error,
        records=None if records is None else memoryview(records),
    )
    return [
        maker.request(
            FetchRequest(
                replica_id=-1,
                max_wait_ms=500,
                topics=[FetchTopic(topic="orders", partitions=[requested])],
            ),
            12,
        ),
        maker.response(
            FetchResponse(
                responses=[FetchableTopicResponse(topic="orders", partitions=[returned])]
            )
        ),
    ]


def test_an_exchange_is_one_line_with_all_columns() -> None:
    """The default output: readers want time, API, sizes, latency, error and the facts."""
    maker = FrameMaker()
    (line,) = _lines(_fetch(maker, records=batch(0, bytes(32))))
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
    """A number would have to be looked up in a table."""
    (line,) = _lines(_fetch(FrameMaker(), error=ErrorCode.OFFSET_OUT_OF_RANGE))
    found = _COLUMNS.fullmatch(line)
    assert found is not None
    assert found["error"] == "OFFSET_OUT_OF_RANGE"


def test_the_day_precedes_its_first_line() -> None:
    """A time without a day is useless in a capture that runs past midnight."""
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


def test_requests_without_a_response_have_separate_lines() -> None:
    """People look for lost responses; the tool must not lose them as well."""
    maker = FrameMaker()
    first, _ = _fetch(maker)
    exchange = _fetch(maker)
    assert first.request is not None
    assert exchange[0].request is not None
    exchange[0].request.skipped = (first.request,)
    last, _ = _fetch(maker)
    lines = _lines([first, *exchange, last])
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
    """The capture began too late: size and error are still there."""
    frame = _fetch(FrameMaker())[1]
    frame.request = frame.api_key = frame.api_version = frame.latency_ms = None
    (line,) = _lines([frame])
    assert " ? " in line
    assert f"-/{frame.size}" in line
    assert "[unmatched-response]" in line


def test_findings_are_at_the_end() -> None:
    """Trailing bytes are odd and must be seen, but do not spoil the columns."""
    maker = FrameMaker()
    request, response = _fetch(maker)
    response.data += b"\0"
    response.size += 1
    (line,) = _lines([request, response])
    assert line.endswith("hw 50, no records [trailing-bytes]")


@pytest.mark.parametrize("change", ["none", "trailing", "cut", "unknown version", "unknown key"])
def test_fast_and_slow_path_write_the_same(change: str) -> None:
    """Speed must not change what is printed; anything unusual takes the slow path."""
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


def test_an_envelope_shows_what_is_in_it() -> None:
    """The forwarding broker does not matter: the request and its error do."""
    maker = FrameMaker()
    requested = CreateTopicsRequest(topics=[CreatableTopic(name="orders", num_partitions=3)])
    returned = CreatableTopicResult(name="orders", error_code=ErrorCode.TOPIC_ALREADY_EXISTS)
    answer = response("CreateTopics", 7, CreateTopicsResponse(topics=[returned]))
    inside = request("CreateTopics", 7, requested)
    frames = [
        maker.request(EnvelopeRequest(request_data=inside, client_host_address=b"\0" * 4), 0),
        maker.response(EnvelopeResponse(response_data=answer)),
    ]
    (line,) = _lines(frames)
    found = _COLUMNS.fullmatch(line)
    assert found is not None
    assert found["error"] == "TOPIC_ALREADY_EXISTS"
    assert found["facts"] == f"CreateTopics v7, {len(inside)} B: orders (3); 1 topic"


def test_each_line_of_a_live_capture_is_written_at_once() -> None:
    """A line of a live capture is useless if it is printed an hour later."""
    stream = io.StringIO()
    writer = LineWriter(stream, topics=TopicNames(), is_live=True)
    decoder = FrameDecoder(Settings())
    for frame in _fetch(FrameMaker()):
        writer.frame(decoder.decode(frame))
    assert "orders-3 @42" in stream.getvalue()
