"""Packets inside links, tags and tunnels, as switches, clouds and mobile cores deliver them."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kraftwire import engine
from kraftwire.capture.framing.health import WRAPPINGS_LISTED, Health
from kraftwire.capture.packets.links import SegmentReader
from kraftwire.capture.packets.packet import Packet
from kraftwire.capture.packets.wrappings import WRAPPINGS_MAX
from tests.support.captures.builder import (
    Segment,
    Session,
    decode,
    ethernet,
    ip_packet,
    pcap,
    request,
    response,
)

_MACS = b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02"


def _segments() -> list[Segment]:
    session = Session().open()
    return session.client(request(1, b"abc")).server(response(1, b"defgh")).segments


def _ether(kind: int, data: bytes) -> bytes:
    return _MACS + struct.pack(">H", kind) + data


def _ipv4(protocol: int, data: bytes, *, fragment: int = 0) -> bytes:
    size = 20 + len(data)
    head = struct.pack(">BBHHHBBH", 0x45, 0, size, 1, fragment, 64, protocol, 0)
    return head + bytes((10, 9, 0, 1, 10, 9, 0, 2)) + data


def _ipv6(protocol: int, data: bytes) -> bytes:
    head = struct.pack(">IHBB", 6 << 28, len(data), protocol, 64)
    return head + b"\xfd" + bytes(14) + b"\1\xfd" + bytes(14) + b"\2" + data


def _udp(port: int, data: bytes) -> bytes:
    return struct.pack(">HHHH", 49152, port, 8 + len(data), 0) + data


def _over_udp(port: int, head: bytes) -> Callable[[bytes], bytes]:
    return lambda packet: _ether(0x0800, _ipv4(17, _udp(port, head + ethernet(packet))))


def _over_ip(protocol: int, head: bytes, *, is_frame: bool) -> Callable[[bytes], bytes]:
    def wrap(packet: bytes) -> bytes:
        return _ether(0x0800, _ipv4(protocol, head + (ethernet(packet) if is_frame else packet)))

    return wrap


def _stt(frame: bytes) -> bytes:
    """A frame inside STT, whose header is like TCP's."""
    whole = bytes(2) + b"\x22" + bytes(13) + bytes(2) + frame
    head = struct.pack(">HHHHIBBHHH", 50000, 7471, len(whole), 0, 7, 0x50, 0x18, 0, 0, 0)
    return _ether(0x0800, _ipv4(6, head + whole))


def _nflog(packet: bytes) -> bytes:
    attribute = struct.pack("<HH", 4 + len(packet), 9) + packet
    head = struct.pack(">BBH", 2, 0, 0) + struct.pack("<HHHBB", 8, 1, 0x0800, 3, 0)
    return head + attribute + bytes(-len(attribute) % 4)


def _pktap(packet: bytes) -> bytes:
    return struct.pack("<III", 156, 1, 0).ljust(156, b"\0") + b"\2\0\0\0" + packet


_VXLAN = b"\x08\0\0\0\0\0\x2a\0"
_ERSPAN_2 = b"\x10\0\x88\xbe\0\0\0\1" + struct.pack(">HHI", 0x1000, 100, 0)
_ERSPAN_3 = b"\x10\0\x22\xeb\0\0\0\1" + struct.pack(">HHIHH", 0x2000, 100, 0, 0, 0)
_LABEL = struct.pack(">I", 17 << 12 | 64)
_LAST_LABEL = struct.pack(">I", 16 << 12 | 0x100 | 64)

# Link type, wrapping, and the name under which its packets are counted; none for parts of a link.
WRAPPINGS: dict[str, tuple[int, Callable[[bytes], bytes], str]] = {
    "vxlan": (1, _over_udp(4789, _VXLAN), "VXLAN (UDP 4789)"),
    "vxlan of flannel": (1, _over_udp(8472, _VXLAN), "VXLAN (UDP 8472)"),
    "vxlan on any port": (1, _over_udp(20000, _VXLAN), "VXLAN (UDP 20000)"),
    "vxlan in ipv6": (
        1,
        lambda p: _ether(0x86DD, _ipv6(17, _udp(4789, _VXLAN + ethernet(p)))),
        "VXLAN (UDP 4789)",
    ),
    "geneve": (1, _over_udp(6081, b"\0\0\x65\x58\0\0\x2a\0"), "Geneve (UDP 6081)"),
    "geneve with options": (
        1, _over_udp(6081, b"\2\0\x65\x58\0\0\x2a\0" + bytes(8)), "Geneve (UDP 6081)"
    ),
    "gtp-u": (
        1,
        lambda p: _ether(0x0800, _ipv4(17, _udp(
            2152, b"\x30\xff" + struct.pack(">HI", len(p), 7) + p
        ))),
        "GTP-U (UDP 2152)",
    ),
    "gtp-u with an extension": (
        1,
        lambda p: _ether(0x0800, _ipv4(17, _udp(
            2152, b"\x34\xff" + struct.pack(">HI", len(p) + 8, 7) + b"\0\0\0\x85\1\0\0\0" + p
        ))),
        "GTP-U (UDP 2152)",
    ),
    "vxlan with a group": (1, _over_udp(4789, b"\x88\0\0\5\0\0\x2a\0"), "VXLAN (UDP 4789)"),
    "enc": (109, lambda p: bytes(12) + p, ""),
    "gre": (1, _over_ip(47, b"\0\0\x08\0", is_frame=False), "GRE"),
    "gre with key and sequence": (
        1, _over_ip(47, b"\x30\0\x08\0\0\0\0\1\0\0\0\2", is_frame=False), "GRE"
    ),
    "gre with frames": (1, _over_ip(47, b"\0\0\x65\x58", is_frame=True), "GRE"),
    "erspan 1": (1, _over_ip(47, b"\0\0\x88\xbe", is_frame=True), "ERSPAN"),
    "erspan 2": (1, _over_ip(47, _ERSPAN_2, is_frame=True), "ERSPAN"),
    "erspan 3": (1, _over_ip(47, _ERSPAN_3, is_frame=True), "ERSPAN"),
    "ip in ip": (1, _over_ip(4, b"", is_frame=False), "IP in IP"),
    "ip in ipv6": (1, lambda p: _ether(0x86DD, _ipv6(4, p)), "IP in IP"),
    "etherip": (1, _over_ip(97, b"\x30\0", is_frame=True), "EtherIP"),
    "authentication": (
        1, _over_ip(51, b"\4\4\0\0" + bytes(20), is_frame=False), "IPsec AH, IP in IP"
    ),
    "mpls": (1, lambda p: _ether(0x8847, _LABEL + _LAST_LABEL + p), "MPLS"),
    "mpls with frames": (
        1, lambda p: _ether(0x8847, _LAST_LABEL + bytes(4) + ethernet(p)), "MPLS"
    ),
    "pppoe": (
        1,
        lambda p: _ether(0x8864, struct.pack(">BBHHH", 0x11, 0, 1, len(p) + 2, 0x21) + p),
        "PPPoE",
    ),
    "llc": (
        1, lambda p: _ether(len(p) + 8, b"\xaa\xaa\3\0\0\0" + struct.pack(">H", 0x0800) + p), ""
    ),
    "vn-tag": (1, lambda p: _MACS + b"\x89\x26\0\0\0\0" + ethernet(p)[12:], ""),
    "cisco metadata": (1, lambda p: _MACS + b"\x89\x09\1\1\0\1\0\x64" + ethernet(p)[12:], ""),
    "ppp": (9, lambda p: b"\xff\3\0\x21" + p, ""),
    "compressed ppp": (9, lambda p: b"\x21" + p, ""),
    "cisco hdlc": (104, lambda p: b"\x0f\0\x08\0" + p, ""),
    "nflog": (239, _nflog, ""),
    "ipnet": (226, lambda p: b"\1\2".ljust(24, b"\0") + p, ""),
    "pktap": (258, _pktap, ""),
    "pppoe with a short protocol": (
        1,
        lambda p: _ether(0x8864, struct.pack(">BBHHB", 0x11, 0, 1, len(p) + 1, 0x21) + p),
        "PPPoE",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("link", "wrap", "name"), WRAPPINGS.values(), ids=WRAPPINGS)
def test_what_is_wrapped_is_decoded_as_if_it_were_not(
    tmp_path: Path, link: int, wrap: Callable[[bytes], bytes], name: str
) -> None:
    """And the wrapping is named with its count, so that nobody wonders where packets come from."""
    packets = [(s.time_ns, wrap(ip_packet(s))) for s in _segments()]
    frames, capture = decode(tmp_path / "a.pcap", pcap(packets, link=link))
    assert [frame.data[-3:] for frame in frames] == [b"abc", b"fgh"]
    assert frames[0].connection == "10.0.0.1:40000-10.0.0.2:9092"
    health = capture.health
    assert health.opened == ({name: 5} if name else {})
    assert (health.skipped_packets, health.unopened, health.unsupported_links) == (0, {}, {})


@pytest.mark.parametrize(("link", "wrap", "name"), WRAPPINGS.values(), ids=WRAPPINGS)
def test_damaged_wrappings_end_nothing(
    link: int, wrap: Callable[[bytes], bytes], name: str
) -> None:
    """Cut anywhere, or with any byte wrong: each packet is counted once, or holds a segment."""
    del name
    whole = wrap(ip_packet(_segments()[3]))
    rng = random.Random(len(whole))
    for cut in range(len(whole)):
        _read(link, whole[:cut])
    for _ in range(500):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        _read(link, bytes(data))


def _read(link: int, data: bytes) -> None:
    health = Health()
    packet = Packet(1, link, data, 0, len(data), len(data), 0, 0, len(data))
    segment = SegmentReader(health).read(packet)
    counted = (
        health.skipped_packets
        + sum(health.unopened.values())
        + sum(health.unsupported_links.values())
        + (health.truncated_packets if segment is None else 0)
    )
    assert counted == (segment is None and not health.fragments)


def test_a_tunnelled_packet_may_come_in_pieces(tmp_path: Path) -> None:
    """A tunnel makes packets longer than the network takes."""
    packets = []
    for segment in _segments():
        inside = _udp(4789, _VXLAN + ethernet(ip_packet(segment)))
        packets.append((segment.time_ns, _ether(0x0800, _ipv4(17, inside[:48], fragment=0x2000))))
        packets.append((segment.time_ns, _ether(0x0800, _ipv4(17, inside[48:], fragment=6))))
    frames, capture = decode(tmp_path / "a.pcap", pcap(packets))
    assert len(frames) == 2
    assert capture.health.opened == {"VXLAN (UDP 4789)": 5}


def test_a_server_may_listen_at_the_port_of_stt(tmp_path: Path) -> None:
    """Then it is TCP, and Kafka in it."""
    frames, capture = decode(tmp_path / "a.pcap", pcap(_at_port_of_stt(_segments())))
    assert len(frames) == 2
    assert not capture.health.unopened


@pytest.mark.parametrize("each_engine", engine.available(), indirect=True)
def test_both_engines_take_the_same_segments_for_frames_of_stt(
    tmp_path: Path, each_engine: str
) -> None:
    """Also one that continues a connection: nothing distinguishes it from a frame."""
    session = Session().open()
    for number in range(1, 9):
        session.client(request(number, b"abc")).server(response(number, b"defgh"))
    segments = session.segments
    like = next(s for s in segments[9:] if s.payload and s.target[1] == 9092)
    shift = (len(like.payload) << 16) - like.seq
    moved = [
        replace(s, seq=s.seq + shift) if s.target[1] == 9092 else replace(s, ack=s.ack + shift)
        for s in segments
    ]
    frames, capture = decode(tmp_path / f"{each_engine}.pcap", pcap(_at_port_of_stt(moved)))
    assert capture.health.unopened == {"STT (TCP 7471)": 1}
    assert sum(frame.is_request for frame in frames) == 7


def _at_port_of_stt(segments: list[Segment]) -> list[tuple[int, bytes]]:
    """The packets of segments whose server listens at another port."""
    moved = [
        replace(s, **{end: (host, 7471 if port == 9092 else port) for end, (host, port) in
                      (("source", s.source), ("target", s.target))})
        for s in segments
    ]
    return [(s.time_ns, ethernet(ip_packet(s))) for s in moved]


def test_nested_wrappings_are_named_from_the_outside(tmp_path: Path) -> None:
    """A mirror of a mirror is common in clouds."""
    outer = _over_udp(4789, _VXLAN)
    packets = [
        (s.time_ns, outer(_ipv4(47, b"\0\0\x08\0" + ip_packet(s)))) for s in _segments()
    ]
    frames, capture = decode(tmp_path / "a.pcap", pcap(packets))
    assert len(frames) == 2
    assert capture.health.opened == {"VXLAN (UDP 4789), GRE": 5}


def test_depth_is_bounded(tmp_path: Path) -> None:
    """A packet of nothing but wrappings costs no more than its first few."""
    packet = ip_packet(_segments()[0])
    for _ in range(WRAPPINGS_MAX + 1):
        packet = _ipv4(4, packet)
    tagged = _ether(0x8100, b"\0\7\x81\0" * 200)
    _, capture = decode(tmp_path / "a.pcap", pcap([(1, _ether(0x0800, packet)), (2, tagged)]))
    health = capture.health
    assert health.unopened == {f"more than {WRAPPINGS_MAX} wrappings": 2}
    assert not health.opened
    assert not health.skipped_packets


def _closed_udp(port: int, start: bytes) -> bytes:
    return _ether(0x0800, _ipv4(17, _udp(port, start + bytes(60))))


# Tunnels that are named and not opened.
CLOSED = {
    "IPsec ESP": _ether(0x0800, _ipv4(50, bytes(40))),
    "L2TPv3": _ether(0x0800, _ipv4(115, bytes(40))),
    "PPTP": _ether(0x0800, _ipv4(47, b"\x30\1\x88\x0b" + bytes(40))),
    "STT (TCP 7471)": _stt(ethernet(ip_packet(_segments()[0]))),
    "PPPoE, compressed PPP": _ether(0x8864, b"\x11\0\0\1\0\x29\xfd" + bytes(40)),
    "TRILL": _ether(0x22F3, bytes(60)),
    "batman-adv": _ether(0x4305, bytes(60)),
    "MACsec": _ether(0x88E5, bytes(60)),
    "MAC-in-MAC": _ether(0x88E7, bytes(60)),
    "FabricPath": _ether(0x8903, bytes(60)),
    "HSR": _ether(0x892F, bytes(60)),
    "NSH": _ether(0x894F, bytes(60)),
    "GRE, WCCP": _ether(0x0800, _ipv4(47, b"\0\0\x88\x3e" + bytes(40))),
    "L2TP (UDP 1701)": _closed_udp(1701, b"\0\2\0\1\0\2\xff\3\0\x21"),
    "Teredo (UDP 3544)": _closed_udp(3544, b"\x60"),
    "LISP (UDP 4341)": _closed_udp(4341, b"\x80"),
    "IPsec ESP (UDP 4500)": _closed_udp(4500, b"\1"),
    "GRE (UDP 4754)": _closed_udp(4754, b"\0\0\x08\0"),
    "VXLAN-GPE (UDP 4790)": _closed_udp(4790, b"\x0c\0\0\1\0\0\7\0"),
    "CAPWAP (UDP 5247)": _closed_udp(5247, b"\0\x10\2\0"),
    "GUE (UDP 6080)": _closed_udp(6080, b"\1\4\0\0"),
    "MPLS (UDP 6635)": _closed_udp(6635, _LAST_LABEL),
    "HEP (UDP 9060)": _closed_udp(9060, b"HEP3"),
    "TZSP (UDP 37008)": _closed_udp(37008, b"\1\0\0\1\1"),
    "WireGuard (UDP 51820)": _closed_udp(51820, b"\4\0\0\0"),
    "VXLAN (UDP 4789), MACsec": _ether(
        0x0800, _ipv4(17, _udp(4789, _VXLAN + _ether(0x88E5, bytes(60))))
    ),
}


@pytest.mark.parametrize("name", CLOSED)
def test_what_cannot_be_opened_is_named_once(tmp_path: Path, name: str) -> None:
    """Not as packets of other protocols too."""
    _, capture = decode(tmp_path / "a.pcap", pcap([(1, CLOSED[name])] * 3))
    assert capture.health.unopened == {name: 3}
    assert capture.health.skipped_packets == 0


def test_other_packets_in_a_tunnel_are_ordinary(tmp_path: Path) -> None:
    """ARP and DNS inside of VXLAN are packets of other protocols, as outside of it."""
    arp = _ether(0x0806, bytes(28))
    inside = [_ether(0x0800, _ipv4(17, _udp(4789, _VXLAN + arp)))]
    dns = _ipv4(17, _udp(53, b"\x08\0\1\0\0\1\0\0\0\0\0\0\3abc\0\0\1\0\1"))
    _, capture = decode(tmp_path / "a.pcap", pcap([(1, p) for p in [*inside, _ether(0x0800, dns)]]))
    assert capture.health.skipped_packets == 2
    assert not capture.health.unopened


def test_the_number_of_names_is_bounded() -> None:
    """A capture may have a tunnel on each port."""
    health = Health()
    for port in range(5 * WRAPPINGS_LISTED):
        health.count_wrapped((f"VXLAN (UDP {port})",), is_opened=True)
    assert len(health.opened) == WRAPPINGS_LISTED + 1
    assert sum(health.opened.values()) == 5 * WRAPPINGS_LISTED


def test_a_packet_inside_and_outside_of_a_tunnel_counts_once(tmp_path: Path) -> None:
    """A host that ends the tunnel shows both."""
    wrap = _over_udp(4789, _VXLAN)
    packets = []
    for segment in _segments():
        packets += [(segment.time_ns, wrap(ip_packet(segment)))]
        packets += [(segment.time_ns + 1000, ethernet(ip_packet(segment)))]
    frames, capture = decode(tmp_path / "a.pcap", pcap(packets))
    assert [frame.data[-3:] for frame in frames] == [b"abc", b"fgh"]
    health = capture.health
    assert (health.copies, health.retransmissions, health.conflicts) == (2, 0, 0)
    assert health.bytes.unaccounted == 0


def _with_timestamp(segment: Segment, server: str, value: int) -> bytes:
    """The packet of a segment with a server of another address, and a TCP timestamp."""
    ends = [(server, port) if host == "10.0.0.2" else (host, port) for host, port in
            (segment.source, segment.target)]
    packet = bytearray(ip_packet(replace(segment, source=ends[0], target=ends[1])))
    packet[32] = 0x80
    packet[40:40] = b"\1\1\x08\x0a" + struct.pack(">II", value, 0)
    packet[2:4] = struct.pack(">H", len(packet))
    return bytes(packet)


@pytest.mark.parametrize("is_same", [True, False])
def test_a_connection_before_and_after_translation_counts_once(
    tmp_path: Path, is_same: bool
) -> None:
    """The address of a service, and the one of the pod behind it; another clock is another client.
    """
    packets = []
    for at, segment in enumerate(_segments()):
        packets.append((segment.time_ns, ethernet(_with_timestamp(segment, "10.0.0.2", 70 + at))))
        value = 70 + at if is_same else 90 + at
        packets.append(
            (segment.time_ns + 1000, ethernet(_with_timestamp(segment, "10.9.9.9", value)))
        )
    frames, capture = decode(tmp_path / "a.pcap", pcap(packets))
    health = capture.health
    assert health.translated_connections == is_same
    assert {frame.connection for frame in frames} == (
        {"10.0.0.1:40000-10.0.0.2:9092"}
        if is_same
        else {"10.0.0.1:40000-10.0.0.2:9092", "10.0.0.1:40000-10.9.9.9:9092"}
    )
    assert health.bytes.unaccounted == 0


def test_the_ends_of_a_copy_may_be_used_again(tmp_path: Path) -> None:
    """Each SYN decides: a later connection of the same ends that comes once is one of its own."""
    packets = []
    for at, segment in enumerate(_segments()):
        for shift, server in enumerate(("10.0.0.2", "10.9.9.9")):
            packet = ethernet(_with_timestamp(segment, server, 70 + at))
            packets.append((segment.time_ns + shift, packet))
    for at, segment in enumerate(_segments()):
        later = replace(segment, time_ns=segment.time_ns + 60 * 10**9, seq=segment.seq + 10**6)
        packets.append((later.time_ns, ethernet(_with_timestamp(later, "10.9.9.9", 700 + at))))
    frames, capture = decode(tmp_path / "a.pcap", pcap(packets))
    assert capture.health.translated_connections == 1
    assert [frame.connection for frame in frames] == [
        *2 * ("10.0.0.1:40000-10.0.0.2:9092",), *2 * ("10.0.0.1:40000-10.9.9.9:9092",)
    ]
