"""The files of a recording as one, and the packets of its connections.

Owns bins (connections that are decoded together, about equal in size) and the choice of runs of an
index. The files of a rotated recording count as one: a position in it is that in a file plus the
sizes of all files before.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from kraftwire.spark.captures.byte_ranges import Flags, Ints
from kraftwire.spark.captures.connection_index import SHARED, FileIndex, IndexedConnection
from kraftwire.spark.captures.connections import Connection
from kraftwire.spark.captures.reading import (
    Chosen,
    Held,
    Piece,
    Places,
    hold_runs,
    read_runs,
)
from kraftwire.spark.captures.shared_names import SharedNames

__all__ = [
    "FileSums",
    "Held",
    "Piece",
    "Places",
    "Recording",
    "Span",
    "bins",
]

# First position and the one after the last, in the recording.
Span = tuple[int, int]


@dataclass(slots=True)
class FileSums:
    """Bytes of payload of one file, or of some connections in it, and what came more than once.

    `copied_packets` came before in other wrappings, `translated_connections` under another address.
    """

    kafka: int = 0
    tls: int = 0
    other: int = 0
    duplicates: int = 0
    undecoded: int = 0
    copied_packets: int = 0
    translated_connections: int = 0

    def add(self, more: FileSums) -> None:
        """Add those of other connections."""
        self.kafka += more.kafka
        self.tls += more.tls
        self.other += more.other
        self.duplicates += more.duplicates
        self.undecoded += more.undecoded
        self.copied_packets += more.copied_packets
        self.translated_connections += more.translated_connections


@dataclass(slots=True)
class Recording:
    """Files that are one recording, with the index of each, in the order of time.

    `connections` are those of all files, `offsets` where each file begins; `shared_names` are what
    connections learn from each other.
    """

    files: Sequence[FileIndex]
    connections: list[IndexedConnection] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    shared_names: SharedNames = field(default_factory=SharedNames)
    numbers: list[list[int]] = field(default_factory=list)
    shares: list[list[tuple[int, int]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make the connections of all files one list."""
        known: dict[tuple[bytes, bool], int] = {}
        at = 0
        for which, file in enumerate(self.files):
            self.offsets.append(at)
            self.shared_names.merge(file.shared_names)
            numbers = [self._number(known, indexed, at) for indexed in file.connections]
            self.numbers.append([SHARED, *numbers])
            for number, indexed in zip(numbers, file.connections, strict=True):
                self.shares[number - 1].append((which, sum(indexed.payload)))
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
            self.connections.append(_moved(indexed, at))
            self.shares.append([])
        else:
            _join(self.connections[number - 1], indexed)
        return number

    def share(self, number: int, about: Connection, sums: dict[str, FileSums]) -> None:
        """Add the bytes of a connection to the files that hold them.

        The order of bytes decides which of several files they are in: skipped bytes first, then
        copies, then the rest.
        """
        places = [
            ("undecoded", about.undecoded), ("duplicates", about.duplicates), ("tls", about.tls),
            ("other", about.other), ("kafka", about.kafka),
        ]  # fmt: skip
        first = self.files[self.shares[number - 1][0][0]].path
        sums.setdefault(first, FileSums()).copied_packets += about.copied_packets
        for which, payload in self.shares[number - 1]:
            left = payload if which != self.shares[number - 1][-1][0] else None
            into = sums.setdefault(self.files[which].path, FileSums())
            for at, (name, count) in enumerate(places):
                part = count if left is None else min(count, left)
                setattr(into, name, getattr(into, name) + part)
                places[at] = name, count - part
                left = None if left is None else left - part

    def share_copy(self, number: int, sums: dict[str, FileSums]) -> None:
        """Count the bytes of a connection that is a copy in the files that hold them."""
        for which, payload in self.shares[number - 1]:
            sums.setdefault(self.files[which].path, FileSums()).duplicates += payload
        first = self.files[self.shares[number - 1][0][0]].path
        sums[first].translated_connections += 1

    def place(self, position: int) -> tuple[FileIndex, int]:
        """Return the file of a position in the recording, and the position in it."""
        which = bisect_right(self.offsets, position) - 1
        return self.files[which], position - self.offsets[which]

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
    def is_packed(self) -> bool:
        """Whether some file has to be unpacked from its start."""
        return any(file.is_packed for file in self.files)

    def only(self, wanted: Collection[int], span: Span | None = None) -> tuple[FileIndex, ...]:
        """Return the indexes of the files, limited to the packets of some connections (and of a
        span) and to what applies to all packets.
        """
        made = []
        for which, file in enumerate(self.files):
            within = self.within(which, span)
            starts = np.frombuffer(file.starts, np.uint64)
            numbers = np.frombuffer(file.numbers, np.uint32)
            is_chosen = self.mask(which, wanted)[numbers]
            is_chosen &= (starts >= within.start) & (starts < within.stop)
            is_chosen |= numbers == SHARED
            part = replace(file, numbers=array("I"), starts=array("Q"), sizes=array("I"))
            part.numbers.frombytes(numbers[is_chosen].tobytes())
            part.starts.frombytes(starts[is_chosen].tobytes())
            part.sizes.frombytes(np.frombuffer(file.sizes, np.uint32)[is_chosen].tobytes())
            made.append(part)
        return tuple(made)

    def mask(self, which: int, wanted: Collection[int]) -> Flags:
        """Return which connections of a file's index are wanted; data that belongs to all always
        is.
        """
        found: Flags = np.isin(self.numbers[which], list(wanted))
        found[SHARED] = True
        return found

    def read(self, wanted: Collection[int], span: Span | None = None) -> dict[int, Held]:
        """Return the packets of connections, by their numbers; with a span those in it, after what
        applies to all packets.
        """
        held = {number: Held() for number in wanted}
        for which, (file, offset) in enumerate(zip(self.files, self.offsets, strict=True)):
            hold_runs(file.path, self._chosen(which, wanted, span), offset, held)
        return held

    def stream(self, number: int, span: Span | None = None) -> Iterator[Piece]:
        """Yield the packets of a connection that is too long for memory, run by run; as `read`.
        """
        for which, (file, offset) in enumerate(zip(self.files, self.offsets, strict=True)):
            for position, data in read_runs(file.path, self._chosen(which, {number}, span)):
                yield offset + position, data

    def spans(self, number: int, size_max: int, span: Span | None = None) -> list[Span]:
        """Return spans that cut a connection into about equal parts between packets.

        Each has at most `size_max` bytes of the connection, plus at most one run. Together they
        cover the span, or the recording.
        """
        first, end = (0, self.size) if span is None else span
        starts, seen, size = self._own_runs(number, (first, end))
        share = size / max(1, -(-size // size_max))
        borders = [first]
        at = 0
        while len(starts):
            at = max(at + 1, int(np.searchsorted(seen, share * len(borders))))
            if at >= len(starts):
                break
            borders.append(int(starts[at]))
        return list(pairwise([*borders, end]))

    def _own_runs(self, number: int, span: Span) -> tuple[Ints, Ints, int]:
        """Return where the runs of a connection begin, how much of it precedes each, and its size.
        """
        found = []
        for which, offset in enumerate(self.offsets):
            chosen = self._chosen(which, {number}, span)
            is_mine = chosen.numbers != SHARED
            found.append((chosen.starts[is_mine] + offset, chosen.sizes[is_mine]))
        starts, sizes = (np.concatenate(each) for each in zip(*found, strict=True))
        return starts, np.cumsum(sizes) - sizes, int(sizes.sum())

    def within(self, which: int, span: Span | None) -> range:
        """Return the positions in a file that are in a span."""
        begin, end = (0, self.size) if span is None else span
        return range(max(0, begin - self.offsets[which]), max(0, end - self.offsets[which]))

    def _chosen(self, which: int, wanted: Collection[int], span: Span | None) -> Chosen:
        """Return runs of a file with the numbers of this recording: those of connections that begin
        in a span, and those before its end that all connections need.
        """
        file = self.files[which]
        within = self.within(which, span)
        numbers = np.frombuffer(file.numbers, np.uint32)
        starts = np.frombuffer(file.starts, np.uint64).astype(np.int64)
        is_shared = numbers == SHARED
        is_chosen = self.mask(which, wanted)[numbers] & (starts < within.stop)
        is_chosen &= is_shared | (starts >= within.start)
        if which and file.head:
            # The header of a pcap file is the same in all files of a recording.
            is_chosen &= ~is_shared
        sizes = np.frombuffer(file.sizes, np.uint32)[is_chosen].astype(np.int64)
        ours = np.array(self.numbers[which], np.int64)[numbers[is_chosen]]
        return Chosen(ours, starts[is_chosen], sizes)


def _moved(indexed: IndexedConnection, at: int) -> IndexedConnection:
    return IndexedConnection(
        indexed.key, at + indexed.position, indexed.packets, indexed.size, indexed.payload,
        indexed.first_ns, indexed.last_ns, indexed.is_first_client, indexed.round_trip_ns,
        indexed.is_copy,
    )  # fmt: skip


def _join(indexed: IndexedConnection, later: IndexedConnection) -> None:
    """Add the same connection's packets in a later file."""
    first, second = later.payload if later.key == indexed.key else later.payload[::-1]
    indexed.payload = indexed.payload[0] + first, indexed.payload[1] + second
    indexed.packets += later.packets
    indexed.size += later.size
    indexed.last_ns = max(indexed.last_ns, later.last_ns)
    if indexed.round_trip_ns is None:
        indexed.round_trip_ns = later.round_trip_ns


# What a connection takes in memory while it is decoded, besides its packets.
_CONNECTION_BYTES = 4 * 1024


def _weight(indexed: IndexedConnection) -> int:
    return indexed.size + _CONNECTION_BYTES


def bins(connections: Sequence[IndexedConnection], size_max: int) -> list[list[int]]:
    """Return numbers of connections in bins of at most `size_max` bytes, unless one is longer.

    Each connection counts for some KiB besides its packets. The longest come first, each into the
    bin with the fewest bytes; the number of bins is that of full bins.
    """
    total = sum(map(_weight, connections))
    count = max(1, min(len(connections), -(-total // size_max)))
    chosen: list[list[int]] = [[] for _ in range(count)]
    loads = [0] * count
    order = sorted(range(len(connections)), key=lambda at: -connections[at].size)
    for at in order:
        which = loads.index(min(loads))
        loads[which] += _weight(connections[at])
        chosen[which].append(at + 1)
    return [sorted(each) for each in chosen if each]
