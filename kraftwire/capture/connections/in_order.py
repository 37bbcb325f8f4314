"""Fast path for in-order TCP segments of known connections.

All other packets are left to the loop in `capture.py`. Blocks of the classic little-endian format
are read as a whole.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Mapping

from kraftwire.capture.framing.frames import Frame
from kraftwire.capture.packets.links import (
    FAST,
    FAST_MASK,
    FAST_MIX,
    FAST_STARTS,
)
from kraftwire.capture.packets.packet import Packet, PacketValues, Stamp
from kraftwire.capture.tcp.streams import Flow

__all__ = ["LONG_BYTES", "TOGETHER", "InOrderPackets"]

_RECORD = struct.Struct("<IIII").unpack_from
_RECORD_SIZE = 16
_SECOND_NS = 1_000_000_000
_MASK = 0xFFFFFFFF

# How many frames are returned together; a frame of this many bytes is returned without delay.
TOGETHER = 64
LONG_BYTES = 64 * 1024


class InOrderPackets:
    """Reads the in-order packets of one capture.

    `flows` are the directions by their keys, `packets` gets every packet, and `frames` is the
    list where complete frames arrive.
    """

    def __init__(
        self,
        flows: Mapping[bytes, Flow],
        packets: deque[PacketValues],
        frames: list[Frame],
    ) -> None:
        self.payload = 0
        self._flows = flows
        self._packets = packets
        self._frames = frames

    def follow(self, data: bytes, at: int, base: int, unit: int, link: int) -> tuple[int, int]:
        """Take packets from a position on; returns the position after them and their number."""
        unpack, size = FAST.unpack_from, FAST.size
        begin_of, flow_of = FAST_STARTS.get, self._flows.get
        remember, frames = self._packets.append, self._frames
        end = len(data)
        last = end - _RECORD_SIZE
        number = payload = 0
        is_full = False
        while at <= last:
            seconds, fraction, captured, wire = _RECORD(data, at)
            start = at + _RECORD_SIZE
            stop = start + captured
            if stop > end or captured < size:
                break
            total, rest, key, seq, header = unpack(data, start)
            flow = flow_of(key)
            if flow is None or rest & FAST_MASK != FAST_MIX or total > captured - 14:
                break
            begin = begin_of(header, 0)
            count = total + 14 - begin
            if not begin or count < 0:
                break
            time_ns = seconds * _SECOND_NS + fraction * unit
            if seq != flow.fast_seq:
                break
            remember((time_ns, link, data, start, captured, wire, base, at, stop))
            if count:
                # As `_go_on`, without a call for each packet.
                flow.fast_seq = (seq + count) & _MASK
                payload += count
                begin += start
                stamp = (time_ns, base + at, base + stop)
                if count < flow.need:
                    flow.parts.append(data[begin : begin + count])
                    flow.need -= count
                    flow.stamp = stamp
                else:
                    flow.feed(data, begin, begin + count, stamp)
                    is_full = bool(frames) and (
                        len(frames) >= TOGETHER or frames[-1].size >= LONG_BYTES
                    )
            at = stop
            number += 1
            if is_full:
                break
        self.payload += payload
        return at, number

    def take(self, packet: Packet) -> bool:
        """Take a remembered packet of any format; returns whether it was in order."""
        time_ns, _, data, start, captured, _, base, at, stop = packet
        if captured < FAST.size:
            return False
        total, rest, key, seq, header = FAST.unpack_from(data, start)
        flow = self._flows.get(key)
        begin = FAST_STARTS.get(header, 0)
        count = total + 14 - begin
        is_whole = begin > 0 <= count and total <= captured - 14
        if flow is None or not is_whole or rest & FAST_MASK != FAST_MIX or seq != flow.fast_seq:
            return False
        if count:
            begin += start
            self._go_on(flow, data, begin, begin + count, (time_ns, base + at, base + stop))
        return True

    def _go_on(self, flow: Flow, data: bytes, begin: int, end: int, stamp: Stamp) -> None:
        """Go on with a direction, by bytes that are its next ones."""
        count = end - begin
        flow.fast_seq = (flow.fast_seq + count) & _MASK
        self.payload += count
        if count < flow.need:
            flow.parts.append(data[begin:end])
            flow.need -= count
            flow.stamp = stamp
            return
        flow.feed(data, begin, end, stamp)
