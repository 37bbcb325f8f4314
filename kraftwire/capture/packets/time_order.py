"""Puts the packets of a capture in the order of time, if they come in another one.

Two directions that were recorded apart, by queues of a network card or into two files, may be
merged so that one is behind the other. Owns the window in which packets are sorted. A capture in
order, as nearly all are, is passed on as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from kraftwire.capture.framing.health import Health
from kraftwire.capture.packets.links import FIN, RST, SYN, SegmentReader
from kraftwire.capture.packets.packet import PAUSE, Packet, new_packet
from kraftwire.capture.packets.pcap import read_packets
from kraftwire.capture.packets.source import CaptureSource
from kraftwire.errors import StorageError
from kraftwire.limits import PIECE_OBJECT_BYTES

# Packets are sorted within this many bytes of the capture, and the start of a file is looked at
# before it is decoded, as far as that many. Each packet that is held takes memory besides.
WINDOW_BYTES = 4 * 1024 * 1024
WINDOW_PACKETS = 4_096
AHEAD_BYTES = 1024 * 1024

# Captures confuse the order of packets by less than this, which all that follows is used to: see
# `kraftwire/engine/in_order.c`. Units: nanoseconds.
DISORDER_NS = 1_000_000

_DIRECTIONS_MAX = 4_096
_MASK = 0xFFFFFFFF
_HALF = 0x80000000


class TimeOrder:
    """The packets of one file in the order of time.

    `latest_ns` is the latest time so far. Packets are sorted from the first one on that is older
    than those before it, or from the start if `is_sorting`, until they come in order again. Those
    that come too late for the window are counted as late, and passed on as they come. Where one
    direction of a connection goes on at an earlier time, or is opened again after its end, the
    clock was set back.
    """

    def __init__(self, source: CaptureSource, health: Health, *, is_sorting: bool) -> None:
        self.latest_ns = -1
        self._source = source
        self._health = health
        self._follow = source.follow
        self._is_sorting = False
        # Time and position, which is different for each packet.
        self._held: list[tuple[int, int, Packet]] = []
        self._held_bytes = 0
        # How many bytes came since a packet that is older than those before it, and how many that
        # were too late.
        self._quiet_bytes = self._late_bytes = 0
        self._passed_ns = -1
        # Directions -> time of the last packet, the sequence number after it, and which flags of
        # the connection came; how far the clock was set back.
        self._read = SegmentReader(Health()).read
        self._last: dict[bytes, tuple[int, int, int]] = {}
        self._set_back_ns = 0
        if is_sorting:
            self._begin()

    def packets(self) -> Iterator[Packet]:
        """Yield all packets, and the pauses between those that are read."""
        for packet in read_packets(self._source, self._health):
            time_ns = packet[0]
            if packet is PAUSE:
                if not self._source.is_finite:
                    yield from self._release(0)
                yield packet
            elif self._is_sorting or self.is_early(time_ns):
                yield from self._sort(packet)
            else:
                self.latest_ns = max(self.latest_ns, time_ns)
                yield packet
        yield from self._release(0)

    def is_early(self, time_ns: int) -> bool:
        """Whether a packet is older than those before it."""
        return time_ns < self.latest_ns - DISORDER_NS

    @property
    def held_bytes(self) -> int:
        """Roughly the memory of the packets that are held, and of what is known of directions."""
        return self._held_bytes + (len(self._held) + len(self._last)) * PIECE_OBJECT_BYTES

    def _begin(self) -> None:
        """Sort from here on, which the engine does not."""
        self._is_sorting = True
        self._source.follow = None
        self._quiet_bytes = self._late_bytes = 0

    def _end(self) -> None:
        self._is_sorting = False
        self._source.follow = self._follow
        self._last.clear()
        self._set_back_ns = 0

    def _time(self, packet: Packet) -> int:
        """Return the time of a packet as if the clock had never been set back."""
        time_ns = packet[0] + self._set_back_ns
        segment = self._read(packet)
        if segment is None:
            return time_ns
        size = segment.end - segment.start + segment.missing
        last_ns, last_end, seen = self._last.get(segment.key, (-1, 0, 0))
        flags = segment.flags & (SYN | FIN | RST)
        is_new = bool(flags & seen & SYN and seen & (FIN | RST))
        # Without bytes of its own, a packet at the end of the last one may come before that.
        ahead = (segment.seq - last_end) & _MASK
        goes_on = ahead < _HALF and bool(ahead or size)
        if time_ns < last_ns - DISORDER_NS and (is_new or goes_on):
            # Of the connection before, the other direction may have ended later.
            last_ns = self.latest_ns if is_new else last_ns
            self._set_back_ns += last_ns - time_ns
            time_ns = last_ns
        if len(self._last) >= _DIRECTIONS_MAX:
            self._last.clear()
        seen = flags if is_new else flags | seen
        self._last[segment.key] = time_ns, (segment.seq + size) & _MASK, seen
        return time_ns

    def _sort(self, packet: Packet) -> Iterator[Packet]:
        """Hold a packet; yield those before which none is expected any more."""
        size = packet.stop - packet.begin
        if not self._is_sorting:
            self._begin()
            self._passed_ns = self.latest_ns
        time_ns = self._time(packet)
        self._quiet_bytes += size
        if self.is_early(time_ns):
            self._quiet_bytes = 0
            self._count(time_ns, size)
        self.latest_ns = max(self.latest_ns, time_ns)
        held = _alone(packet)
        heappush(self._held, (time_ns, held.base, held))
        self._held_bytes += size
        yield from self._release(WINDOW_BYTES, WINDOW_PACKETS)
        # Where too many come late another time begins, which is not mixed with the one before.
        if self._late_bytes > WINDOW_BYTES or self._quiet_bytes > 2 * WINDOW_BYTES:
            yield from self._release(0)
            self.latest_ns = packet[0]
            self._end()

    def _count(self, time_ns: int, size: int) -> None:
        """Count a packet that is put in order, or comes too late for that."""
        health = self._health
        if time_ns >= self._passed_ns - DISORDER_NS:
            health.sorted_packets += 1
            return
        health.late_packets += 1
        health.late_ns = max(health.late_ns, self.latest_ns - time_ns)
        self._late_bytes += size

    def _release(self, bytes_max: int, packets_max: int = 0) -> Iterator[Packet]:
        """Yield the oldest packets, until those that are held are few and small enough."""
        while self._held and (self._held_bytes > bytes_max or len(self._held) > packets_max):
            time_ns, _, packet = heappop(self._held)
            self._held_bytes -= packet.stop
            self._passed_ns = max(self._passed_ns, time_ns)
            yield packet


def _alone(packet: Packet) -> Packet:
    """Return a packet in a buffer of its own: it may be held long after the others around it."""
    time_ns, link, data, start, captured, wire, base, begin, stop = packet
    record = data[begin:stop]
    values = time_ns, link, record, start - begin, captured, wire, base + begin, 0, stop - begin
    return new_packet(values)


def begins_in_order(path: str) -> bool:
    """Whether the packets at the start of a file come in the order of time."""
    latest_ns = -1
    try:
        with CaptureSource(path) as source:
            for packet in read_packets(source, Health()):
                if packet[0] < latest_ns - DISORDER_NS:
                    return False
                latest_ns = max(latest_ns, packet[0])
                if packet[6] + packet[8] > AHEAD_BYTES:
                    break
    except StorageError:
        pass
    return True
