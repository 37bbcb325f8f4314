"""Makes captures packet by packet: TCP sessions, links, and both file formats.

A `Session` collects segments that a test may drop, repeat, reorder or change before they become
packets. Checksums are zero, as in captures of machines whose network card computes them.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from pathlib import Path

from kraftwire.capture.capture import Capture
from kraftwire.capture.framing.frames import RawFrame

START_NS = 1_700_000_000_000_000_000
MILLISECOND = 1_000_000
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
MASK = 0xFFFFFFFF


@dataclass(frozen=True)
class Segment:
    """A TCP segment; the ends are pairs of address and port."""

    time_ns: int
    source: tuple[str, int]
    target: tuple[str, int]
    seq: int
    ack: int
    flags: int
    payload: bytes = b""

    def tcp(self) -> bytes:
        """Header without options, and payload."""
        ports = (self.source[1], self.target[1])
        head = struct.pack(
            ">HHIIBBHHH", *ports, self.seq & MASK, self.ack & MASK, 0x50, self.flags, 65535, 0, 0
        )
        return head + self.payload

    def cut(self, start: int, end: int) -> Segment:
        """A segment with part of the payload."""
        return replace(self, seq=self.seq + start, payload=self.payload[start:end])


@dataclass
class Session:
    """A connection between a client and a server; segments are a millisecond apart."""

    client_end: tuple[str, int] = ("10.0.0.1", 40000)
    server_end: tuple[str, int] = ("10.0.0.2", 9092)
    client_seq: int = 1000
    server_seq: int = 5000
    now_ns: int = START_NS
    segments: list[Segment] = field(default_factory=list)
    has_acks: bool = True

    def open(self) -> Session:
        """The three-way handshake."""
        self._add(True, SYN, b"")
        self._add(False, SYN | ACK, b"")
        self._add(True, ACK, b"")
        return self

    def client(self, payload: bytes, *, mss: int = 1448) -> Session:
        """Bytes from the client, cut into segments."""
        return self._send(True, payload, mss)

    def server(self, payload: bytes, *, mss: int = 1448) -> Session:
        """Bytes from the server, cut into segments."""
        return self._send(False, payload, mss)

    def ack(self, *, by_client: bool) -> Session:
        """A segment without payload, which acknowledges everything."""
        self._add(by_client, ACK, b"")
        return self

    def close(self) -> Session:
        """Both ends close the connection."""
        self._add(True, FIN | ACK, b"")
        self._add(False, FIN | ACK, b"")
        return self

    def reset(self, *, by_client: bool = True) -> Session:
        """One end breaks the connection."""
        self._add(by_client, RST | ACK, b"")
        return self

    def _send(self, by_client: bool, payload: bytes, mss: int) -> Session:
        for start in range(0, len(payload), mss):
            self._add(by_client, PSH | ACK, payload[start : start + mss])
        return self

    def _add(self, by_client: bool, flags: int, payload: bytes) -> None:
        mine, other = self.client_seq, self.server_seq
        ends = (self.client_end, self.server_end)
        if not by_client:
            mine, other, ends = other, mine, (ends[1], ends[0])
        ack = other if flags & ACK and self.has_acks else 0
        self.segments.append(Segment(self.now_ns, *ends, mine, ack, flags, payload))
        self.now_ns += MILLISECOND
        mine += len(payload) + bool(flags & (SYN | FIN))
        if by_client:
            self.client_seq = mine
        else:
            self.server_seq = mine


def frame(payload: bytes) -> bytes:
    """A payload with its length before it."""
    return struct.pack(">i", len(payload)) + payload


def request(
    correlation_id: int,
    body: bytes = b"",
    *,
    key: int = 3,
    version: int = 1,
    client_id: str | None = "tester",
) -> bytes:
    """A framed request with header version 1, by default Metadata v1."""
    name = struct.pack(">h", -1)
    if client_id is not None:
        name = struct.pack(">h", len(client_id.encode())) + client_id.encode()
    return frame(struct.pack(">hhi", key, version, correlation_id) + name + body)


def response(correlation_id: int, body: bytes = b"") -> bytes:
    """A framed response with header version 0."""
    return frame(struct.pack(">i", correlation_id) + body)


def ip_packet(segment: Segment, *, options: bytes = b"", extensions: bytes = b"") -> bytes:
    """A segment in IPv4 or IPv6, whichever its addresses are."""
    addresses = [ip_address(end[0]).packed for end in (segment.source, segment.target)]
    tcp = segment.tcp()
    if len(addresses[0]) == 16:
        first = 0 if extensions else socket.IPPROTO_TCP
        size = len(extensions) + len(tcp)
        head = struct.pack(">IHBB", 6 << 28, size, first, 64) + b"".join(addresses)
        return head + extensions + tcp
    words = 5 + len(options) // 4
    head = struct.pack(
        ">BBHHHBBH", 0x40 | words, 0, words * 4 + len(tcp), 7, 0x4000, 64, socket.IPPROTO_TCP, 0
    )
    return head + b"".join(addresses) + options + tcp


def ethernet(packet: bytes, *, tags: bytes = b"") -> bytes:
    """An IP packet in an Ethernet frame; `tags` come before the type."""
    kind = 0x0800 if packet[0] >> 4 == 4 else 0x86DD
    return b"\x02" * 6 + b"\x04" * 6 + tags + struct.pack(">H", kind) + packet


def pcap(
    packets: Iterable[tuple[int, bytes]],
    *,
    link: int = 1,
    order: str = "<",
    nanoseconds: bool = False,
    snap: int = 262144,
) -> bytes:
    """A capture file of packets, each with its time; longer ones than `snap` are cut."""
    magic, unit = (0xA1B23C4D, 1) if nanoseconds else (0xA1B2C3D4, 1000)
    out = bytearray(struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, snap, link))
    for time_ns, packet in packets:
        seconds, rest = divmod(time_ns, 1_000_000_000)
        kept = packet[:snap]
        out += struct.pack(f"{order}IIII", seconds, rest // unit, len(kept), len(packet)) + kept
    return bytes(out)


def pcap_of(segments: Iterable[Segment], *, snap: int = 262144) -> bytes:
    """A capture file of segments over Ethernet."""
    return pcap(((s.time_ns, ethernet(ip_packet(s))) for s in segments), snap=snap)


def decode(path: Path, content: bytes) -> tuple[list[RawFrame], Capture]:
    """Write a capture and decode it."""
    path.write_bytes(content)
    capture = Capture(str(path))
    frames = list(capture)
    # In every test: no byte may be dropped silently.
    assert capture.health.bytes.unaccounted == 0
    return frames, capture


def decode_segments(
    folder: Path, segments: Iterable[Segment], *, snap: int = 262144
) -> tuple[list[RawFrame], Capture]:
    """Decode a capture of segments over Ethernet."""
    return decode(folder / "segments.pcap", pcap_of(segments, snap=snap))


def block(kind: int, body: bytes, *, order: str = "<") -> bytes:
    """A block of pcapng."""
    body += bytes(-len(body) % 4)
    size = struct.pack(f"{order}I", len(body) + 12)
    return struct.pack(f"{order}I", kind) + size + body + size


def section(*, order: str = "<") -> bytes:
    """The start of a section of pcapng."""
    return block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1), order=order)


def interface(
    *, link: int = 1, order: str = "<", options: Iterable[tuple[int, bytes]] = (), snap: int = 0
) -> bytes:
    """An interface of pcapng with options."""
    body = struct.pack(f"{order}HHI", link, 0, snap)
    for code, value in options:
        body += struct.pack(f"{order}HH", code, len(value)) + value + bytes(-len(value) % 4)
    return block(1, body + bytes(4), order=order)


def packet_block(packet: bytes, ticks: int, *, order: str = "<", interface_id: int = 0) -> bytes:
    """A packet of pcapng, with a time in the interface's own unit."""
    head = (interface_id, ticks >> 32, ticks & MASK, len(packet), len(packet))
    return block(6, struct.pack(f"{order}IIIII", *head) + packet, order=order)
