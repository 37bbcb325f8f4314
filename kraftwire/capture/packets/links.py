"""TCP segments of packets: IPv4 and IPv6, their extensions and fragments, on any link."""

from __future__ import annotations

import struct
from heapq import heappop, heappush
from typing import NamedTuple

from kraftwire.capture.framing.health import Health
from kraftwire.capture.packets.packet import Packet, Stamp
from kraftwire.capture.packets.wrappings import (
    MAY_WRAP,
    TOO_DEEP,
    WRAPPINGS_MAX,
    IpLocation,
    find_ip,
    find_ip_in_ip,
    is_known_link,
)

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

# Extensions are read this far: a packet may consist of nothing else.
_EXTENSIONS_BYTES_MAX = 4096

# A tunnel that has a header like TCP's, and this in the place of its port. The sequence number of a
# frame that is whole is its length, shifted. Source: draft-davie-stt.
_STT_PORT, _STT = 7471, "STT (TCP 7471)"

# A packet has at most 65,535 bytes; pieces that repeat each other have to end somewhere.
_PIECES_BYTES_MAX = 4 * 65_535

_TCP_HEADER = struct.Struct(">HHIIBB").unpack_from
_TCP_SIZE = 20
_U16 = struct.Struct(">H").unpack_from


# Bytes, where a header begins in them, the end of the captured ones, and of all on the wire.
_Header = tuple[bytes, int, int, int]
_Names = tuple[str, ...]


class IpReader:
    """Reads IP packets; keeps the fragments of those that came in pieces until all are there."""

    def __init__(self, health: Health) -> None:
        self._health = health
        self._fragments: dict[bytes, _Fragments] = {}

    def read(self, stamp: Stamp, place: _Header, names: _Names = ()) -> Segment | None:
        """Return the segment of the packet whose IP header begins at a place; None if there is
        none (yet). `names` are the wrappings around it.
        """
        data, at, limit, _ = place
        version = data[at] >> 4
        if version == 4 and at + 20 <= limit:
            return self._ipv4(stamp, place, names)
        if version == 6 and at + 40 <= limit:
            return self._ipv6(stamp, place, names)
        self._health.count_skipped()
        return None

    def _ipv4(self, stamp: Stamp, place: _Header, names: _Names) -> Segment | None:
        data, at, limit, wire_end = place
        (total,) = _U16(data, at + 2)
        # A network card that cuts segments itself hands over long packets with a length of zero.
        end = at + total if total else wire_end
        start = at + (data[at] & 15) * 4
        addresses = data[at + 12 : at + 20]
        (fragment,) = _U16(data, at + 6)
        protocol = data[at + 9]
        if start < at + 20:
            self._health.count_skipped()
            return None
        if fragment & 0x3FFF and (protocol == _TCP or protocol in MAY_WRAP):
            piece = data[start : min(end, limit)] if end <= limit else b""
            key = addresses + data[at + 4 : at + 6] + data[at + 9 : at + 10]
            whole = self._join(key, (fragment & 0x1FFF) * 8, piece, bool(fragment & 0x2000))
            if not whole:
                return None
            data, start, limit, end = whole, 0, len(whole), len(whole)
        return self._inside(stamp, protocol, addresses, (data, start, limit, end), names)

    def _ipv6(self, stamp: Stamp, place: _Header, names: _Names) -> Segment | None:
        data, at, limit, wire_end = place
        (length,) = _U16(data, at + 4)
        end = at + 40 + length if length else wire_end
        protocol = data[at + 6]
        addresses = data[at + 8 : at + 40]
        at += 40
        stop = min(limit, at + _EXTENSIONS_BYTES_MAX)
        while at + 8 <= stop and protocol != _TCP:
            if protocol in _EXTENSIONS:
                protocol, at = data[at], at + 8 + data[at + 1] * 8
            elif protocol == _AUTHENTICATION:
                protocol, at = data[at], at + 8 + data[at + 1] * 4
            elif protocol == _FRAGMENT:
                (fragment,) = _U16(data, at + 2)
                if fragment & 0xFFF9:
                    return self._ipv6_fragment(stamp, addresses, (data, at, limit, end), names)
                protocol, at = data[at], at + 8
            else:
                break
        return self._inside(stamp, protocol, addresses, (data, at, limit, end), names)

    def _ipv6_fragment(
        self, stamp: Stamp, addresses: bytes, place: _Header, names: _Names
    ) -> Segment | None:
        data, at, limit, end = place
        (fragment,) = _U16(data, at + 2)
        piece = data[at + 8 : end] if end <= limit else b""
        key = addresses + data[at + 4 : at + 8]
        whole = self._join(key, fragment & 0xFFF8, piece, bool(fragment & 1))
        if not whole:
            return None
        return self._inside(stamp, data[at], addresses, (whole, 0, len(whole), len(whole)), names)

    def _inside(
        self, stamp: Stamp, protocol: int, addresses: bytes, place: _Header, names: _Names
    ) -> Segment | None:
        """Return the segment in what an IP packet carries: TCP, or another packet."""
        if protocol == _TCP:
            segment = self._tcp(stamp, addresses, place, names)
            if segment is not None and names:
                self._health.count_wrapped(names, is_opened=True)
            return segment
        data, at, limit, end = place
        found = find_ip_in_ip(protocol, data, at, min(limit, end))
        found = found._replace(names=(*names, *found.names))
        if found.at >= 0 and len(found.names) <= WRAPPINGS_MAX:
            return self.read(stamp, (data, found.at, limit, end), found.names)
        self._skip(found if found.at < 0 else TOO_DEEP)
        return None

    def _skip(self, found: IpLocation) -> None:
        if found.is_closed:
            self._health.count_wrapped(found.names, is_opened=False)
        else:
            self._health.count_skipped()

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
        self, stamp: Stamp, addresses: bytes, place: _Header, names: _Names
    ) -> Segment | None:
        data, at, limit, end = place
        if at + _TCP_SIZE > min(limit, end):
            if at + _TCP_SIZE <= end:
                self._health.truncated_packets += 1
            else:
                self._health.count_skipped()
            return None
        _, port, seq, ack, offset, flags = _TCP_HEADER(data, at)
        start = at + (offset >> 4) * 4
        if offset < 0x50 or start > end:
            self._health.count_skipped()
            return None
        if port == _STT_PORT and seq == (end - start) << 16 > 0:
            self._health.count_wrapped((*names, _STT), is_opened=False)
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
    """The pieces of one IP packet that have come so far: `joined` up to the first that is missing.
    """

    __slots__ = ("held", "joined", "pieces", "size", "starts")

    def __init__(self) -> None:
        self.joined = bytearray()
        self.pieces: dict[int, bytes] = {}
        self.starts: list[int] = []
        self.held = 0
        self.size = -1

    def add(self, offset: int, piece: bytes, more: bool) -> bytes | None:
        """Add a piece; returns the whole packet once no piece is missing."""
        self.held += len(piece)
        if self.held <= _PIECES_BYTES_MAX and offset not in self.pieces:
            self.pieces[offset] = piece
            heappush(self.starts, offset)
        if not more:
            self.size = offset + len(piece)
        joined = self.joined
        while self.starts and self.starts[0] <= len(joined):
            start = heappop(self.starts)
            joined += self.pieces[start][len(joined) - start :]
            self.pieces[start] = b""
        return bytes(joined) if len(joined) == self.size else None


FIN = 1
SYN = 2
RST = 4


class SegmentReader:
    """Reads the TCP segment of any packet, whatever it is wrapped into."""

    def __init__(self, health: Health) -> None:
        self._health = health
        self._ip = IpReader(health)

    def read(self, packet: Packet) -> Segment | None:
        """Return the segment; None if the packet holds none, or only a fragment of one.

        Whatever fails while a packet is read is counted with it: the packets after it still come.
        """
        try:
            return self._read(packet)
        except Exception as error:  # noqa: BLE001
            found = f"a header that could not be read ({type(error).__name__}: {error})"
            self._health.count_wrapped((found,), is_opened=False)
            return None

    def _read(self, packet: Packet) -> Segment | None:
        time_ns, link, data, start, captured, wire, base, begin, stop = packet
        end = start + captured
        found = find_ip(link, data, start, end)
        if found.at >= 0:
            stamp = (time_ns, base + begin, base + stop)
            return self._ip.read(stamp, (data, found.at, end, start + wire), found.names)
        if not is_known_link(link):
            self._health.count_link(link)
        elif found.is_closed:
            self._health.count_wrapped(found.names, is_opened=False)
        else:
            self._health.count_skipped()
        return None
