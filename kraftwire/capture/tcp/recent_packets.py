"""The last packets of a capture: whether bytes that come again are the same ones.

A sender that sends two versions of the same bytes shows one to the decoder and the other to
the receiver. No capture shows which of them the receiver took, only that there were two.
"""

from __future__ import annotations

from collections import deque
from itertools import islice

from kraftwire.capture.framing.health import Health
from kraftwire.capture.packets.links import SYN, Segment, SegmentReader
from kraftwire.capture.packets.packet import PacketValues, new_packet

__all__ = ["RecentPackets"]

# How far back packets are usually sent again; with 64 KiB each they are 4 MiB. All of them are
# looked at for each packet that comes again.
_PACKETS_KEPT = 64
# Link, IP and TCP headers with all their options hold the ports this far from the start at most.
_HEADERS_MAX = 256

# A keep-alive packet has a byte without meaning, at a place that was read before.
_PROBE = b"\0"

_MASK = 0xFFFFFFFF
_HALF = 0x80000000


class RecentPackets:
    """Keeps the packets that the loop over a capture puts into `packets`."""

    def __init__(self) -> None:
        self.packets: deque[PacketValues] = deque(maxlen=_PACKETS_KEPT)

    def conflict(self, segment: Segment) -> int:
        """Return how many bytes of a segment came before and differ; 0 if none do.

        The number is that of the longest such piece, with equal bytes inside it; bytes from before
        the kept packets are not compared. Order: while the segment's own packet is the last one. A
        copy with all of the segment ends the search: what differs from it was reported then.
        """
        _, key, seq, _, _, data, start, end, _ = segment
        # Their bytes were counted when the packets came.
        read = SegmentReader(Health()).read
        found, said, ports = 0, data[start:end], key[-4:]
        for packet in map(new_packet, islice(reversed(self.packets), 1, None)):
            held, at = packet.data, packet.start
            # It may find the ports after the packet's end: they are looked at again below.
            if held.find(ports, at, at + _HEADERS_MAX) < 0:
                continue
            other = read(packet)
            if other is None or other.key != key:
                continue
            if other.flags & SYN:
                break  # what came before belongs to another connection
            piece = other.data[other.start : other.end]
            if piece == _PROBE:
                continue
            into = (seq - other.seq) & _MASK
            if piece[into : into + len(said)] == said:
                break
            size = _overlap(seq, said, other.seq, piece)
            found = max(found, size)
        return found


def _overlap(seq: int, data: bytes, other_seq: int, other: bytes) -> int:
    """Return the size of what two pieces of a stream share, if it differs."""
    ahead = (other_seq - seq) & _MASK
    if ahead >= _HALF:
        return _overlap(other_seq, other, seq, data)
    shared = data[ahead : ahead + len(other)]
    return len(shared) if shared != other[: len(shared)] else 0
