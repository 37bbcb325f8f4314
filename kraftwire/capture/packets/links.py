"""Reads the TCP segments of packets of any link type.

Owns link layers and VLAN tags, and the layout that `connections.in_order` reads at once: TCP in
plain IPv4 over Ethernet. `ip` reads all other packets above the link.
"""

from __future__ import annotations

import struct

from kraftwire.capture.framing.health import Health
from kraftwire.capture.packets.ip import MISSING, IpReader, Segment
from kraftwire.capture.packets.packet import Packet

__all__ = [
    "FAST",
    "FAST_MASK",
    "FAST_MIX",
    "FAST_STARTS",
    "FIN",
    "MISSING",
    "RST",
    "SYN",
    "Segment",
    "SegmentReader",
]

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

# Of IPv4 in Ethernet (14 and 20 bytes long) the total length; fragment, time to live and protocol,
# which under the mask are FAST_MIX for a whole packet of TCP; addresses and ports, which are the
# key of a flow; sequence number; TCP's header length (in words, the upper four bits) and flags.
FAST = struct.Struct(">16xHxxIxx12sI4xH")
FAST_MASK = 0x3FFF00FF
FAST_MIX = 6
# TCP's header length and flags, unless SYN, FIN or RST is among them -> where the payload begins.
FAST_STARTS = {
    words << 12 | flags: 14 + 20 + 4 * words
    for words in range(5, 16)
    for flags in range(0, 1 << 12, 2 * RST)  # FIN, SYN and RST are the lowest bits
}

_NOT_IP = -1
_UNSUPPORTED = -2
_U16 = struct.Struct(">H").unpack_from


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
