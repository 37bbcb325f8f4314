"""The packets of connections, read again by their positions.

Owns bins (connections that are decoded in one go, about equal in size) and the way from the runs of
an index to pieces of a file. The files of a rotated series count as one: a position in it is that
in a file plus the sizes of all files before.
"""

from __future__ import annotations

import io
from array import array
from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from kraftwire.decode.capture.source import CaptureSource
from kraftwire.spark.captures.connections import Connection
from kraftwire.spark.captures.index import PACKED, SHARED, FileIndex, Talk
from kraftwire.spark.captures.memory import Memory
from kraftwire.spark.captures.sums import FileSums

__all__ = ["Piece", "Places", "Series", "Span", "bins"]

Piece = tuple[int, bytes]
# First position and the one after the last, in the recording.
Span = tuple[int, int]

# Runs are read together up to so many bytes, if not more than a few lie unused between them.
_BLOCK_BYTES = 4 * 1024 * 1024
_GAP_BYTES = 8 * 1024


@dataclass(slots=True)
class Series:
    """Files that are one recording, with the index of each, in the order of time.

    Shape: `talks` are the connections of all files, `offsets` where each file begins; `memory` is
    what they learn from each other.
    """

    files: Sequence[FileIndex]
    talks: list[Talk] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    memory: Memory = field(default_factory=Memory)
    numbers: list[list[int]] = field(default_factory=list)
    shares: list[list[tuple[int, int]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make the connections of all files one list."""
        known: dict[bytes, int] = {}
        at = 0
        for which, file in enumerate(self.files):
            self.offsets.append(at)
            self.memory.merge(file.memory)
            numbers = [self._number(known, talk, at) for talk in file.talks]
            self.numbers.append([SHARED, *numbers])
            for number, talk in zip(numbers, file.talks, strict=True):
                self.shares[number - 1].append((which, sum(talk.payload)))
            at += file.size

    def _number(self, known: dict[bytes, int], talk: Talk, at: int) -> int:
        """The number of a file's connection in the series."""
        size = (len(talk.key) - 4) // 2
        first = talk.key[:size] + talk.key[-4:-2]
        ends = sorted((first, talk.key[size : 2 * size] + talk.key[-2:]))
        number = known.setdefault(b"".join(ends), len(self.talks) + 1)
        if number > len(self.talks):
            self.talks.append(_moved(talk, at))
            self.shares.append([])
        else:
            _join(self.talks[number - 1], talk)
        return number

    def share(self, number: int, about: Connection, sums: dict[str, FileSums]) -> None:
        """Add the bytes of a connection to the files that hold them.

        Shape: what kind of bytes stand in which of several files is told by their order: what was
        skipped first, then copies, then the rest.
        """
        places = [
            ("undecoded", about.undecoded), ("duplicates", about.duplicates), ("tls", about.tls),
            ("other", about.other), ("kafka", about.kafka),
        ]  # fmt: skip
        for which, payload in self.shares[number - 1]:
            left = payload if which != self.shares[number - 1][-1][0] else None
            into = sums.setdefault(self.files[which].path, FileSums())
            for at, (name, count) in enumerate(places):
                part = count if left is None else min(count, left)
                setattr(into, name, getattr(into, name) + part)
                places[at] = name, count - part
                left = None if left is None else left - part

    def place(self, position: int) -> tuple[FileIndex, int]:
        """The file of a position in the series, and the position in it."""
        which = bisect_right(self.offsets, position) - 1
        return self.files[which], position - self.offsets[which]

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(file.size for file in self.files)

    def only(self, wanted: Sequence[int], span: Span | None = None) -> tuple[FileIndex, ...]:
        """The indexes of the files with the packets of some connections alone, or with those of
        them that are in a span.
        """
        chosen = set(wanted)
        made = []
        for which, file in enumerate(self.files):
            local = self.numbers[which]
            part = replace(file, numbers=array("I"), starts=array("Q"), sizes=array("I"))
            within = self.within(which, span)
            for number, start, size in zip(file.numbers, file.starts, file.sizes, strict=True):
                if number == SHARED or (local[number] in chosen and start in within):
                    part.numbers.append(number)
                    part.starts.append(start)
                    part.sizes.append(size)
            made.append(part)
        return tuple(made)

    def local(self, which: int, wanted: Container[int]) -> set[int]:
        """What some connections are in the index of a file, with what belongs to all of them."""
        numbers = enumerate(self.numbers[which])
        return {SHARED, *(mine for mine, ours in numbers if ours in wanted)}

    def read(self, wanted: Sequence[int]) -> dict[int, list[Piece]]:
        """The pieces of connections, by their numbers; each begins with the headers of a file."""
        found: dict[int, list[Piece]] = {number: [] for number in wanted}
        for number, piece in self._pieces(found):
            for pieces in [found[number]] if number != SHARED else found.values():
                pieces.append(piece)
        return found

    def stream(self, number: int, span: Span | None = None) -> Iterator[Piece]:
        """The pieces of a connection that is too long to be held in memory, one after the other.

        Shape: with a span the packets in it, after what the files tell of all packets.
        """
        for _, piece in self._pieces({number}, span):
            yield piece

    def spans(self, number: int, size_max: int) -> list[Span]:
        """Spans of the recording that cut a connection into about equal parts between packets.

        Shape: none of them has more than `size_max` bytes of the connection, but for what one run
        may have. Together they cover the recording.
        """
        size = self.talks[number - 1].size
        share = size / max(1, -(-size // size_max))
        borders = [0]
        seen = 0
        for which, (file, offset) in enumerate(zip(self.files, self.offsets, strict=True)):
            mine = self.local(which, {number}) - {SHARED}
            for at, start, count in zip(file.numbers, file.starts, file.sizes, strict=True):
                if at in mine:
                    if seen >= share * len(borders):
                        borders.append(offset + start)
                    seen += count
        return list(pairwise([*borders, self.size]))

    def within(self, which: int, span: Span | None) -> range:
        """The positions in a file that are in a span."""
        begin, end = (0, self.size) if span is None else span
        return range(max(0, begin - self.offsets[which]), max(0, end - self.offsets[which]))

    def _pieces(
        self, wanted: Container[int], span: Span | None = None
    ) -> Iterator[tuple[int, Piece]]:
        """The pieces of connections with the number of each, in the order of the files."""
        for which, (file, offset) in enumerate(zip(self.files, self.offsets, strict=True)):
            numbers = self.numbers[which]
            local, within = self.local(which, wanted), self.within(which, span)
            for mine, position, data in _runs(file, local, within):
                # The header of a pcap file is the same in all files of a series.
                if mine != SHARED or which == 0 or not file.head:
                    yield numbers[mine], (offset + position, data)


def _moved(talk: Talk, at: int) -> Talk:
    return Talk(
        talk.key, at + talk.position, talk.packets, talk.size, talk.payload, talk.first_ns,
        talk.last_ns, talk.is_first_client, talk.round_trip_ns,
    )  # fmt: skip


def _join(talk: Talk, later: Talk) -> None:
    """Add what a later file has of the same connection."""
    first, second = later.payload if later.key == talk.key else later.payload[::-1]
    talk.payload = talk.payload[0] + first, talk.payload[1] + second
    talk.packets += later.packets
    talk.size += later.size
    talk.last_ns = max(talk.last_ns, later.last_ns)
    if talk.round_trip_ns is None:
        talk.round_trip_ns = later.round_trip_ns


class Places:
    """Where the bytes of joined pieces stand in the recording."""

    def __init__(self, pieces: Iterable[Piece]) -> None:
        self._starts: list[int] = []
        self._shifts: list[int] = []
        at = 0
        for position, data in pieces:
            self._starts.append(at)
            self._shifts.append(position - at)
            at += len(data)

    def find(self, at: int) -> int:
        """The position of a byte of the joined pieces."""
        return at + self._shifts[bisect_right(self._starts, at) - 1]


def bins(talks: Sequence[Talk], size_max: int) -> list[list[int]]:
    """Numbers of connections, in bins of at most so many bytes where a connection allows it.

    Shape: the longest first, each into the bin that has least; the number of bins is that of full
    bins.
    """
    total = sum(talk.size for talk in talks)
    count = max(1, min(len(talks), -(-total // size_max)))
    chosen: list[list[int]] = [[] for _ in range(count)]
    loads = [0] * count
    order = sorted(range(len(talks)), key=lambda at: -talks[at].size)
    for at in order:
        which = loads.index(min(loads))
        loads[which] += talks[at].size
        chosen[which].append(at + 1)
    return [sorted(each) for each in chosen if each]


def _runs(
    file: FileIndex, wanted: set[int], within: range
) -> Iterator[tuple[int, int, bytes]]:
    """Number, position and bytes of the runs of some connections that begin within a range, in
    order, and of those before the end of it that all connections need.
    """
    group: list[tuple[int, int, int]] = []
    with _Blocks(file.path) as blocks:
        for run in _chosen(file, wanted, within):
            if group and (
                run[1] + run[2] - group[0][1] > _BLOCK_BYTES
                or run[1] - group[-1][1] - group[-1][2] > _GAP_BYTES
            ):
                yield from _read(blocks, group)
                group.clear()
            group.append(run)
        if group:
            yield from _read(blocks, group)


def _chosen(
    file: FileIndex, wanted: set[int], within: range
) -> Iterator[tuple[int, int, int]]:
    first, end = within.start, within.stop
    for run in zip(file.numbers, file.starts, file.sizes, strict=True):
        number, start, _ = run
        if number in wanted and start < end and (start >= first or number == SHARED):
            yield run


def _read(
    blocks: _Blocks, group: Sequence[tuple[int, int, int]]
) -> Iterator[tuple[int, int, bytes]]:
    """Runs that lie close together, by one read."""
    _, begin, _ = group[0]
    _, last, size = group[-1]
    block = blocks.read(begin, last + size)
    for number, start, size in group:
        yield number, start, block[start - begin : start - begin + size]


class _Blocks:
    """Reads ranges of a file in order; a packed file is unpacked once on the way."""

    def __init__(self, path: str) -> None:
        self._plain: io.FileIO | None = io.FileIO(path)
        self._packed: CaptureSource | None = None
        if self._plain.read(6).startswith(PACKED):
            self._plain.close()
            self._plain = None
            self._packed = CaptureSource(path)
        self._rest = b""
        self._position = 0

    def __enter__(self) -> _Blocks:
        return self

    def __exit__(self, *_: object) -> None:
        """Give the file back."""
        if self._plain is not None:
            self._plain.close()
        if self._packed is not None:
            self._packed.__exit__()

    def read(self, begin: int, end: int) -> bytes:
        """The bytes of a range, fewer where the file has become shorter."""
        if self._plain is not None:
            self._plain.seek(begin)
            return _read_all(self._plain, end - begin)
        assert self._packed is not None
        while self._position + len(self._rest) <= begin:
            self._position += len(self._rest)
            self._rest = self._packed.read()
            if not self._rest:
                return b""
        data = self._rest[begin - self._position :]
        if len(data) < end - begin:
            data += self._packed.read(end - begin - len(data))
        self._position, self._rest = begin, data
        return data[: end - begin]


def _read_all(file: io.FileIO, size: int) -> bytes:
    """So many bytes; a system call may give fewer."""
    data = file.read(size)
    while len(data) < size and (more := file.read(size - len(data))):
        data += more
    return data
