"""SEC-EVASION: clients that hide from the decoder, or show it something else."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from kraftwire.capture.capture import Capture
from kraftwire.cli.main import main
from tests.support.captures.builder import (
    PSH,
    Segment,
    Session,
    decode_segments,
    frame,
    pcap_of,
    request,
    response,
)
from tests.support.captures.payloads import request as payload

IDS = ["a\tb", "\x1b[2J", "a\x85b", "\u200b", "\u202e", "\x00", "\x7f", "\n", "", "\x07" * 40]


@pytest.mark.parametrize("client_id", IDS, ids=ascii)
def test_no_client_id_hides_a_connection(client_id: str, tmp_path: Path) -> None:
    """Kafka accepts any text as a client id, so the decoder has to read any text."""
    session = Session().open()
    for number in (1, 2, 3):
        session.client(request(number, struct.pack(">i", 0), client_id=client_id))
        session.server(response(number, struct.pack(">iii", 0, -1, 0)))
    frames, capture = decode_segments(tmp_path, session.close().segments)
    assert [each.correlation_id for each in frames] == [1, 1, 2, 2, 3, 3]
    assert {each.request.client_id for each in frames if each.request} == {client_id}
    assert capture.health.other_connections == 0


@pytest.mark.parametrize("client_id", IDS[:-2], ids=ascii)
def test_no_client_id_hides_an_open_connection(client_id: str, tmp_path: Path) -> None:
    """The capture starts later, or packets are missing: requests have to be found again."""
    session = Session().open()
    for number in range(1, 9):
        session.client(request(number, struct.pack(">i", 0), client_id=client_id))
        session.server(response(number, struct.pack(">iii", 0, -1, 0)))
    frames, _ = decode_segments(tmp_path, session.segments[5:])
    assert [each.correlation_id for each in frames if each.is_request][-3:] == [6, 7, 8]


def test_the_start_of_another_protocol_is_not_taken_for_a_client_id(tmp_path: Path) -> None:
    """PostgreSQL's first message reads as Metadata with a client id of names and zeros."""
    names = b"user\0pgadmin\0database\0orders\0client_encoding\0UTF8\0DateStyle\0ISO\0"
    names += b"TimeZone\0Europe/Vienna\0extra_float_digits\0002\0application_name\0billing\0\0"
    start = struct.pack(">ii", 8 + len(names), 196_608) + names
    session = Session(server_end=("10.0.0.2", 5432)).open().client(start).server(b"R" + bytes(8))
    frames, capture = decode_segments(tmp_path, session.close().segments)
    assert not frames
    assert capture.health.other_connections == 1


def _again(segment: Segment, payload: bytes, *, back: int = 0) -> Segment:
    """A packet a moment later, for the same place in the stream or an earlier one."""
    return replace(segment, time_ns=segment.time_ns + 1, payload=payload, seq=segment.seq - back)


def _data(segments: Iterable[Segment]) -> list[int]:
    """Where the client's packets with bytes are."""
    return [at for at, each in enumerate(segments) if each.payload and each.flags & PSH]


def _two_requests() -> tuple[list[Segment], int]:
    """A connection with requests, and which packet has the first one."""
    session = Session().open()
    for number in (1, 2, 3):
        session.client(frame(payload("Metadata", 1, {"topics": [{"name": "harmless"}]}, number)))
        session.server(response(number, struct.pack(">iii", 0, -1, 0)))
    segments = session.close().segments
    return segments, _data(segments)[0]


@pytest.mark.parametrize("back", [0, 4])
def test_other_bytes_at_the_same_place_are_reported(back: int, tmp_path: Path) -> None:
    """A wrong checksum or a hop limit can make one of them reach only the decoder."""
    segments, at = _two_requests()
    at = _data(segments)[2]
    evil = segments[at].payload.replace(b"harmless", b"evil-one")
    before = segments[at - 2].payload[-back:] if back else b""
    segments.insert(at + 1, _again(segments[at], before + evil, back=back))
    frames, capture = decode_segments(tmp_path, segments)
    findings = [each for one in frames for each in one.packet_findings]
    assert [each[0] for each in findings] == ["conflict"]
    assert f"{len(evil)} bytes came twice" in findings[0][3]
    assert capture.health.conflicts == 1
    assert capture.health.is_undecoded


def test_other_bytes_are_reported_before_a_hole_is_filled(tmp_path: Path) -> None:
    """Bytes that wait for earlier ones may also come in two versions."""
    segments, at = _two_requests()
    segments = segments[: at + 1]
    first, whole = segments[at], segments[at].payload
    evil = whole.replace(b"harmless", b"evil-one")
    parts = [first.cut(0, 10), first.cut(10, len(whole))]
    other = replace(parts[1], payload=evil[10:])
    frames, capture = decode_segments(tmp_path, [*segments[:at], parts[1], other, parts[0]])
    assert capture.health.conflicts == 1
    assert b"harmless" in frames[0].data
    assert [each[0] for each in frames[0].packet_findings] == ["conflict"]


def test_the_exit_code_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In every output, a part of the sent bytes is missing."""
    segments, at = _two_requests()
    segments.insert(at + 1, _again(segments[at], bytes(len(segments[at].payload))))
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap_of(segments))
    assert main(["decode", str(path)]) == 3
    out, err = capsys.readouterr()
    assert "[conflict]" in out
    assert "conflict 1" in err


def test_a_plain_retransmission_is_not_a_finding(tmp_path: Path) -> None:
    """Packets are lost and sent again, in other pieces too; keep-alive probes repeat a byte."""
    segments, at = _two_requests()
    first, second = segments[at], segments[_data(segments)[2]]
    probe = _again(second, b"\0", back=1 - len(second.payload))
    both = _again(second, first.payload[-7:] + second.payload[:9], back=7)
    for place, extra in ((second, both), (second, probe), (first, _again(first, first.payload))):
        segments.insert(segments.index(place) + 1, extra)
    frames, capture = decode_segments(tmp_path, segments)
    assert len(frames) == 6
    assert capture.health.conflicts == 0
    assert not any(each.packet_findings for each in frames)


def test_a_port_that_is_used_again_is_another_connection(tmp_path: Path) -> None:
    """Its sequence numbers may be the same, but its bytes are its own."""
    segments = []
    for number in (1, 2):
        session = Session().open().client(request(number, struct.pack(">i", 0)))
        session.server(response(number)).client(request(number + 10, struct.pack(">i", 0)))
        segments += session.close().segments
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap_of(segments))
    capture = Capture(str(path))
    list(capture)
    assert capture.health.conflicts == 0
