"""Packets of every link type, of both versions of IP, whole, padded, cut and in pieces."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.captures.builder import (
    Segment,
    Session,
    decode,
    decode_segments,
    ethernet,
    ip_packet,
    pcap,
    request,
    response,
)

V6 = {"client_end": ("2001:db8::1", 40000), "server_end": ("2001:db8::2", 9092)}


def _segments(**ends: tuple[str, int]) -> list[Segment]:
    session = Session(**ends).open()  # type: ignore[arg-type]
    return session.client(request(1, b"abc")).server(response(1, b"defgh")).segments


def _cooked(packet: bytes) -> bytes:
    kind = 0x0800 if packet[0] >> 4 == 4 else 0x86DD
    return struct.pack(">HHH8sH", 0, 1, 6, b"\x04" * 8, kind) + packet


def _cooked_2(packet: bytes) -> bytes:
    kind = 0x0800 if packet[0] >> 4 == 4 else 0x86DD
    return struct.pack(">HHIHBB8s", kind, 0, 3, 1, 0, 6, b"\x04" * 8) + packet


def _family(packet: bytes) -> bytes:
    return struct.pack("<I", 2 if packet[0] >> 4 == 4 else 30) + packet


def _vlan(packet: bytes) -> bytes:
    return ethernet(packet, tags=struct.pack(">HH", 0x8100, 12))


def _two_vlans(packet: bytes) -> bytes:
    return ethernet(packet, tags=struct.pack(">HHHH", 0x88A8, 7, 0x8100, 12))


LINKS = [
    (1, ethernet),
    (1, _vlan),
    (1, _two_vlans),
    (101, bytes),
    (12, bytes),
    (14, bytes),
    (228, bytes),
    (229, bytes),
    (0, _family),
    (108, _family),
    (113, _cooked),
    (276, _cooked_2),
]


@pytest.mark.parametrize(("link", "wrap"), LINKS, ids=lambda x: getattr(x, "__name__", x))
@pytest.mark.parametrize("ends", [{}, V6], ids=["ipv4", "ipv6"])
def test_every_link_type_leads_to_the_same_frames(
    tmp_path: Path, link: int, wrap: object, ends: dict[str, tuple[str, int]]
) -> None:
    """Captures come from machines, loopback devices, containers and switches."""
    packets = [(s.time_ns, wrap(ip_packet(s))) for s in _segments(**ends)]  # type: ignore[operator]
    frames, capture = decode(tmp_path / "a.pcap", pcap(packets, link=link))
    assert [frame.data[-3:] for frame in frames] == [b"abc", b"fgh"]
    expected = "[2001:db8::1]:40000-[2001:db8::2]:9092" if ends else "10.0.0.1:40000-10.0.0.2:9092"
    assert frames[0].connection == expected
    assert capture.health.skipped_packets == 0


def test_an_unknown_link_type_is_counted(tmp_path: Path) -> None:
    """An empty output without a reason would be a puzzle."""
    packets = [(s.time_ns, ip_packet(s)) for s in _segments()]
    frames, capture = decode(tmp_path / "a.pcap", pcap(packets, link=147))
    assert frames == []
    assert capture.health.unsupported_links == {147: 5}


def test_other_packets_are_skipped(tmp_path: Path) -> None:
    """UDP, ARP and runts are in every capture."""
    packets = [(s.time_ns, ethernet(ip_packet(s))) for s in _segments()]
    udp = bytearray(packets[0][1])
    udp[23] = 17
    others = [bytes(udp), b"\x02" * 12 + b"\x08\x06" + bytes(28), b"\x02" * 5, b""]
    frames, capture = decode(tmp_path / "a.pcap", pcap([(5, p) for p in others] + packets))
    assert len(frames) == 2
    assert capture.health.skipped_packets == 4


def test_padding_of_short_ethernet_frames_is_not_payload(tmp_path: Path) -> None:
    """A pure acknowledgement has 54 bytes, Ethernet at least 60."""
    packets = [
        (s.time_ns, ethernet(ip_packet(s)).ljust(60, b"\x55") + b"fcs!") for s in _segments()
    ]
    frames, capture = decode(tmp_path / "a.pcap", pcap(packets))
    assert [frame.data[-3:] for frame in frames] == [b"abc", b"fgh"]
    assert capture.health.undecoded_bytes == 0


def test_a_total_length_of_zero_is_that_of_the_packet(tmp_path: Path) -> None:
    """Network cards that cut segments themselves hand over long packets without a length."""
    packets = []
    for segment in _segments():
        packet = bytearray(ip_packet(segment))
        if segment.payload:
            packet[2:4] = b"\0\0"
        packets.append((segment.time_ns, ethernet(bytes(packet))))
    frames, _ = decode(tmp_path / "a.pcap", pcap(packets))
    assert [frame.data[-3:] for frame in frames] == [b"abc", b"fgh"]


def test_options_of_ip_and_tcp_are_skipped(tmp_path: Path) -> None:
    """Almost every real TCP header has time stamps."""
    packets = []
    for segment in _segments():
        tcp = bytearray(segment.tcp())
        tcp[12] = 0x80
        tcp[20:20] = bytes(12)
        packet = bytearray(ip_packet(segment, options=bytes(8)))[:28]
        packet[2:4] = struct.pack(">H", 28 + len(tcp))
        packets.append((segment.time_ns, ethernet(bytes(packet) + bytes(tcp))))
    frames, _ = decode(tmp_path / "a.pcap", pcap(packets))
    assert [frame.data[-3:] for frame in frames] == [b"abc", b"fgh"]


def test_extension_headers_of_ipv6_are_skipped(tmp_path: Path) -> None:
    """Hop-by-hop options, a routing header and an authentication header."""
    chain = bytes([43, 0]) + bytes(6) + bytes([51, 1]) + bytes(14) + bytes([6, 1]) + bytes(10)
    packets = [(s.time_ns, ethernet(ip_packet(s, extensions=chain))) for s in _segments(**V6)]
    frames, _ = decode(tmp_path / "a.pcap", pcap(packets))
    assert [frame.data[-3:] for frame in frames] == [b"abc", b"fgh"]


def _fragments_v4(packet: bytes) -> list[bytes]:
    pieces = []
    for start in range(20, len(packet), 24):
        part = packet[start : start + 24]
        head = bytearray(packet[:20])
        more = 0x2000 if start + 24 < len(packet) else 0
        head[2:4] = struct.pack(">H", 20 + len(part))
        head[6:8] = struct.pack(">H", more | (start - 20) // 8)
        pieces.append(ethernet(bytes(head) + part))
    return pieces


def _fragments_v6(packet: bytes) -> list[bytes]:
    pieces = []
    for start in range(40, len(packet), 24):
        part = packet[start : start + 24]
        head = bytearray(packet[:40])
        head[4:6] = struct.pack(">H", 8 + len(part))
        head[6] = 44
        more = int(start + 24 < len(packet))
        pieces.append(
            ethernet(bytes(head) + struct.pack(">BBHI", 6, 0, start - 40 | more, 9) + part)
        )
    return pieces


@pytest.mark.parametrize("ends", [{}, V6], ids=["ipv4", "ipv6"])
def test_fragments_are_reassembled_in_any_order(
    tmp_path: Path, ends: dict[str, tuple[str, int]]
) -> None:
    """Tunnels with a small maximum size split packets."""
    packets = []
    for segment in _segments(**ends):
        pieces = (_fragments_v6 if ends else _fragments_v4)(ip_packet(segment))
        packets += [(segment.time_ns, piece) for piece in reversed(pieces)]
    frames, capture = decode(tmp_path / "a.pcap", pcap(packets))
    assert [frame.data[-3:] for frame in frames] == [b"abc", b"fgh"]
    assert capture.health.fragments >= 4


def test_packets_that_the_capture_cut_make_partial_frames(tmp_path: Path) -> None:
    """With a snap length, headers survive, bodies do not; lengths lead to the next frame."""
    session = Session().open()
    for number in (1, 2):
        session.client(request(number, b"x" * 500)).server(response(number, b"y" * 300))
    frames, capture = decode_segments(tmp_path, session.segments, snap=100)
    assert [frame.correlation_id for frame in frames] == [1, 1, 2, 2]
    assert [frame.size for frame in frames] == [516, 304, 516, 304]
    assert frames[0].missing == ((42, 474),)
    assert len(frames[0].data) == 42
    assert frames[0].packet_findings[0][:2] == ("truncated-packet", 42)
    assert frames[0].is_undecoded
    assert capture.health.truncated_packets == 4
    assert capture.health.partial_frames == 4


def test_a_packet_cut_inside_its_tcp_header_is_a_hole(tmp_path: Path) -> None:
    """Nothing is known of it except that it existed."""
    session = Session().open().client(request(1, b"x" * 500))
    frames, capture = decode_segments(tmp_path, session.segments, snap=50)
    assert frames == []
    assert capture.health.truncated_packets == 4


def test_lengths_that_contradict_each_other_are_survived(tmp_path: Path) -> None:
    """Hostile or damaged packets are ignored; they do not raise an error."""
    segments = _segments()
    packets = [(s.time_ns, ethernet(ip_packet(s))) for s in segments]
    for position, value in [(46, 0x00), (46, 0xF0), (17, 0xFF), (17, 3)]:
        broken = bytearray(packets[3][1])
        broken[position] = value
        frames, capture = decode(tmp_path / "a.pcap", pcap([*packets[:3], (7, bytes(broken))]))
        assert frames == [] or capture.health.missing_bytes > 0


def test_the_same_packet_twice_on_different_links_is_one(tmp_path: Path) -> None:
    """A capture on every device shows a packet once with and once without its VLAN tag."""
    packets = []
    for segment in _segments():
        packets.append((segment.time_ns, _vlan(ip_packet(segment))))
        packets.append((segment.time_ns, ethernet(ip_packet(segment))))
    frames, capture = decode(tmp_path / "a.pcap", pcap(packets))
    assert len(frames) == 2
    assert (capture.health.copies, capture.health.retransmissions) == (2, 0)


def test_ports_tell_connections_apart(tmp_path: Path) -> None:
    """Two clients on one machine, and one client with two servers."""
    segments = []
    for port, server in [(40000, "10.0.0.2"), (40001, "10.0.0.2"), (40000, "10.0.0.3")]:
        ends = {"client_end": ("10.0.0.1", port), "server_end": (server, 9092)}
        segments.append(_segments(**ends))
    mixed = [replace(segment) for group in zip(*segments, strict=True) for segment in group]
    frames, capture = decode_segments(tmp_path, mixed)
    assert len({frame.connection for frame in frames}) == 3
    assert capture.health.kafka_connections == 3
