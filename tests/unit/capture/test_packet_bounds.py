"""No reader of a packet looks behind its end, and none that fails ends the reading of a capture."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from heapq import heappop
from pathlib import Path
from typing import Any

import pytest

from kraftwire.capture.capture import Capture
from kraftwire.capture.framing.health import Health
from kraftwire.capture.packets import links, wrappings
from kraftwire.capture.packets.links import SegmentReader
from kraftwire.capture.packets.packet import Packet
from tests.support.captures.builder import (
    Session,
    decode,
    ethernet,
    ip_packet,
    pcap,
    request,
    response,
)
from tests.unit.capture.test_wrappings import WRAPPINGS

_SEED = 29
_SIZE = 48
_ROUNDS = 20
# What may stand behind a packet in the buffer: nothing, or any other packet.
_BEHIND = (b"", bytes(400), b"\xff" * 400, b"\x45\x06" * 200)

# Bytes that mean something to some reader: flags, lengths, kinds of what follows.
_TELLING = bytes((0, 1, 2, 3, 4, 6, 8, 0x0F, 0x10, 0x30, 0x45, 0x60, 0x80, 0xAA, 0xF0, 0xFF))
# What makes readers go on that seldom get past random bytes.
_STARTS = {
    "gre": [
        struct.pack(">HH", flags, kind)
        for flags in (0, 0x3000, 0xB000, 0xF000, 0x3001, 0xF0FF & ~7, 0x3081)
        for kind in (0x0800, 0x883E, 0x88BE, 0x22EB, 0x6558, 0x880B)
    ],
    "udp": [
        struct.pack(">HHHH", 50_000, port, 40, 0) + start
        for port in (4789, 6081, 2152, 5555, *wrappings._CLOSED_UDP)
        for start in (b"", b"\x08\0\0\0", b"\x34\xff", b"\x01\0\0\x01", b"\x4a\2", b"\x45")
    ],
    "pppoe": [b"\x11\0\0\1\0\x20\xff\x03", b"\x11\0\0\1\0\x20"],
    "nflog": [b"\2\0\0\0\x08\0\x01\0\x08\0\x03\0"],
}


READERS = {f"{space}-{number:#x}": read for (space, number), read in wrappings._READERS.items()}


def _headers(reader: wrappings._Reader, source: random.Random) -> Iterator[bytes]:
    for start in (*_STARTS.get(reader.__name__.lstrip("_"), []), *[b""] * _ROUNDS):
        yield start + bytes(source.choices(_TELLING, k=_SIZE - len(start)))


@pytest.mark.parametrize("name", READERS)
def test_a_header_is_read_from_its_own_bytes(name: str) -> None:
    """Cut at each length, whatever stands behind it in the buffer."""
    reader = READERS[name]
    for header in _headers(reader, random.Random(_SEED)):
        for end in range(1, len(header) + 1):
            found = {reader(header[:end] + behind, 0, end) for behind in _BEHIND}
            assert len(found) == 1, header[:end].hex()


@pytest.mark.parametrize(("link", "wrap", "name"), WRAPPINGS.values(), ids=WRAPPINGS)
def test_a_packet_is_read_from_its_own_bytes(link: int, wrap: object, name: str) -> None:
    """Cut at each length, with bytes that are wrong: IP, its extensions and TCP included."""
    del name
    assert callable(wrap)
    source = random.Random(_SEED)
    segment = Session().open().client(request(1, b"abc")).segments[3]
    whole = bytearray(wrap(ip_packet(segment)))
    for end in range(len(whole) + 1):
        _is_read_alike(link, bytes(whole[:end]))
        changed = bytearray(whole[:end])
        for at in source.choices(range(len(changed)), k=3) if changed else ():
            changed[at] = source.choice(_TELLING)
        _is_read_alike(link, bytes(changed))


def _is_read_alike(link: int, data: bytes) -> None:
    seen = set()
    for behind in _BEHIND:
        health, size = Health(), len(data)
        segment = SegmentReader(health).read(Packet(1, link, data + behind, 0, size, size, 0, 0, 1))
        seen.add(repr((segment and (segment._replace(data=b""), segment.size), health)))
    assert len(seen) == 1, data.hex()
    assert "could not be read" not in seen.pop()


def test_a_packet_that_cannot_be_read_is_counted_and_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a reader raises: all other packets are decoded."""

    def fail(data: bytes, _at: int, end: int) -> None:
        raise IndexError(f"{data[end]} is not to be read")

    segments = Session().open().client(request(1, b"abc")).server(response(1, b"d")).segments
    packets = [(each.time_ns, ethernet(ip_packet(each))) for each in segments]
    gre = struct.pack(">BBHHHBBH8x", 0x45, 0, 24, 1, 0, 64, 47, 0) + bytes(4)
    packets.insert(3, (packets[3][0], ethernet(gre)))
    monkeypatch.setitem(wrappings._READERS, ("ip", 47), fail)
    frames, capture = decode(tmp_path / "a.pcap", pcap(packets))
    assert [frame.direction for frame in frames] == ["request", "response"]
    (text,) = capture.health.unopened_texts()
    assert text.startswith("1 packet inside a header that could not be read (IndexError: ")


def test_a_cut_packet_of_a_web_cache_does_not_end_a_live_capture() -> None:
    """GRE with all its fields, cut where WCCP may have a header of its own."""
    gre = struct.pack(">HH", 0xB000, 0x883E) + bytes(4)
    packet = ethernet(struct.pack(">BBHHHBBH8x", 0x45, 0, 28, 1, 0, 64, 47, 0) + gre)
    assert len(packet) == 42
    capture = Capture(iter([pcap([(1, packet)])]))
    assert list(capture) == []
    assert capture.health.skipped_packets == 1


class _Counted(bytes):
    """Counts the bytes that are looked at one by one."""

    looks = 0

    def __getitem__(self, at: Any) -> Any:
        self.looks += isinstance(at, int)
        return super().__getitem__(at)


def _datagram(port: int, head: bytes) -> bytes:
    return struct.pack(">HHHH", 50_000, port, 60_000, 0) + head


# What begins a list in a packet, and what fills the rest of the packet.
_LISTS = {
    "gtp-u": (0x0800, 17, _datagram(2152, b"\x34\xff" + bytes(9) + b"\1"), b"\1\0\0\1"),
    "mpls": (0x0800, 137, b"", b"\0\0\0\0"),
    "extensions of ipv6": (0x86DD, 60, b"", b"\x3c" + bytes(7)),
}


@pytest.mark.parametrize("name", _LISTS)
def test_a_packet_that_is_one_long_list_is_not_read_through(name: str) -> None:
    """A capture may have thousands of them, and be packed to nearly nothing."""
    kind, protocol, head, fill = _LISTS[name]
    inside = head + fill * (60_000 // len(fill))
    ip = struct.pack(">BBHHHBBH8x", 0x45, 0, 20 + len(inside), 1, 0, 64, protocol, 0)
    if kind == 0x86DD:
        ip = struct.pack(">IHBB32x", 6 << 28, len(inside), protocol, 64)
    data = _Counted(bytes(12) + kind.to_bytes(2, "big") + ip + inside)
    size = len(data)
    assert SegmentReader(Health()).read(Packet(1, 1, data, 0, size, size, 0, 0, size)) is None
    assert data.looks < 2_100


def test_fragments_are_looked_at_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """A packet of 8,000 of them must not cost their square."""
    segment = Session().open().client(request(1, bytes(60_000)), mss=64_000).segments[3]
    whole = ip_packet(segment)[20:]
    pieces = [(at, whole[at : at + 8]) for at in range(0, len(whole), 8)]
    random.Random(_SEED).shuffle(pieces)
    looks = 0

    def counted(starts: list[int]) -> int:
        nonlocal looks
        looks += 1
        return heappop(starts)

    monkeypatch.setattr(links, "heappop", counted)
    reader, found = SegmentReader(Health()), []
    for at, piece in pieces:
        flags = at // 8 | (0x2000 if at + 8 < len(whole) else 0)
        head = struct.pack(">BBHHHBBH8x", 0x45, 0, 20 + len(piece), 1, flags, 64, 6, 0)
        data = ethernet(head + piece)
        size = len(data)
        found.append(reader.read(Packet(1, 1, data, 0, size, size, 0, 0, size)))
    assert found[:-1] == [None] * (len(pieces) - 1)
    assert found[-1] is not None
    assert found[-1].data[found[-1].start :] == segment.payload
    assert looks == len(pieces)
