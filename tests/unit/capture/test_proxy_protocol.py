"""Connections that begin with a header of the PROXY protocol, as behind a load balancer."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.support.captures.builder import Session, decode_segments, request, response

_SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
_ENDS = bytes((192, 0, 2, 7, 10, 0, 0, 2)) + struct.pack(">HH", 51000, 9092)
_ENDS_6 = bytes(15) + b"\7" + bytes(15) + b"\1" + struct.pack(">HH", 51000, 9092)

HEADERS = {
    "version 1": (b"PROXY TCP4 192.0.2.7 10.0.0.2 51000 9092\r\n", "client 192.0.2.7:51000"),
    "version 1 without addresses": (b"PROXY UNKNOWN\r\n", "version 1"),
    "version 2": (
        _SIGNATURE + b"\x21\x11" + struct.pack(">H", 12) + _ENDS, "client 192.0.2.7:51000"
    ),
    "version 2 with options": (
        _SIGNATURE + b"\x21\x11" + struct.pack(">H", 17) + _ENDS + b"\4\0\2ab",
        "client 192.0.2.7:51000",
    ),
    "version 2, IPv6": (
        _SIGNATURE + b"\x21\x21" + struct.pack(">H", 36) + _ENDS_6, "client [::7]:51000"
    ),
    "version 2, of the proxy itself": (
        _SIGNATURE + b"\x20\0" + struct.pack(">H", 0), "version 2"
    ),
}  # fmt: skip


@pytest.mark.parametrize("mss", [1448, 1, 5], ids=["at once", "by bytes", "in pieces"])
def test_each_of_several_proxies_adds_a_header(tmp_path: Path, mss: int) -> None:
    """The balancer of a cloud in front of HAProxy: both are passed over and shown."""
    headers = [header for header, _ in HEADERS.values()]
    session = Session().open().client(b"".join(headers) + request(1, bytes(4)), mss=mss)
    session.server(response(1, bytes(8)))
    frames, capture = decode_segments(tmp_path, session.segments)
    assert [frame.correlation_id for frame in frames] == [1, 1]
    assert [finding[0] for finding in frames[0].packet_findings] == ["proxy-header"] * len(headers)
    assert capture.health.bytes.other == sum(map(len, headers))


@pytest.mark.parametrize("mss", [1448, 1, 5], ids=["at once", "by bytes", "in pieces"])
@pytest.mark.parametrize(("header", "text"), HEADERS.values(), ids=HEADERS)
def test_the_header_is_passed_over_and_shown(
    tmp_path: Path, header: bytes, text: str, mss: int
) -> None:
    """It stands alone in a packet, or with the first request, or in pieces."""
    for is_together in (True, False):
        session = Session().open()
        first = request(1, bytes(4))
        if is_together:
            session.client(header + first, mss=mss)
        else:
            session.client(header, mss=mss).client(first, mss=mss)
        session.server(response(1, bytes(8)))
        frames, capture = decode_segments(tmp_path, session.segments)
        assert [frame.correlation_id for frame in frames] == [1, 1]
        (finding,) = frames[0].packet_findings
        assert finding[0] == "proxy-header"
        assert text in finding[3]
        assert capture.health.bytes.other == len(header)
        assert capture.health.bytes.unaccounted == 0
        assert capture.health.kafka_connections == 1


@pytest.mark.parametrize(
    "data", [b"PROXY", b"PROXY " + b"x" * 200, _SIGNATURE, _SIGNATURE + b"\x21\x11\xff\xff" + _ENDS]
)
def test_a_header_that_does_not_end_is_another_protocol(tmp_path: Path, data: bytes) -> None:
    """And nothing is lost of the counts."""
    _, capture = decode_segments(tmp_path, Session().open().client(data).close().segments)
    assert capture.health.kafka_connections == 0
    assert capture.health.bytes.unaccounted == 0


def test_a_connection_of_headers_alone_is_another_protocol(tmp_path: Path) -> None:
    """Megabytes of them are a few kilobytes in a packed capture, and each would be remembered."""
    session = Session().open().client(b"PROXY \r\n" * 100_000)
    frames, capture = decode_segments(tmp_path, session.segments)
    assert (frames, capture.health.other_connections) == ([], 1)
    assert capture.connections.open == {}
    session = Session().open().client(b"PROXY \r\n" * 16 + request(1)).server(response(1))
    assert len(decode_segments(tmp_path, session.segments)[0]) == 2
