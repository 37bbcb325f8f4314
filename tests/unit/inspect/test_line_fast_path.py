"""Lines are the same whether ordinary frames take the fast path or not, and so are the totals."""

from __future__ import annotations

import io
import random
from collections import Counter
from collections.abc import Callable

import pytest

from kraftwire.capture.capture import Capture
from kraftwire.capture.framing.frames import RawFrame
from kraftwire.decode.body.context import Memory
from kraftwire.decode.body.ordinary import ordinary_body
from kraftwire.decode.jsonl import JsonLines
from kraftwire.decode.options import Options
from kraftwire.inspect.lines.line import LineWriter
from kraftwire.inspect.run.run import Run
from kraftwire.messages.describe_groups_request import DescribeGroupsRequest
from kraftwire.messages.describe_groups_response import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
)
from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kraftwire.messages.heartbeat_request import HeartbeatRequest
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.records.json_form import Detail
from tests.support.captures.decoded import golden
from tests.support.captures.frames import FrameMaker
from tests.support.nodes.fake_core import batch

_SEED = 20
_BATCH = batch(0, b"value")
_NAMES = ("quorum", "clients", "sasl", "groups", "kraft_quorum")
# Recordings of thousands of frames are shortened.
_FRAMES_MAX = 1500


class _FullWriter(LineWriter):
    """Writes lines of frames that were all decoded by the full decoder."""

    takes_bodies = False


def _shown(writer: type[LineWriter], frames: list[RawFrame]) -> tuple[str, Counter[str]]:
    stream, memory = io.StringIO(), Memory()
    run = Run(Options(is_brief=True), writer(stream, topics=memory.topics), memory)
    run.lists([frames[at : at + 20] for at in range(0, len(frames), 20)])
    run.finish()
    return stream.getvalue(), run.totals.findings


def _compare(frames: list[RawFrame]) -> Counter[str]:
    quick, full = _shown(LineWriter, frames), _shown(_FullWriter, frames)
    assert quick == full
    return quick[1]


def _found_in_json(frame: RawFrame, detail: Detail) -> Counter[str]:
    options, memory = Options(records=detail), Memory()
    sink = JsonLines(io.BytesIO(), settings=options.settings(memory))
    run = Run(options, sink, memory)
    run.lists([[frame]])
    run.finish()
    return run.totals.findings


def _frames(name: str) -> list[RawFrame]:
    suffix = "pcapng" if name in ("groups", "kraft_quorum") else "pcap"
    path = golden("quorum").with_name(f"{name}.{suffix}.xz")
    return [frame for _, frame in zip(range(_FRAMES_MAX), Capture(str(path)), strict=False)]


def _trail(_source: random.Random, data: bytes) -> bytes:
    return data + b"\0"


def _flip(source: random.Random, data: bytes) -> bytes:
    at = source.randrange(len(data))
    return data[:at] + bytes([source.randrange(256)]) + data[at + 1 :]


def _cut(source: random.Random, data: bytes) -> bytes:
    return data[: source.randrange(len(data) + 1)]


@pytest.mark.parametrize("name", _NAMES)
def test_lines_of_recordings_do_not_depend_on_the_path(name: str) -> None:
    """The fast path is for frames without anything to find."""
    _compare(_frames(name))


@pytest.mark.slow
@pytest.mark.parametrize("change", [_trail, _flip, _cut])
@pytest.mark.parametrize("name", _NAMES)
def test_lines_of_damaged_frames_do_not_depend_on_the_path(
    name: str, change: Callable[[random.Random, bytes], bytes]
) -> None:
    """Wrong bytes anywhere: in headers, bodies, tagged fields, batches."""
    print(f"seed {_SEED}")
    source = random.Random(f"{_SEED}/{name}/{change.__name__}")
    frames = _frames(name)
    for frame in frames:
        # What the capture has read of the header stays as it is.
        start = 8 if frame.is_request else 4
        if len(frame.data) > start:
            frame.data = frame.data[:start] + change(source, frame.data[start:])
            frame.size = len(frame.data)
    found = _compare(frames)
    assert sum(found.values()) > len(frames) // 20


def _tagged(maker: FrameMaker) -> RawFrame:
    body = VoteRequest()
    body.unknown_tagged_fields = {77: b"later"}
    return maker.request(body, 2)


def _wrong_client_id(maker: FrameMaker) -> RawFrame:
    frame = maker.request(HeartbeatRequest(group_id="g"), 4)
    assert b"tester" in frame.data
    frame.data = frame.data.replace(b"tester", b"teste\xff")
    return frame


def _negative_client_id(maker: FrameMaker) -> RawFrame:
    """As an unsigned number the length would fit."""
    frame = maker.request(HeartbeatRequest(group_id="g"), 3)
    frame.data = frame.data[:8] + b"\x80\0" + bytes(0x8000) + frame.data[16:]
    frame.size = len(frame.data)
    return frame


def _fetched(records: bytes) -> RawFrame:
    maker = FrameMaker()
    maker.request(FetchRequest(), 12)
    partition = PartitionData(partition_index=0, records=memoryview(records))
    topic = FetchableTopicResponse(topic="orders", partitions=[partition])
    return maker.response(FetchResponse(responses=[topic]))


def _wrong_crc() -> RawFrame:
    return _fetched(_BATCH[:-1] + b"\xff")


def _cut_batch() -> RawFrame:
    return _fetched(_BATCH + _BATCH[:30])


def _described() -> RawFrame:
    maker = FrameMaker()
    maker.request(DescribeGroupsRequest(groups=["g"]), 5)
    member = DescribedGroupMember(member_id="m", member_metadata=b"\0")
    group = DescribedGroup(group_id="g", protocol_type="consumer", members=[member])
    return maker.response(DescribeGroupsResponse(groups=[group]))


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda: _tagged(FrameMaker()), "unknown-tag"),
        (lambda: _wrong_client_id(FrameMaker()), "header-undecoded"),
        (lambda: _negative_client_id(FrameMaker()), "trailing-bytes"),
        (_wrong_crc, "batch-crc"),
        (_cut_batch, "batch-cut"),
        (_described, "nested-undecoded"),
    ],
)
def test_an_odd_frame_is_left_to_the_full_decoder(make: Callable[[], RawFrame], found: str) -> None:
    """What is odd about a frame must be seen in its line."""
    frame = make()
    assert ordinary_body(frame) is None
    assert f"[{found}]" in _shown(LineWriter, [frame])[0]
    assert _compare([frame])[found] == 1
    if found == "header-undecoded":
        return  # JSON takes the header from what the capture has read, and no capture has read this
    details: tuple[Detail, ...] = ("none", "summary", "full")
    assert [_found_in_json(make(), detail)[found] for detail in details] == [1, 1, 1]


def test_records_in_sound_batches_are_not_read() -> None:
    """Lines are for a first look: a batch whose CRC is right has no findings, whatever it holds."""
    frame = _fetched(_BATCH)
    assert ordinary_body(frame) is not None
    assert not _compare([frame])
