"""Messages whose values take far more memory than their bytes (SEC-BOMB)."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from kraftwire.errors import WireError
from kraftwire.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kraftwire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftwire.messages.metadata_response import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kraftwire.messages.push_telemetry_request import PushTelemetryRequest
from kraftwire.messages.register_broker_record import BrokerEndpoint, RegisterBrokerRecord
from kraftwire.records.metadata import decode_metadata, encode_metadata
from kraftwire.wire.message import Message
from kraftwire.wire.size_estimate import estimated_size, is_message_bomb
from tests.hostile.served import request_frame
from tests.support.captures.builder import Session, pcap_of, request, response
from tests.support.commands.memory import CLI, check_cost, decode, run, show, small_input

_OUTPUTS = ("", "--format jsonl", "--bytes")


def _metadata(count: int) -> bytes:
    """A request of topics of eight bytes, each two objects and a string."""
    return request_frame(MetadataRequest(topics=[MetadataRequestTopic(name="abcdef")] * count), 8)


@pytest.mark.parametrize(
    ("frame", "outputs"),
    [
        (request_frame(ConsumerGroupDescribeRequest(group_ids=["ab"] * 600_000), 0), _OUTPUTS),
        (_metadata(360_000), ("",)),
    ],
    ids=["strings", "structs"],
)
def test_a_dense_message_is_a_finding_in_every_output(
    tmp_path: Path, frame: bytes, outputs: tuple[str, ...]
) -> None:
    """It took twenty times its length and more."""
    path = tmp_path / "frames"
    path.write_bytes(frame)
    for output in outputs:
        found = decode(path, "--input", "frames", *output.split())
        assert found.code == 3
        assert "message-bomb 1" in found.errors


def test_programs_are_told_of_a_dense_message(tmp_path: Path) -> None:
    """The body is None, and a finding says why; the bytes remain available."""
    path = tmp_path / "capture.pcap"
    session = Session().open().client(request(1)).client(_metadata(360_000), mss=16_000)
    path.write_bytes(pcap_of(session.segments))
    program = (
        "import sys, kraftwire.decode\n"
        "frame = list(kraftwire.decode.open(sys.argv[1]))[-1]\n"
        "print(frame.body, *((each.id, each.detail) for each in frame.findings))"
    )
    out = tmp_path / "out"
    found = run(program, path, out=out)
    assert found.code == 0, found.errors
    printed = out.read_text()
    assert printed.startswith("None ('message-bomb', ")
    assert "MetadataRequest has too many values" in printed
    check_cost(found, path.stat().st_size, program, small_input(path))


def test_requests_that_wait_hold_no_objects(tmp_path: Path) -> None:
    """For 4 MB of unanswered requests, stories held objects of 100 MB."""
    session = Session().open().client(request(1))
    one = _metadata(110_000)
    for number in range(5):
        session.client(one[:8] + number.to_bytes(4, "big") + one[12:], mss=16_000)
    path = tmp_path / "capture.pcap"
    path.write_bytes(pcap_of(session.segments))
    size = path.stat().st_size // 5
    for command in ("decode -v", "story topics"):
        found = show(path, *command.split())
        check_cost(found, size, CLI, *command.split(), small_input(path))


def test_metadata_of_a_large_cluster_is_not_a_bomb() -> None:
    """75,000 partitions of three replicas, of brokers whose ids are not small numbers."""
    partition = MetadataResponsePartition(
        leader_id=1001, leader_epoch=700, replica_nodes=[1001, 1002, 1003],
        isr_nodes=[1001, 1002, 1003],
    )  # fmt: skip
    topic = MetadataResponseTopic(
        name="measurements", topic_id=os.urandom(16), partitions=[partition] * 100
    )
    data = MetadataResponse(topics=[topic] * 750).encode(12)
    assert not is_message_bomb(MetadataResponse, data, 12, 0)


def test_a_dense_record_is_refused() -> None:
    """Of the metadata log: 30,000 listeners of one broker."""
    endpoint = BrokerEndpoint(name="ab", host="cd", port=9092)
    honest = RegisterBrokerRecord(end_points=[endpoint] * 100)
    assert decode_metadata(encode_metadata(honest, 3)).type == "RegisterBrokerRecord"
    honest.end_points *= 300
    with pytest.raises(WireError, match="far more memory than its bytes"):
        decode_metadata(encode_metadata(honest, 3))


def _cut(data: bytes) -> Iterable[bytes]:
    return (data[: len(data) * part // 7] for part in range(7))


def test_damaged_bytes_are_estimated_up_to_the_damage() -> None:
    """Decoding then says what is wrong; a count that the bytes cannot hold adds nothing."""
    message: Message = MetadataRequest(topics=[MetadataRequestTopic(name="abc")] * 50)
    data = message.encode(8)
    whole = estimated_size(MetadataRequest, data, 8, 0, 1 << 40)
    sizes = [estimated_size(MetadataRequest, part, 8, 0, 1 << 40) for part in _cut(data)]
    assert sizes == sorted(sizes)
    assert 0 <= sizes[0] < whole
    claim = (2**31 - 1).to_bytes(4, "big") + data[4:]
    assert estimated_size(MetadataRequest, claim, 8, 0, 1 << 40) < 1000
    assert estimated_size(MetadataRequest, data, 8, 0, whole) == whole
    assert estimated_size(MetadataRequest, data, 8, 0, whole - 1) == -1


@pytest.mark.parametrize(
    "frame",
    [
        request_frame(ConsumerGroupDescribeRequest(group_ids=["ab"] * 430_000), 0),
        request_frame(PushTelemetryRequest(metrics=bytes(12_000_000)), 0),
        request_frame(MetadataRequest(topics=[MetadataRequestTopic(name="é" * 15_000)] * 130), 8),
    ],
    ids=["values", "bytes", "text"],
)
def test_a_long_frame_in_a_small_capture_is_cut(tmp_path: Path, frame: bytes) -> None:
    """Packed, a frame of megabytes is a few kilobytes, and took ten times its length."""
    session = Session().open().client(request(1)).server(response(1)).client(frame, mss=16_000)
    path = tmp_path / "capture.pcap.gz"
    path.write_bytes(gzip.compress(pcap_of(session.segments), 1))
    for output in ("", "--format jsonl", "--bytes"):
        found = decode(path, *output.split())
        assert found.code == 3


_HONEST = '{"name":"RequestHeader","version":1,"hex":"00120000000000070000"}'


def _honest(folder: Path) -> Path:
    """One line of `kraftwire message`."""
    path = folder / "honest"
    path.write_text(f"{_HONEST}\n")
    return path


def _line(name: str, **more: object) -> str:
    return json.dumps({"name": name, "version": 8, **more}, separators=(",", ":"))


@pytest.mark.parametrize(
    ("action", "line", "problem"),
    [
        ("decode", _line("MetadataRequest", hex=_metadata(360_000)[14:].hex()), "far more memory"),
        ("decode", _line("MetadataRequest", hex=_metadata(125_000)[14:].hex()), "too many values"),
        ("encode", _line("MetadataRequest", json=[[]] * 1_000_000), "too many values"),
        ("encode", _line("MetadataRequest", json=[{}] * 400_000), "too many values"),
    ],
    ids=["objects", "shown", "arrays", "structs"],
)
def test_a_dense_message_is_refused_by_itself(
    tmp_path: Path, action: str, line: str, problem: str
) -> None:
    """`kraftwire message` took twenty times a line of empty arrays, and more of structs."""
    path, out = tmp_path / "lines", tmp_path / "out"
    path.write_text(f"{line}\n{_HONEST}\n")
    found = run(CLI, "message", action, out=out, read=path)
    assert found.code == 3
    check_cost(found, len(line), CLI, "message", action, read=_honest(tmp_path))
    first, second = map(json.loads, out.read_bytes().splitlines())
    assert problem in first["error"]
    assert ("json" in second) == (action == "decode")


def test_messages_of_megabytes_are_translated(tmp_path: Path) -> None:
    """Metadata of 20,000 partitions, and blobs, decoded and encoded."""
    partition = MetadataResponsePartition(
        leader_id=1001, leader_epoch=700, replica_nodes=[1001, 1002, 1003]
    )
    topic = MetadataResponseTopic(name="measurements", partitions=[partition] * 100)
    data = MetadataResponse(topics=[topic] * 200).encode(8).hex()
    path, back, again = tmp_path / "lines", tmp_path / "back", tmp_path / "again"
    path.write_text(_line("MetadataResponse", hex=data) + "\n")
    for action, source, target in (("decode", path, back), ("encode", back, again)):
        found = run(CLI, "message", action, out=target, read=source)
        assert found.code == 0
        small = _honest(tmp_path)
        check_cost(found, source.stat().st_size, CLI, "message", action, read=small)
    assert json.loads(again.read_bytes())["hex"] == data
