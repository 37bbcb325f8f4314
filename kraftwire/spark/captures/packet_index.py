"""The index of a capture, made packet by packet."""

from __future__ import annotations

from array import array
from collections.abc import Callable

from kraftwire.capture.connections.connection import reverse_key
from kraftwire.capture.framing.health import Health
from kraftwire.capture.packets.links import (
    FAST,
    FAST_MASK,
    FAST_MIX,
    FAST_STARTS,
    SYN,
    Segment,
    SegmentReader,
)
from kraftwire.capture.packets.pcap import read_packets
from kraftwire.capture.packets.pcapng import SECTION_MAGIC
from kraftwire.capture.packets.source import CaptureSource
from kraftwire.spark.captures.connection_index import SHARED, FileIndex, IndexedConnection, Runs
from kraftwire.spark.captures.shared_names import Gatherer, PacketDirection

__all__ = ["PACKED", "PacketIndexer"]

# gzip, xz and zstd.
PACKED = (b"\x1f\x8b", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd")
# Runs that are held before they are passed on: 16 bytes each.
_RUNS_MAX = 1_000_000

_PACKED_SIZE = 6
_FILE_HEADER_SIZE = 24
_ETHERNET = 1
_IPV4 = b"\x08\x00"
_ACK = 16


class PacketIndexer:
    """One pass over the headers of a file, packet by packet."""

    # A run is read at once, and a long connection can be cut only between two runs.
    run_bytes_max = 256 * 1024

    def __init__(self, path: str, keep: Callable[[Runs], None] | None) -> None:
        self._index = FileIndex(path)
        self._keep = keep
        self._ways: dict[bytes, PacketDirection] = {}
        self._pairs: list[tuple[PacketDirection, PacketDirection]] = []
        self._gatherer = Gatherer()
        self._health = Health()
        self._run = -1  # the number of the run that the next packet may extend

    def index(self) -> FileIndex:
        """PacketIndexer the file and return its index."""
        index = self._index
        with CaptureSource(index.path) as source:
            head = source.read_exactly(_FILE_HEADER_SIZE)
        if not head.startswith(SECTION_MAGIC):
            index.head = head
        with CaptureSource(index.path) as source:
            self._walk(source)
            source.read_on()
        with open(index.path, "rb") as file:
            index.is_packed = file.read(_PACKED_SIZE).startswith(PACKED)
        index.size = source.size
        if index.end < index.size and not source.problem:
            self._note(SHARED, index.end, index.size - index.end)
            index.end = index.size
        if self._keep is not None:
            self._hand_over(self._keep)
        index.problem, index.is_damaged = source.problem, source.is_damaged
        index.packets = self._health.packets
        index.has_fragments = self._health.fragments > 0
        index.shared_names = self._gatherer.names
        for indexed, (first, second) in zip(index.connections, self._pairs, strict=True):
            indexed.packets = first.packets + second.packets
            indexed.payload = first.payload, second.payload
            indexed.last_ns = max(first.last_ns, second.last_ns)
            indexed.size = first.size + second.size
            index.payload += sum(indexed.payload)
            if first.syn_ns >= 0 and second.syn_ns >= 0:
                indexed.round_trip_ns = abs(second.syn_ns - first.syn_ns)
        return index

    def _walk(self, source: CaptureSource) -> None:
        way_of = self._ways.get
        unpack, size = FAST.unpack_from, FAST.size
        mask, mix, begin_of = FAST_MASK, FAST_MIX, FAST_STARTS.get
        read_segment = SegmentReader(self._health).read
        telling = self._gatherer.telling
        end = 0
        for packet in read_packets(source, self._health):
            time_ns, link, data, start, captured, _, base, at, stop = packet
            if base + at != end:
                self._note(SHARED, end, base + at - end)
            end = base + stop
            if captured >= size and link == _ETHERNET and data[start + 12 : start + 14] == _IPV4:
                total, rest, key, seq, header = unpack(data, start)
                way = way_of(key)
                if (
                    way is not None
                    and rest & mask == mix
                    and total <= captured - 14
                    and (begin := begin_of(header))
                ):
                    begin += start
                    stop_payload = start + 14 + total
                    self._packet(way, time_ns, base + at, stop - at)
                    if begin < stop_payload:
                        way.payload += stop_payload - begin
                        if way.awaited or data[begin + 4 : begin + 8] in telling:
                            self._gatherer.look(way, seq, data, begin, stop_payload)
                    continue
            segment = read_segment(packet)
            if segment is not None:
                _, _, seq, _, _, data, start, stop_payload, _ = segment
                way = self._way(segment, base + at, time_ns)
                self._packet(way, time_ns, base + at, stop - at)
                if start < stop_payload:
                    way.payload += stop_payload - start
                    self._gatherer.look(way, seq, data, start, stop_payload)
        self._index.end = end

    def _way(self, segment: Segment, position: int, time_ns: int) -> PacketDirection:
        """Return the direction of a segment, which may be new."""
        _, key, _, _, flags, *_ = segment
        way = self._ways.get(key)
        if way is None:
            way = self._meet(key, position, time_ns)
        if flags & SYN:
            self._open(way, time_ns, is_client=not flags & _ACK)
        return way

    def _packet(self, way: PacketDirection, time_ns: int, position: int, size: int) -> None:
        way.packets += 1
        way.size += size
        way.last_ns = time_ns
        if way.number != self._run:
            self._begin_run(way.number, position, size)
        else:
            self._note(way.number, position, size)

    def _note(self, number: int, position: int, size: int) -> None:
        """Add a run of bytes, or extend the last one."""
        index = self._index
        if (
            number == self._run
            and index.starts[-1] + index.sizes[-1] == position
            and index.sizes[-1] < self.run_bytes_max
        ):
            index.sizes[-1] += size
        else:
            self._begin_run(number, position, size)

    def _begin_run(self, number: int, position: int, size: int) -> None:
        index = self._index
        if self._keep is not None and len(index.numbers) >= _RUNS_MAX:
            self._hand_over(self._keep)
        self._run = number
        index.numbers.append(number)
        index.starts.append(position)
        index.sizes.append(size)

    def _hand_over(self, keep: Callable[[Runs], None]) -> None:
        index = self._index
        keep((index.numbers, index.starts, index.sizes))
        index.numbers, index.starts, index.sizes = array("I"), array("Q"), array("I")

    def _meet(self, key: bytes, position: int, time_ns: int) -> PacketDirection:
        """Begin a connection."""
        self._index.connections.append(IndexedConnection(key, position, first_ns=time_ns))
        number = len(self._index.connections)
        first, second = PacketDirection(2 * number - 2), PacketDirection(2 * number - 1)
        first.other, second.other = second, first
        self._pairs.append((first, second))
        self._ways[key], self._ways[reverse_key(key)] = first, second
        return first

    def _open(self, way: PacketDirection, time_ns: int, *, is_client: bool) -> None:
        """Handle a SYN; the first one in each direction counts."""
        if way.syn_ns < 0:
            way.syn_ns = time_ns
            indexed = self._index.connections[way.number - 1]
            if indexed.is_first_client is None:
                indexed.is_first_client = is_client == (way is self._pairs[way.number - 1][0])
