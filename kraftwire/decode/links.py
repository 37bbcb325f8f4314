"""TCP segments of packets: the fast lane for Ethernet with plain IPv4, and every link type.

Owns link layers and VLAN tags. `links_ip` reads what is rarer: IPv6, options, fragments.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from kraftwire.decode.frames_health import Health
from kraftwire.decode.links_ip import MISSING, IpReader, Segment
from kraftwire.decode.pcap import Packet

__all__ = ["FIN", "MISSING", "RST", "SYN", "Segment", "read_segments"]

FIN = 1
SYN = 2
RST = 4

_ETHERNET = 1
_LOOPBACKS = (0, 108)  # four bytes of address family, in anybody's byte order
_RAW_IPS = (12, 14, 101, 228, 229)
_LINUX_COOKED = 113
_LINUX_COOKED_2 = 276

_IPV4 = 0x0800
_IPV6 = 0x86DD
_VLAN_TAGS = (0x8100, 0x88A8, 0x9100)

# Ethernet's type, then of IPv4: version and header length, total length, fragment, protocol, the
# two addresses; then of TCP: the two ports (both pairs together are the key of a flow), sequence
# number, acknowledgement, header length, flags.
_FAST = struct.Struct(">12xHBxHxxHxBxx12sIIBB")
_FAST_SIZE = _FAST.size
_U16 = struct.Struct(">H").unpack_from


def read_segments(packets: Iterable[Packet], health: Health) -> Iterator[Segment]:
    """The TCP segments of packets, in the same order; other packets are counted only.

    Shape: a segment is time, flow key, sequence number, acknowledgement, flags, buffer, start and
    end of the payload in it, and how many bytes of the payload the capture cut off, for which
    the flags have `MISSING`.
    """
    fast = _FAST.unpack_from
    slow = IpReader(health)
    for packet in packets:
        time_ns, link, data, start, captured, wire = packet
        if link == _ETHERNET and captured >= _FAST_SIZE:
            kind, first, total, fragment, protocol, key, seq, ack, offset, flags = fast(data, start)
            if kind == _IPV4 and first == 0x45 and protocol == 6 and not fragment & 0x3FFF:
                payload = start + 34 + (offset >> 4 << 2)
                end = start + 14 + total
                if payload <= end <= start + captured and offset >= 0x50:
                    yield time_ns, key, seq, ack, flags, data, payload, end, 0
                    continue
        at = _network_start(link, data, start, start + captured)
        if at < 0:
            health.count_skipped(link if at == _UNSUPPORTED else None)
        elif (segment := slow.read(time_ns, data, at, start + captured, start + wire)) is not None:
            yield segment


_NOT_IP = -1
_UNSUPPORTED = -2


def _network_start(link: int, data: bytes, start: int, end: int) -> int:
    """Where the IP header begins; negative if there is none, or nobody knows."""
    if link == _ETHERNET:
        kind_at = start + 12
    elif link in _RAW_IPS:
        return start if end > start else _NOT_IP
    elif link == _LINUX_COOKED:
        kind_at = start + 14
    elif link == _LINUX_COOKED_2:
        return _typed(data, start, start + 20, end)
    elif link in _LOOPBACKS:
        at = start + 4
        return at if end > at and data[at] >> 4 in (4, 6) else _NOT_IP
    else:
        return _UNSUPPORTED
    return _typed(data, kind_at, kind_at + 2, end)


def _typed(data: bytes, kind_at: int, at: int, end: int) -> int:
    """Step over VLAN tags between a protocol number and what it stands for."""
    if at > end:
        return _NOT_IP
    (kind,) = _U16(data, kind_at)
    while kind in _VLAN_TAGS and at + 4 <= end:
        (kind,) = _U16(data, at + 2)
        at += 4
    return at if kind in (_IPV4, _IPV6) and at < end else _NOT_IP
