"""TCP segments of packets on any link: Ethernet, VLAN, raw IP, Linux cooked; IPv4 and IPv6."""

from __future__ import annotations

import struct
from typing import NamedTuple

from kraftwire.capture.framing.health import Health
from kraftwire.capture.packets.packet import Packet, Stamp

# Fragmented IP packets that are reassembled at a time; each holds at most 64 KiB.
FRAGMENTED_PACKETS_MAX = 64


class Segment(NamedTuple):
    """A TCP segment: its payload is `data[start:end]`, without `missing` bytes that were cut off.

    `key` are addresses and ports, sender first; it names one direction of a connection.
    """

    stamp: Stamp
    key: bytes
    seq: int
    ack: int
    flags: int
    data: bytes
    start: int
    end: int
    missing: int

    @property
    def size(self) -> int:
        """How many bytes of payload the capture has."""
        return self.end - self.start



# A flag next to TCP's own eight: the capture cut off part of the payload.
MISSING = 0x100

_TCP = 6
_HOP_BY_HOP = 0
_ROUTING = 43
_FRAGMENT = 44
_AUTHENTICATION = 51
_DESTINATION = 60
_MOBILITY = 135
_EXTENSIONS = frozenset({_HOP_BY_HOP, _ROUTING, _DESTINATION, _MOBILITY, 139, 140})

# A packet has at most 65,535 bytes; pieces that repeat each other have to end somewhere.
_PIECES_BYTES_MAX = 4 * 65_535

_TCP_HEADER = struct.Struct(">HHIIBB").unpack_from
_TCP_SIZE = 20
_U16 = struct.Struct(">H").unpack_from
_U32 = struct.Struct(">I").unpack_from


class IpReader:
    """Reads IP packets; keeps the fragments of those that came in pieces until all are there."""

    def __init__(self, health: Health) -> None:
        self._health = health
        self._fragments: dict[bytes, _Fragments] = {}

    def read(
        self, stamp: Stamp, data: bytes, at: int, limit: int, wire_end: int
    ) -> Segment | None:
        """Return the segment of the packet whose IP header is at `at`; None if there is none (yet).

        `limit` is the end of the captured bytes, `wire_end` of all that were on the wire.
        """
        version = data[at] >> 4
        if version == 4 and at + 20 <= limit:
            return self._ipv4(stamp, data, at, limit, wire_end)
        if version == 6 and at + 40 <= limit:
            return self._ipv6(stamp, data, at, limit, wire_end)
        self._health.count_skipped()
        return None

    def _ipv4(
        self, stamp: Stamp, data: bytes, at: int, limit: int, wire_end: int
    ) -> Segment | None:
        (total,) = _U16(data, at + 2)
        # A network card that cuts segments itself hands over long packets with a length of zero.
        end = at + total if total else wire_end
        start = at + (data[at] & 15) * 4
        addresses = data[at + 12 : at + 20]
        (fragment,) = _U16(data, at + 6)
        if data[at + 9] != _TCP or start < at + 20:
            self._health.count_skipped()
            return None
        if not fragment & 0x3FFF:
            return self._tcp(stamp, addresses, (data, start, limit, end))
        piece = data[start : min(end, limit)] if end <= limit else b""
        key = addresses + data[at + 4 : at + 6]
        whole = self._join(key, (fragment & 0x1FFF) * 8, piece, bool(fragment & 0x2000))
        if not whole:
            return None
        return self._tcp(stamp, addresses, (whole, 0, len(whole), len(whole)))

    def _ipv6(
        self, stamp: Stamp, data: bytes, at: int, limit: int, wire_end: int
    ) -> Segment | None:
        (length,) = _U16(data, at + 4)
        end = at + 40 + length if length else wire_end
        protocol = data[at + 6]
        addresses = data[at + 8 : at + 40]
        at += 40
        while at + 8 <= limit and protocol != _TCP:
            if protocol in _EXTENSIONS:
                protocol, at = data[at], at + 8 + data[at + 1] * 8
            elif protocol == _AUTHENTICATION:
                protocol, at = data[at], at + 8 + data[at + 1] * 4
            elif protocol == _FRAGMENT:
                (fragment,) = _U16(data, at + 2)
                if fragment & 0xFFF9:
                    return self._ipv6_fragment(stamp, addresses, (data, at, limit, end))
                protocol, at = data[at], at + 8
            else:
                break
        if protocol != _TCP:
            self._health.count_skipped()
            return None
        return self._tcp(stamp, addresses, (data, at, limit, end))

    def _ipv6_fragment(
        self, stamp: Stamp, addresses: bytes, place: tuple[bytes, int, int, int]
    ) -> Segment | None:
        data, at, limit, end = place
        (fragment,) = _U16(data, at + 2)
        piece = data[at + 8 : end] if end <= limit else b""
        key = addresses + data[at + 4 : at + 8]
        whole = self._join(key, fragment & 0xFFF8, piece, bool(fragment & 1))
        if not whole or data[at] != _TCP:
            return None
        return self._tcp(stamp, addresses, (whole, 0, len(whole), len(whole)))

    def _join(self, key: bytes, offset: int, piece: bytes, more: bool) -> bytes | None:
        """Keep a piece of a packet; returns the whole packet if this was its last missing piece."""
        self._health.fragments += 1
        pieces = self._fragments.get(key)
        if pieces is None:
            if len(self._fragments) >= FRAGMENTED_PACKETS_MAX:
                del self._fragments[next(iter(self._fragments))]
            pieces = self._fragments[key] = _Fragments()
        whole = pieces.add(offset, piece, more)
        if whole is not None:
            del self._fragments[key]
        return whole

    def _tcp(
        self, stamp: Stamp, addresses: bytes, place: tuple[bytes, int, int, int]
    ) -> Segment | None:
        data, at, limit, end = place
        if at + _TCP_SIZE > min(limit, end):
            self._health.truncated_packets += at + _TCP_SIZE <= end
            self._health.count_skipped()
            return None
        _, _, seq, ack, offset, flags = _TCP_HEADER(data, at)
        start = at + (offset >> 4) * 4
        if offset < 0x50 or start > end:
            self._health.count_skipped()
            return None
        missing = max(0, end - max(limit, start))
        if missing:
            flags |= MISSING
            self._health.truncated_packets += 1
        ports = data[at : at + 4]
        end -= missing
        begin = min(start, end)
        return Segment(stamp, addresses + ports, seq, ack, flags, data, begin, end, missing)


class _Fragments:
    """The pieces of one IP packet that have come so far."""

    __slots__ = ("held", "pieces", "size")

    def __init__(self) -> None:
        self.pieces: dict[int, bytes] = {}
        self.held = 0
        self.size = -1

    def add(self, offset: int, piece: bytes, more: bool) -> bytes | None:
        """Add a piece; returns the whole packet once no piece is missing."""
        self.held += len(piece)
        if self.held <= _PIECES_BYTES_MAX:
            self.pieces.setdefault(offset, piece)
        if not more:
            self.size = offset + len(piece)
        joined = bytearray()
        for start in sorted(self.pieces):
            if start > len(joined):
                return None
            joined[start:] = self.pieces[start]
        return bytes(joined) if len(joined) == self.size else None


FIN = 1
SYN = 2
RST = 4

_ETHERNET = 1
_LOOPBACKS = (0, 108)  # four bytes of address family, in the byte order of the capturing machine
_RAW_IPS = (12, 14, 101, 228, 229)
_LINUX_COOKED = 113
_LINUX_COOKED_2 = 276

_IPV4 = 0x0800
_IPV6 = 0x86DD
_VLAN_TAGS = (0x8100, 0x88A8, 0x9100)

_NOT_IP = -1
_UNSUPPORTED = -2


class SegmentReader:
    """Reads the TCP segment of any packet."""

    def __init__(self, health: Health) -> None:
        self._health = health
        self._ip = IpReader(health)

    def read(self, packet: Packet) -> Segment | None:
        """Return the segment; None if the packet holds none, or only a fragment of one."""
        time_ns, link, data, start, captured, wire, base, begin, stop = packet
        at = _network_start(link, data, start, start + captured)
        if at >= 0:
            stamp = (time_ns, base + begin, base + stop)
            return self._ip.read(stamp, data, at, start + captured, start + wire)
        self._health.count_skipped(link if at == _UNSUPPORTED else None)
        return None


def _network_start(link: int, data: bytes, start: int, end: int) -> int:
    """Return where the IP header begins; negative if there is none, or the link type is unknown."""
    if link == _ETHERNET:
        return _typed(data, start + 12, start + 14, end)
    if link in _RAW_IPS:
        return start if end > start else _NOT_IP
    if link == _LINUX_COOKED:
        return _typed(data, start + 14, start + 16, end)
    if link == _LINUX_COOKED_2:
        return _typed(data, start, start + 20, end)
    if link in _LOOPBACKS:
        at = start + 4
        return at if end > at and data[at] >> 4 in (4, 6) else _NOT_IP
    return _UNSUPPORTED


def _typed(data: bytes, kind_at: int, at: int, end: int) -> int:
    """Step over VLAN tags between a protocol number and the data that it announces."""
    if at > end:
        return _NOT_IP
    (kind,) = _U16(data, kind_at)
    while kind in _VLAN_TAGS and at + 4 <= end:
        (kind,) = _U16(data, at + 2)
        at += 4
    return at if kind in (_IPV4, _IPV6) and at < end else _NOT_IP
