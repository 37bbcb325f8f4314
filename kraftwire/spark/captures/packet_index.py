"""The index of a capture: which packets belong to which connection, by their headers.

Nothing is reassembled here: the second pass reads the packets of a connection again, by their
positions.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable

import numpy as np

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
from kraftwire.spark.captures.file_index import (
    SHARED,
    FileIndex,
    IndexedConnection,
    PacketRuns,
)
from kraftwire.spark.captures.shared_names import NameGatherer, PacketDirection

# Runs that are collected before they are passed on.
_RUNS_MAX = 1_000_000

_FILE_HEADER_SIZE = 24
_ACK = 16


# Called with the next runs of a file.
KeepRuns = Callable[[PacketRuns], None]


class _RunCollector:
    """Joins adjacent bytes of a connection, and passes runs on in chunks."""

    def __init__(self, keep: KeepRuns, size_max: int) -> None:
        self._keep = keep
        self._size_max = size_max
        self._numbers, self._starts, self._sizes = array("I"), array("q"), array("I")

    def add(self, number: int, start: int, size: int) -> None:
        """Add the bytes that follow those before, as a run or to the last one."""
        sizes = self._sizes
        if (
            sizes
            and number == self._numbers[-1]
            and self._starts[-1] + sizes[-1] == start
            and sizes[-1] < self._size_max
        ):
            sizes[-1] += size
        else:
            self.extend([number], [start], [size])

    def extend(self, numbers: list[int], starts: list[int], sizes: list[int]) -> None:
        """Add runs that are not adjacent to each other."""
        if len(self._numbers) >= _RUNS_MAX:
            self.hand_over()
        self._numbers.extend(numbers)
        self._starts.extend(starts)
        self._sizes.extend(sizes)

    def hand_over(self) -> None:
        """Pass on what was collected."""
        self._keep(
            PacketRuns(
                np.frombuffer(self._numbers, np.uint32),
                np.frombuffer(self._starts, np.int64),
                np.frombuffer(self._sizes, np.uint32),
            )
        )
        self._numbers, self._starts, self._sizes = array("I"), array("q"), array("I")


class PacketIndexer:
    """One pass over the headers of a file, packet by packet."""

    # A run is read at once, and a long connection can be cut only between two runs.
    run_bytes_max = 256 * 1024

    def __init__(self, path: str, keep: KeepRuns) -> None:
        self._index = FileIndex(path)
        self._runs = _RunCollector(keep, self.run_bytes_max)
        self._directions: dict[bytes, PacketDirection] = {}
        # Directions of other connections between the same ends: copies, or not.
        self._others: dict[tuple[bytes, bool], PacketDirection] = {}
        self._translations = Translations()
        # The first direction of each connection.
        self._firsts: list[PacketDirection] = []
        self._gatherer = NameGatherer()
        self._health = Health()
        self._last_ns = -1

    def index(self) -> FileIndex:
        """Index the file and return its index."""
        index = self._index
        with CaptureSource(index.path) as source:
            head = source.read_exactly(_FILE_HEADER_SIZE)
        if not head.startswith(SECTION_MAGIC):
            index.head = head
        with CaptureSource(index.path) as source:
            self._read_packets(source)
            source.read_on()
        with open(index.path, "rb") as file:
            index.is_packed = file.read(PACKED_MAGIC_SIZE).startswith(PACKED)
        index.size = source.size
        if index.end < index.size and not source.problem:
            self._runs.add(SHARED, index.end, index.size - index.end)
            index.end = index.size
        self._runs.hand_over()
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

    def _read_packets(self, source: CaptureSource) -> None:
        read_segment = SegmentReader(self._health).read
        read_packet, note = self._gatherer.read_packet, self._index.recorded.note
        source.follow = None if engine.core is None else self._index_by_engine
        for packet in read_packets(source, self._health):
            if packet is PAUSE:
                continue
            time_ns, _, _, _, _, _, base, at, stop = packet
            self._add_shared_before(base + at, base + stop)
            self._add_times(time_ns, time_ns)
            note(time_ns)
            segment = read_segment(packet)
            if segment is not None:
                _, _, seq, _, _, data, start, end, _ = segment
                direction = self._direction(segment, base + at, time_ns)
                self._add_packet(direction, time_ns, base + at, stop - at)
                if start < end:
                    direction.payload += end - start
                    read_packet(direction, seq, data, start, end)

    def _index_by_engine(
        self, data: bytes, at: int, base: int, *record: int
    ) -> tuple[int, int, int]:
        """Index packets by the engine: see `kraftwire.capture.packets.packet.Follow`."""
        after, taken, first_ns, time_ns, (numbers, starts, sizes) = engine.core.index_packets(
            data, at, base, *record,
            self._directions, PacketDirection, self._gatherer.informative, self.run_bytes_max,
        )  # fmt: skip
        if taken:
            self._add_shared_before(base + at, base + after)
            self._add_times(first_ns, time_ns)
            self._index.recorded.note_run(first_ns, time_ns)
            self._runs.add(numbers[0], starts[0], sizes[0])
            self._runs.extend(numbers[1:], starts[1:], sizes[1:])
        return after, taken, time_ns

    def _add_times(self, first_ns: int, last_ns: int) -> None:
        """Add the times of the next packets, which nearly always come in order."""
        index = self._index
        behind_ns = self._last_ns - first_ns
        if behind_ns > DISORDER_NS:
            index.disorder_ns = max(index.disorder_ns, behind_ns)
        self._last_ns = last_ns
        index.end_ns = max(index.end_ns or 0, last_ns)

    def _add_shared_before(self, start: int, end: int) -> None:
        """Add the bytes before the next packet, which all connections need."""
        index = self._index
        if start != index.end:
            self._runs.add(SHARED, index.end, start - index.end)
        index.end = end

    def _direction(self, segment: Segment, position: int, time_ns: int) -> PacketDirection:
        """Return the direction of a segment, which may be new."""
        _, key, _, _, flags, *_ = segment
        direction = self._directions.get(key)
        if flags & SYN:
            is_copy = self._translations.is_copy(segment)
            if direction is not None and self._is_copy(direction) != is_copy:
                self._others[key, not is_copy] = direction
                direction = self._switch_connection(key, is_copy=is_copy)
            if direction is None:
                direction = self._begin_connection(key, position, time_ns, is_copy=is_copy)
        elif direction is None:
            direction = self._begin_connection(key, position, time_ns)
        if flags & SYN:
            self._add_syn(direction, time_ns, is_client=not flags & _ACK)
        return direction

    def _is_copy(self, direction: PacketDirection) -> bool:
        return self._index.connections[direction.number - 1].is_copy

    def _switch_connection(self, key: bytes, *, is_copy: bool) -> PacketDirection | None:
        """Switch to the connection between the same ends that is a copy, or is not; None if new."""
        other = reverse_key(key)
        if (found := self._others.get((other, is_copy))) is not None:
            self._others[key, is_copy] = found.other
        if (found := self._others.get((key, is_copy))) is not None:
            self._directions[key], self._directions[other] = found, found.other
        return found

    def _add_packet(
        self, direction: PacketDirection, time_ns: int, position: int, size: int
    ) -> None:
        direction.packets += 1
        direction.size += size
        direction.last_ns = time_ns
        self._runs.add(direction.number, position, size)

    def _begin_connection(
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

    def _add_syn(self, direction: PacketDirection, time_ns: int, *, is_client: bool) -> None:
        """Handle a SYN; the first one in each direction counts."""
        if direction.syn_ns < 0:
            direction.syn_ns = time_ns
            indexed = self._index.connections[direction.number - 1]
            if indexed.is_first_client is None:
                is_first = direction is self._firsts[direction.number - 1]
                indexed.is_first_client = is_client == is_first


def index_capture(path: str | os.PathLike[str], keep: KeepRuns | None = None) -> FileIndex:
    """Index the packets of a capture.

    With `keep`, runs are passed to it in chunks, and the index has none. Raises: StorageError if
    the file cannot be opened or is not a capture.
    """
    chunks: list[PacketRuns] = []
    index = PacketIndexer(os.fspath(path), keep or chunks.append).index()
    index.runs = chunks
    return index
