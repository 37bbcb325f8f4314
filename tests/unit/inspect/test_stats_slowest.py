"""The line of statistics about the slowest client."""

from __future__ import annotations

import io

import pytest

from kraftwire.capture.framing.frames import RawFrame
from kraftwire.decode.body.frame import FrameDecoder
from kraftwire.decode.body.records import Settings
from kraftwire.inspect.stats.writer import StatsWriter
from kraftwire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftwire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kraftwire.messages.heartbeat_request import HeartbeatRequest
from kraftwire.messages.heartbeat_response import HeartbeatResponse
from kraftwire.messages.topic_record import TopicRecord
from tests.support.captures.frames import FrameMaker
from tests.support.captures.scripted_quorum import batch

MS = 1_000_000


def _text(frames: list[RawFrame], *, is_quick: bool = False) -> str:
    """Return the statistics of frames, with single blanks."""
    stream = io.StringIO()
    writer, decoder = StatsWriter(stream), FrameDecoder(Settings())
    for frame in decoder.decode_bodies(frames, 0) if is_quick else map(decoder.decode, frames):
        writer.frame(frame)
    writer.finish()
    return " ".join(stream.getvalue().split())


def _beat(name: str, latency_ms: int) -> list[RawFrame]:
    maker = FrameMaker(f"10.0.0.1:{latency_ms}-10.0.0.2:9092")
    request = maker.request(HeartbeatRequest(group_id="g", member_id="m"), 3, name)
    return [request, maker.response(HeartbeatResponse(), latency_ms * MS)]


def _fetch(name: str, latency_ms: int, *, made_s: float) -> list[RawFrame]:
    """A Fetch at second 1000, and its answer with records of another second."""
    records = memoryview(batch(0, 1, [TopicRecord(name="t")], time=made_s))
    answer = FetchableTopicResponse(topic="t", partitions=[PartitionData(records=records)])
    topic = FetchTopic(topic="t", partitions=[FetchPartition()])
    maker = FrameMaker(f"10.0.0.1:{latency_ms}-10.0.0.2:9092")
    request = maker.request(FetchRequest(max_wait_ms=500, topics=[topic]), 12, name)
    return [request, maker.response(FetchResponse(responses=[answer]), latency_ms * MS)]


def test_the_slowest_client_is_named() -> None:
    """People look for it in statistics."""
    text = _text([*_beat("fast", 2), *_beat("slow", 700), *_beat("middle", 30)])
    assert "slowest client: slow, max 700.0 ms; its slowest API is Heartbeat v3, max" in text
    assert "may have waited" not in text


@pytest.mark.parametrize("is_quick", [False, True])
def test_a_fetch_of_old_records_does_not_make_the_slowest_client(is_quick: bool) -> None:
    """It may have been parked until these came, as those of a changelog do."""
    frames = [*_fetch("restore", 480, made_s=1.0), *_beat("beating", 20)]
    text = _text(frames, is_quick=is_quick)
    assert "slowest client: beating, max 20" in text
    assert "(without 1 answer to Fetch or ShareFetch whose records are older" in text
    table = text.partition("By client, longest p99 or max first")[2]
    assert table.index("restore") < table.index("beating")


def test_a_fetch_whose_wait_shows_may_make_the_slowest_client() -> None:
    """Its records were made after it was sent; the rest of its latency is service."""
    text = _text([*_fetch("slow", 480, made_s=1000.1), *_beat("beating", 20)])
    assert "slowest client: slow, max 380" in text
    assert "may have waited" not in text
