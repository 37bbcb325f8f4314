"""Captures that make a decoder wait: one budget for all that it holds (SEC-CAPTURE)."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from pathlib import Path

import pytest

from kraftwire.capture.capture import Capture
from tests.support.command_memory import decode
from tests.support.pcap_builder import Segment, Session, pcap_of, request, response

_MSS = 16_000


def _packed(path: Path, segments: Iterable[Segment]) -> Path:
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(pcap_of([]))
        for segment in segments:
            file.write(pcap_of([segment])[24:])
    return path


def _sessions(count: int) -> Iterable[Session]:
    for number in range(count):
        end = (f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}", 40_000)
        yield Session(client_end=end).open()


def _after_holes(count: int, size: int) -> Iterable[Segment]:
    """Each connection sends a request, loses a packet, and continues."""
    for session in _sessions(count):
        session.client(request(1)).server(response(1))
        yield from session.segments
        session.segments.clear()
        session.client_seq += 100
        session.now_ns = 1_700_000_000_000_000_000
        yield from session.client(bytes(size), mss=_MSS).segments


def _half_frames(count: int, size: int) -> Iterable[Segment]:
    """Each connection announces a frame, and sends half of it."""
    for session in _sessions(count):
        session.client(request(1)).server(response(1))
        half = request(2, bytes(2 * size))[:size]
        yield from session.client(half, mss=_MSS).segments


def _mere_connections(count: int, _: int) -> Iterable[Segment]:
    for session in _sessions(count):
        yield session.segments[0]


def _unanswered(count: int, each: int) -> Iterable[Segment]:
    for session in _sessions(count):
        many = b"".join(request(number) for number in range(each))
        yield from session.client(many, mss=_MSS).segments


@pytest.mark.parametrize(
    ("attack", "count", "size"),
    [
        (_after_holes, 100, 900_000),
        (_half_frames, 2_000, 30_000),
        (_mere_connections, 15_000, 0),
        (_unanswered, 40, 4_000),
    ],
)
def test_captures_share_one_budget(
    tmp_path: Path, attack: object, count: int, size: int
) -> None:
    """1,500 connections with a hole took 1.5 GB, 100,000 connections 690 MB."""
    assert callable(attack)
    path = _packed(tmp_path / "capture.pcap.gz", attack(count, size))
    found = decode(path)
    assert "to save memory" in found.errors


def test_frames_that_are_dropped_say_so(tmp_path: Path) -> None:
    """No byte is dropped silently."""
    path = _packed(tmp_path / "capture.pcap.gz", _half_frames(1_500, 30_000))
    capture = Capture(str(path))
    frames = list(capture)
    given_up = [frame for frame in frames if any(f[0] == "memory-limit" for f in frame.findings)]
    assert given_up
    assert given_up[0].is_undecoded
    assert capture.health.bytes.unaccounted == 0
    assert capture.health.relieved_connections >= len(given_up)


def test_a_connection_continues_after_a_dropped_frame(tmp_path: Path) -> None:
    """Its unfinished frame is partial, and the next one is found where it must be."""
    first = Session(client_end=("10.9.0.1", 40_000)).open()
    long = request(2, bytes(300_000))
    first.client(request(1)).server(response(1)).client(long[:200_000])
    rest = Session(client_end=first.client_end, client_seq=first.client_seq)
    rest.server_seq = first.server_seq
    rest.client(long[200_000:]).server(response(2)).client(request(3)).server(response(3))
    segments = [*first.segments, *_half_frames(1_500, 30_000), *rest.segments]
    frames = list(Capture(str(_packed(tmp_path / "capture.pcap.gz", segments))))
    mine = [frame for frame in frames if frame.connection.startswith("10.9.0.1:")]
    requests = [frame for frame in mine if frame.is_request]
    answered = [frame for frame in mine if not frame.is_request]
    assert [frame.correlation_id for frame in requests] == [1, 2, 3]
    assert [bool(frame.missing) for frame in requests] == [False, True, False]
    assert sorted(frame.correlation_id or 0 for frame in answered) == [1, 2, 3]
