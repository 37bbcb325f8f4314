"""The files of a recording as one, and the packets of its connections.

The files of a rotated recording count as one: a position in it is that in a file plus the sizes of
all files before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from kraftwire.spark.captures.connection_bytes import (
    ConnectionBytes,
    PacketPiece,
    join_ranges,
    read_groups,
)
from kraftwire.spark.captures.file_index import (
    SHARED,
    FileIndex,
    Flags,
    IndexedConnection,
    Ints,
    PacketRuns,
)
from kraftwire.spark.captures.shared_names import SharedNames

# First position and the one after the last, in the recording.
Span = tuple[int, int]


@dataclass(slots=True)
class Recording:
    """Files that are one recording, with the index of each, in the order of time.

    `connections` are those of all files, `offsets` where each file begins; `shared_names` are what
    connections learn from each other. `numbers` are the numbers in the recording of each file's
    connections, by those in the file; `shares` are the files of each connection, with how many
    bytes of payload it has in them.
    """

    files: Sequence[FileIndex]
    connections: list[IndexedConnection] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    shared_names: SharedNames = field(default_factory=SharedNames)
    numbers: list[Ints] = field(default_factory=list)
    shares: list[list[tuple[FileIndex, int]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make the connections of all files one list."""
        known: dict[tuple[bytes, bool], int] = {}
        at = 0
        for file in self.files:
            self.offsets.append(at)
            self.shared_names.merge(file.shared_names)
            numbers = [self._number(known, indexed, at) for indexed in file.connections]
            self.numbers.append(np.array([SHARED, *numbers], np.int64))
            for number, indexed in zip(numbers, file.connections, strict=True):
                self.shares[number - 1].append((file, sum(indexed.payload)))
            at += file.size

    def _number(
        self, known: dict[tuple[bytes, bool], int], indexed: IndexedConnection, at: int
    ) -> int:
        """Return the number of a file's connection in the recording."""
        size = (len(indexed.key) - 4) // 2
        first = indexed.key[:size] + indexed.key[-4:-2]
        ends = sorted((first, indexed.key[size : 2 * size] + indexed.key[-2:]))
        both = b"".join(ends)
        if indexed.is_first_client is None and (both, False) not in known:
            # It began in an earlier file: as a copy, if at all.
            indexed.is_copy = (both, True) in known
        number = known.setdefault((both, indexed.is_copy), len(self.connections) + 1)
        if number > len(self.connections):
            self.connections.append(replace(indexed, position=at + indexed.position))
            self.shares.append([])
        else:
            _join(self.connections[number - 1], indexed)
        return number

    def file_at(self, position: int) -> tuple[FileIndex, int]:
        """Return the file of a position in the recording, and the position in it."""
        at = bisect_right(self.offsets, position) - 1
        return self.files[at], position - self.offsets[at]

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(file.size for file in self.files)

    @property
    def end_ns(self) -> int | None:
        """The time of the last packet, of any connection."""
        times = [file.end_ns for file in self.files if file.end_ns is not None]
        return times[-1] if times else None

    @property
    def is_disordered(self) -> bool:
        """Whether the packets of some file are not in the order of time."""
        return any(file.disorder_ns for file in self.files)

    @property
    def has_fragments(self) -> bool:
        """Whether packets of some file cannot be assigned to connections."""
        return any(file.has_fragments for file in self.files)

    def limited_to(self, wanted: Collection[int], span: Span | None = None) -> Recording:
        """Return a recording whose files have only the runs of some connections (and of a span)
        and of what applies to all packets.
        """
        limited = copy(self)
        limited.files = [
            replace(file, runs=[self._runs(at, wanted, span)]) for at, file in enumerate(self.files)
        ]
        return limited

    def read(self, wanted: Collection[int]) -> dict[int, ConnectionBytes]:
        """Return the packets of connections, by their numbers, after what applies to all packets.
        """
        found = {number: ConnectionBytes() for number in wanted}
        for offset, group, data in self._groups(wanted, None):
            places, sizes = group.places, group.sizes.astype(np.int64)
            for number, mine in group.by_number():
                packets = join_ranges(data, places[mine], sizes[mine])
                for each in found.values() if number == SHARED else (found[number],):
                    each.add(packets, group.starts[mine] + offset, sizes[mine])
        return found

    def stream(self, number: int, span: Span | None = None) -> Iterator[PacketPiece]:
        """Yield the packets of a connection that is too long for memory, run by run; with a span
        those in it, after what applies to all packets.
        """
        for offset, group, data in self._groups({number}, span):
            columns = group.places, group.starts, group.sizes
            for place, start, size in zip(*(each.tolist() for each in columns), strict=True):
                yield offset + start, data[place : place + size]

    def _groups(
        self, wanted: Collection[int], span: Span | None
    ) -> Iterator[tuple[int, PacketRuns, bytes]]:
        """Yield where a file begins, some of its runs with this recording's numbers of connections,
        and their bytes.
        """
        for at, (file, offset) in enumerate(zip(self.files, self.offsets, strict=True)):
            runs = self._runs(at, wanted, span)
            if at and file.head:
                # The header of a pcap file is the same in all files of a recording.
                runs = runs.at(runs.numbers != SHARED)
            for group, data in read_groups(file.path, runs):
                yield offset, replace(group, numbers=self.numbers[at][group.numbers]), data

    def spans(self, number: int, size_max: int) -> list[Span]:
        """Return spans that cut a connection into about equal parts between packets.

        Each has at most `size_max` bytes of the connection, plus at most one run. Together they
        cover the recording.
        """
        starts, sizes = self._own_runs(number)
        share = int(sizes.sum()) / max(1, -(-int(sizes.sum()) // size_max))
        seen = np.cumsum(sizes) - sizes
        borders = [0]
        at = 0
        while len(starts):
            at = max(at + 1, int(np.searchsorted(seen, share * len(borders))))
            if at >= len(starts):
                break
            borders.append(int(starts[at]))
        return list(pairwise([*borders, self.size]))

    def _own_runs(self, number: int) -> tuple[Ints, Ints]:
        """Return where the runs of a connection begin, and their sizes."""
        found = []
        for at, offset in enumerate(self.offsets):
            runs = self._runs(at, {number}, None)
            runs = runs.at(runs.numbers != SHARED)
            found.append((runs.starts + offset, runs.sizes.astype(np.int64)))
        starts, sizes = (np.concatenate(each) for each in zip(*found, strict=True))
        return starts, sizes

    def _runs(self, at: int, wanted: Collection[int], span: Span | None) -> PacketRuns:
        """Return the runs of a file: those of connections that begin in a span, and those before
        its end that all connections need.
        """
        begin, end = (0, self.size) if span is None else span
        offset = self.offsets[at]
        within = range(max(0, begin - offset), max(0, end - offset))
        is_wanted: Flags = np.isin(self.numbers[at], list(wanted))
        return PacketRuns.joined(
            chunk.of_connections(is_wanted, within) for chunk in self.files[at].runs
        )


def _join(indexed: IndexedConnection, later: IndexedConnection) -> None:
    """Add the same connection's packets in a later file."""
    first, second = later.payload if later.key == indexed.key else later.payload[::-1]
    indexed.payload = indexed.payload[0] + first, indexed.payload[1] + second
    indexed.packets += later.packets
    indexed.size += later.size
    indexed.last_ns = max(indexed.last_ns, later.last_ns)
    if indexed.round_trip_ns is None:
        indexed.round_trip_ns = later.round_trip_ns
