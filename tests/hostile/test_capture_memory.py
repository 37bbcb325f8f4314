"""Captures that make a decoder wait: one budget for all that it holds (SEC-CAPTURE)."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from kraftwire.capture.capture import Capture
from kraftwire.messages.join_group_request import JoinGroupRequest
from kraftwire.messages.metadata_request import MetadataRequest
from kraftwire.messages.metadata_response import MetadataResponse, MetadataResponseTopic
from tests.support.captures.builder import START_NS, Segment, Session, pcap_of, request, response
from tests.support.commands.memory import decode, show

_MSS = 16_000


def _packed(path: Path, segments: Iterable[Segment]) -> Path:
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(pcap_of([]))
        for segment in segments:
            file.write(pcap_of([segment])[24:])
    return path


def _sessions(count: int, after_ns: int = 0) -> Iterable[Session]:
    """Connections one behind the other in the file, that each begin so long after the one before.
    """
    for number in range(count):
        end = (f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}", 40_000)
        yield Session(client_end=end, now_ns=START_NS + number * after_ns).open()


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


def _used(count: int) -> Iterable[Segment]:
    """Each connection asks once, and stays open."""
    for session in _sessions(count):
        yield from session.client(request(1)).server(response(1)).segments


def _unheard(count: int) -> Iterable[Segment]:
    """Of each connection one request is seen, without the handshake before it or an answer."""
    for number in range(count):
        end = (f"10.0.{number >> 8 & 255}.{number & 255}", 40_000)
        body = JoinGroupRequest(group_id=f"g{number}", session_timeout_ms=1).encode(0)
        session = Session(client_end=end).client(request(1, body, key=11, version=0))
        yield from session.segments


def _closed(count: int) -> Iterable[Segment]:
    for session in _sessions(count):
        yield from session.client(request(1)).server(response(1)).close().segments


# A character that takes four bytes makes each of the others take as many in memory.
_WIDE = "\U0001f600"


def _long_client_ids(count: int) -> Iterable[Segment]:
    """Each connection has a client id of 32,000 characters."""
    for number, session in enumerate(_sessions(count)):
        name = f"{_WIDE}{number}{'a' * 32_000}"
        yield from session.client(request(1, client_id=name), mss=60_000).segments


def _renamed(count: int, size: int) -> Iterable[Segment]:
    """One connection, a new client id in each request, no answers."""
    session = Session().open()
    for number in range(count):
        name = f"{_WIDE}{number}{'a' * size}"
        yield from session.client(request(number, client_id=name), mss=60_000).segments
        session.segments.clear()


def _topics(count: int, each: int) -> Iterable[Segment]:
    """Metadata of very many topics, each with the longest name."""
    session = Session().open()
    for number in range(count):
        ids = range(number * each + 2, (number + 1) * each + 2)
        topics = [
            MetadataResponseTopic(name=f"{id:0>249}", topic_id=id.to_bytes(16, "big")) for id in ids
        ]
        body = MetadataResponse(topics=topics).encode(12)
        session.client(request(number, b"\0" + MetadataRequest().encode(12), version=12))
        yield from session.server(response(number, b"\0" + body), mss=60_000).segments
        session.segments.clear()


_MANY: dict[str, Callable[[], Iterable[Segment]]] = {
    "used": lambda: _used(8_000),
    "unheard": lambda: _unheard(12_000),
    "closed": lambda: _closed(15_000),
    "half": lambda: _half_frames(6_000, 30_000),
    "ids": lambda: _long_client_ids(400),
    "renamed": lambda: _renamed(800, 32_000),
    "renamed-often": lambda: _renamed(7_500, 200),
    "topics": lambda: _topics(200, 500),
}


@pytest.fixture(scope="module")
def many(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture of many connections or names."""
    return _packed(tmp_path_factory.mktemp("many") / "capture.pcap.gz", _MANY[request.param]())


@pytest.mark.parametrize("command", ["decode", "stats"])
@pytest.mark.parametrize("many", _MANY, indirect=True)
def test_connections_and_names_cost_little(many: Path, command: str) -> None:
    """100,000 connections in 1.3 MB took 380 MB, client ids in 0.3 MB 1,270 MB."""
    show(many, command)


def test_a_very_long_client_id_is_cut_where_it_is_remembered() -> None:
    """The frame itself has all of it."""
    name = "a" * 32_000
    session = Session().open().client(request(1, client_id=name), mss=60_000).server(response(1))
    asked, answered = list(Capture([pcap_of(session.segments)]))
    assert asked.data.count(b"a") == len(name)
    for frame in (asked, answered):
        assert frame.request is not None
        assert frame.request.client_id == f"{'a' * 255}… (32,000 characters)"


def _unanswered(count: int, each: int) -> Iterable[Segment]:
    for session in _sessions(count, 10_000_000):
        many = b"".join(request(number) for number in range(each))
        yield from session.client(many, mss=_MSS).segments


@pytest.mark.parametrize(
    ("attack", "count", "size"),
    [
        (_after_holes, 45, 900_000),
        (_half_frames, 1_400, 30_000),
        (_mere_connections, 8_000, 0),
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
    given_up = [
        frame for frame in frames if any(f[0] == "memory-limit" for f in frame.packet_findings)
    ]
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
    mixed = [*first.segments, *_half_frames(1_500, 30_000), *rest.segments]
    # One clock for all, or they are sorted: the unfinished frame would not be waiting among others.
    segments = [replace(each, time_ns=START_NS + at * 10_000) for at, each in enumerate(mixed)]
    frames = list(Capture(str(_packed(tmp_path / "capture.pcap.gz", segments))))
    mine = [frame for frame in frames if frame.connection.startswith("10.9.0.1:")]
    requests = [frame for frame in mine if frame.is_request]
    answered = [frame for frame in mine if not frame.is_request]
    assert [frame.correlation_id for frame in requests] == [1, 2, 3]
    assert [bool(frame.missing) for frame in requests] == [False, True, False]
    assert sorted(frame.correlation_id or 0 for frame in answered) == [1, 2, 3]
