"""The index of a capture: which packets belong to which connection, by their headers.

Nothing is reassembled here: the second pass reads the packets of a connection again, by their
positions.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable

from kraftwire import engine
from kraftwire.capture.connections.connection import reverse_key
from kraftwire.capture.connections.translations import Translations
from kraftwire.capture.framing.health import Health
from kraftwire.capture.packets.links import SYN, Segment, SegmentReader
from kraftwire.capture.packets.packet import PAUSE
from kraftwire.capture.packets.pcap import read_packets
from kraftwire.capture.packets.pcapng import SECTION_MAGIC
from kraftwire.capture.packets.source import CaptureSource
from kraftwire.capture.packets.time_order import DISORDER_NS
from kraftwire.capture.packets.unpacking import PACKED, PACKED_MAGIC_SIZE
from kraftwire.spark.captures.connection_index import SHARED, FileIndex, IndexedConnection, Runs
from kraftwire.spark.captures.shared_names import Gatherer, PacketDirection

__all__ = [
    "SHARED",
    "FileIndex",
    "IndexedConnection",
    "PacketIndexer",
    "Runs",
    "index_capture",
]

# Runs that are held before they are passed on: 16 bytes each.
_RUNS_MAX = 1_000_000

_FILE_HEADER_SIZE = 24
_ACK = 16


class PacketIndexer:
    """One pass over the headers of a file, packet by packet."""

    # A run is read at once, and a long connection can be cut only between two runs.
    run_bytes_max = 256 * 1024

    def __init__(self, path: str, keep: Callable[[Runs], None] | None) -> None:
        self._index = FileIndex(path)
        self._keep = keep
        self._directions: dict[bytes, PacketDirection] = {}
        # Those of other connections between the same ends: copies, or not.
        self._others: dict[tuple[bytes, bool], PacketDirection] = {}
        self._translations = Translations()
        # The first direction of each connection.
        self._firsts: list[PacketDirection] = []
        self._gatherer = Gatherer()
        self._health = Health()
        self._last_ns = -1
        self._run = -1  # the number of the run that the next packet may extend

    def index(self) -> FileIndex:
        """Index the file and return its index."""
        index = self._index
        with CaptureSource(index.path) as source:
            head = source.read_exactly(_FILE_HEADER_SIZE)
        if not head.startswith(SECTION_MAGIC):
            index.head = head
        with CaptureSource(index.path) as source:
            self._walk(source)
            source.read_on()
        with open(index.path, "rb") as file:
            index.is_packed = file.read(PACKED_MAGIC_SIZE).startswith(PACKED)
        index.size = source.size
        if index.end < index.size and not source.problem:
            self._note(SHARED, index.end, index.size - index.end)
            index.end = index.size
        if self._keep is not None:
            self._hand_over(self._keep)
        index.problem, index.is_damaged = source.problem, source.is_damaged
        index.packets = self._health.packets
        index.unopened = tuple(self._health.unopened_texts())
        index.has_fragments = self._health.fragments > 0
        index.shared_names = self._gatherer.names
        for indexed, first in zip(index.connections, self._firsts, strict=True):
            second = first.other
            indexed.packets = first.packets + second.packets
            indexed.payload = first.payload, second.payload
            indexed.last_ns = max(first.last_ns, second.last_ns)
            indexed.size = first.size + second.size
            index.payload += sum(indexed.payload)
            if first.syn_ns >= 0 and second.syn_ns >= 0:
                indexed.round_trip_ns = abs(second.syn_ns - first.syn_ns)
        return index

    def _walk(self, source: CaptureSource) -> None:
        read_segment = SegmentReader(self._health).read
        look, note = self._gatherer.look, self._index.recorded.note
        source.follow = None if engine.core is None else self._follow
        for packet in read_packets(source, self._health):
            if packet is PAUSE:
                continue
            time_ns, _, _, _, _, _, base, at, stop = packet
            self._reach(base + at, base + stop)
            self._end_at(time_ns, time_ns)
            note(time_ns)
            segment = read_segment(packet)
            if segment is not None:
                _, _, seq, _, _, data, start, end, _ = segment
                direction = self._direction(segment, base + at, time_ns)
                self._packet(direction, time_ns, base + at, stop - at)
                if start < end:
                    direction.payload += end - start
                    look(direction, seq, data, start, end)

    def _follow(self, data: bytes, at: int, base: int, *record: int) -> tuple[int, int, int]:
        """Take packets by the engine: see `kraftwire.capture.packets.packet.Follow`."""
        after, taken, first_ns, time_ns, (numbers, starts, sizes) = engine.core.index_packets(
            data, at, base, *record,
            self._directions, PacketDirection, self._gatherer.informative, self.run_bytes_max,
        )  # fmt: skip
        if taken:
            self._reach(base + at, base + after)
            self._end_at(first_ns, time_ns)
            self._index.recorded.note_run(first_ns, time_ns)
            self._note(numbers[0], starts[0], sizes[0])
            if len(numbers) > 1:
                self._begin_run(numbers[1], starts[1], sizes[1])
                index = self._index
                index.numbers.extend(numbers[2:])
                index.starts.extend(starts[2:])
                index.sizes.extend(sizes[2:])
                self._run = numbers[-1]
        return after, taken, time_ns

    def _end_at(self, first_ns: int, last_ns: int) -> None:
        """Go on to the times of some packets, which nearly always come in order."""
        index = self._index
        behind_ns = self._last_ns - first_ns
        if behind_ns > DISORDER_NS:
            index.disorder_ns = max(index.disorder_ns, behind_ns)
        self._last_ns = last_ns
        index.end_ns = max(index.end_ns or 0, last_ns)

    def _reach(self, start: int, end: int) -> None:
        """Go on to the next packet; what stands before it belongs to all connections."""
        index = self._index
        if start != index.end:
            self._note(SHARED, index.end, start - index.end)
        index.end = end

    def _direction(self, segment: Segment, position: int, time_ns: int) -> PacketDirection:
        """Return the direction of a segment, which may be new."""
        _, key, _, _, flags, *_ = segment
        direction = self._directions.get(key)
        if flags & SYN:
            is_copy = self._translations.is_copy(segment)
            if direction is not None and self._is_copy(direction) != is_copy:
                self._others[key, not is_copy] = direction
                direction = self._return(key, is_copy=is_copy)
            if direction is None:
                direction = self._meet(key, position, time_ns, is_copy=is_copy)
        elif direction is None:
            direction = self._meet(key, position, time_ns)
        if flags & SYN:
            self._open(direction, time_ns, is_client=not flags & _ACK)
        return direction

    def _is_copy(self, direction: PacketDirection) -> bool:
        return self._index.connections[direction.number - 1].is_copy

    def _return(self, key: bytes, *, is_copy: bool) -> PacketDirection | None:
        """Return to the connection between two ends that is a copy, or is none; None if new."""
        other = reverse_key(key)
        if (found := self._others.get((other, is_copy))) is not None:
            self._others[key, is_copy] = found.other
        if (found := self._others.get((key, is_copy))) is not None:
            self._directions[key], self._directions[other] = found, found.other
        return found

    def _packet(self, direction: PacketDirection, time_ns: int, position: int, size: int) -> None:
        direction.packets += 1
        direction.size += size
        direction.last_ns = time_ns
        self._note(direction.number, position, size)

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

    def _meet(
        self, key: bytes, position: int, time_ns: int, *, is_copy: bool = False
    ) -> PacketDirection:
        """Begin a connection."""
        indexed = IndexedConnection(key, position, first_ns=time_ns, is_copy=is_copy)
        self._index.connections.append(indexed)
        number = len(self._index.connections)
        first, second = PacketDirection(2 * number - 2), PacketDirection(2 * number - 1)
        first.other, second.other = second, first
        self._firsts.append(first)
        self._directions[key], self._directions[reverse_key(key)] = first, second
        return first

    def _open(self, direction: PacketDirection, time_ns: int, *, is_client: bool) -> None:
        """Handle a SYN; the first one in each direction counts."""
        if direction.syn_ns < 0:
            direction.syn_ns = time_ns
            indexed = self._index.connections[direction.number - 1]
            if indexed.is_first_client is None:
                is_first = direction is self._firsts[direction.number - 1]
                indexed.is_first_client = is_client == is_first


def index_capture(
    path: str | os.PathLike[str], keep: Callable[[Runs], None] | None = None
) -> FileIndex:
    """Index the packets of a capture.

    With `keep`, runs are passed to it in batches, and the index has none. Raises: StorageError if
    the file cannot be opened or is not a capture.
    """
    return PacketIndexer(os.fspath(path), keep).index()
