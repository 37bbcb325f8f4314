"""Damages captures on purpose, and lists what an undamaged one holds.

The undamaged capture is the truth: what is found in a damaged one must be in it, and almost all of
it must be found.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from kraftwire.capture.framing.frames import RawFrame
from kraftwire.capture.framing.health import Health
from kraftwire.capture.packets.links import SegmentReader
from kraftwire.capture.packets.pcap import read_packets
from kraftwire.capture.packets.source import CaptureSource
from tests.support.captures.builder import Segment, ethernet, ip_packet, pcap

# Connection, direction, correlation id, size.
Identity = tuple[str, str, int, int]

_SEGMENT_SIZE = 1448
_SHORT_PACKET = 200


def segments_of(path: Path) -> list[Segment]:
    """The TCP segments of a capture of whole IPv4 packets."""
    health = Health()
    reader = SegmentReader(health)
    found = []
    with CaptureSource(str(path)) as source:
        for segment in filter(None, map(reader.read, read_packets(source, health))):
            (time_ns, *_), key, seq, ack, flags, data, start, end, _ = segment
            ends = (_end(key[:4], key[8:10]), _end(key[4:8], key[10:12]))
            found.append(Segment(time_ns, *ends, seq, ack, flags, data[start:end]))
    return found


def _end(address: bytes, port: bytes) -> tuple[str, int]:
    return ".".join(map(str, address)), int.from_bytes(port, "big")


def recut(segments: Iterable[Segment]) -> Iterator[Segment]:
    """The same bytes in packets of the usual size: loopback captures have much longer ones."""
    for segment in segments:
        size = len(segment.payload)
        for start in range(0, max(size, 1), _SEGMENT_SIZE):
            piece = segment.cut(start, start + _SEGMENT_SIZE)
            is_last = start + _SEGMENT_SIZE >= size
            # No acknowledgements: the harder case, since nothing proves that a hole is hopeless.
            yield replace(piece, ack=0, flags=piece.flags & (0xFF if is_last else ~1))


def damage(segments: Iterable[Segment], seed: int) -> bytes:
    """A capture with 0.5 % of packets twice, 1.5 % late, 0.05 % missing and 0.05 % cut short."""
    source = random.Random(seed)
    packets: list[tuple[int, bytes]] = []
    cut: list[int] = []
    late: list[tuple[int, bytes]] = []
    for segment in segments:
        packet = (segment.time_ns, ethernet(ip_packet(segment)))
        chance = source.random() if segment.payload else 1.0
        if chance < 0.005:
            packets += [packet, packet]
        elif chance < 0.02:
            late.append(packet)
            continue
        elif chance < 0.0205:
            continue
        else:
            if chance < 0.021:
                cut.append(len(packets))
            packets.append(packet)
        packets += late
        late.clear()
    return _with_cut_packets(packets, set(cut))


def _with_cut_packets(packets: list[tuple[int, bytes]], cut: set[int]) -> bytes:
    """A capture file in which some packets are shorter than they were on the wire."""
    out = bytearray(pcap([]))
    for index, packet in enumerate(packets):
        snap = _SHORT_PACKET if index in cut else 262144
        out += pcap([packet], snap=snap)[24:]
    return bytes(out)


@dataclass
class _Direction:
    next_seq: int
    client: str
    server: str
    is_client: bool
    data: bytearray
    starts: list[tuple[int, int]]


def plain_frames(segments: Iterable[Segment]) -> list[tuple[int, Identity]]:
    """Time of the first packet, and identity, of every frame of an undamaged capture.

    Order: of completion. Packets that do not continue their direction are retransmissions.
    """
    open_now: dict[tuple[tuple[str, int], tuple[str, int]], _Direction] = {}
    found: list[tuple[int, Identity]] = []
    for segment in segments:
        key = (segment.source, segment.target)
        if segment.flags & 2:
            is_client = not segment.flags & 16
            client, server = (
                f"{address}:{port}" for address, port in (key if is_client else key[::-1])
            )
            first = segment.seq + 1
            open_now[key] = _Direction(first, client, server, is_client, bytearray(), [])
        elif segment.payload and segment.seq == open_now[key].next_seq & 0xFFFFFFFF:
            found += _cut(open_now[key], segment)
    return found


def _cut(direction: _Direction, segment: Segment) -> Iterator[tuple[int, Identity]]:
    data = direction.data
    direction.next_seq += len(segment.payload)
    direction.starts.append((len(data), segment.time_ns))
    data += segment.payload
    while len(data) >= 4 and len(data) >= (end := 4 + int.from_bytes(data[:4], "big")):
        side = "request" if direction.is_client else "response"
        at = 8 if direction.is_client else 4
        correlation_id = int.from_bytes(data[at : at + 4], "big", signed=True)
        name = f"{direction.client}-{direction.server}"
        first = max(start for start in direction.starts if start[0] <= 0)
        yield first[1], (name, side, correlation_id, end - 4)
        del data[:end]
        starts = [(start - end, time_ns) for start, time_ns in direction.starts]
        latest = max((start for start in starts if start[0] <= 0), default=starts[0])
        direction.starts = [start for start in starts if start >= latest]


def frame_identity(frames: Iterable[RawFrame]) -> Counter[Identity]:
    """What was found, in the same form."""
    return Counter(
        (frame.connection, frame.direction, frame.correlation_id or 0, frame.size)
        for frame in frames
    )
