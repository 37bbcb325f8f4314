"""The packets of connections, read again from one file by the runs of its index.

Owns how much is read at once: where the runs that are wanted lie close together the bytes between
them are read as well, elsewhere each run is read by itself.
"""

from __future__ import annotations

import io
import os
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from kraftwire.decode.capture.source import CaptureSource
from kraftwire.spark.captures.headers import Ints, join_ranges
from kraftwire.spark.captures.talks import SHARED
from kraftwire.spark.captures.walk import PACKED

__all__ = ["Chosen", "Held", "Holder", "Piece", "Places", "hold_runs", "read_runs"]

Piece = tuple[int, bytes]

# Runs that begin in the same block of a file may be read at once.
_BLOCK_BYTES = 4 * 1024 * 1024
# What could be read in the time that a call takes.
_CALL_BYTES = 8 * 1024


@dataclass(frozen=True, slots=True)
class Chosen:
    """Runs of a file that are wanted, in its order, with the numbers of their connections."""

    numbers: Ints
    starts: Ints
    sizes: Ints

    def groups(self) -> Iterator[Chosen]:
        """Runs that may be read at once; what belongs to all connections is a group of its own."""
        if not len(self.starts):
            return
        block = self.starts // _BLOCK_BYTES
        is_shared = self.numbers == SHARED
        is_new = np.ones(len(block), np.bool_)
        is_new[1:] = (block[1:] != block[:-1]) | is_shared[1:] | is_shared[:-1]
        borders = [*np.flatnonzero(is_new).tolist(), len(block)]
        for begin, end in pairwise(borders):
            yield Chosen(
                self.numbers[begin:end], self.starts[begin:end], self.sizes[begin:end]
            )

    def by_number(self) -> Iterator[tuple[int, Ints]]:
        """Which runs are of each connection, in the order of the file."""
        order = np.argsort(self.numbers, kind="stable")
        numbers = self.numbers[order]
        borders = np.flatnonzero(numbers[1:] != numbers[:-1]) + 1
        for mine in np.split(order, borders):
            yield int(self.numbers[mine[0]]), mine


@dataclass(frozen=True, slots=True)
class Held:
    """Packets of a connection as one, after what the files tell of all packets.

    Shape: what begins at the index `begins[i]` of the data stands at `positions[i]` of the
    recording.
    """

    data: bytes
    begins: Ints
    positions: Ints

    def shifts(self, at: Ints) -> Ints:
        """What makes positions of indexes."""
        which = np.searchsorted(self.begins, at, "right") - 1
        found: Ints = (self.positions - self.begins)[which]
        return found


@dataclass(slots=True)
class Holder:
    """Collects the packets of a connection."""

    parts: list[bytes] = field(default_factory=list)
    positions: list[Ints] = field(default_factory=list)
    sizes: list[Ints] = field(default_factory=list)

    def held(self) -> Held:
        """All of them; none are left here."""
        data = b"".join(self.parts)
        self.parts.clear()
        sizes = np.concatenate(self.sizes) if self.sizes else np.empty(0, np.int64)
        positions = np.concatenate(self.positions) if self.positions else sizes
        return Held(data, np.cumsum(sizes) - sizes, positions)


class Places:
    """Where the bytes of a connection that is held stand in the recording."""

    def __init__(self, held: Held) -> None:
        self._begins = array("q", held.begins.tobytes())
        self._shifts = array("q", (held.positions - held.begins).tobytes())

    def find(self, at: int) -> int:
        """The position of a byte."""
        return at + self._shifts[bisect_right(self._begins, at) - 1]


def read_runs(path: str, chosen: Chosen) -> Iterator[Piece]:
    """Runs with their positions in the file, one after the other."""
    with _Blocks(path) as blocks:
        for group in chosen.groups():
            yield from zip(group.starts.tolist(), blocks.parts(group), strict=True)


def hold_runs(
    path: str, chosen: Chosen, offset: int, holders: dict[int, Holder]
) -> None:
    """Add runs to those who collect them, by the numbers of connections.

    Shape: the file begins at `offset` in the recording.
    """
    if not len(chosen.starts):
        return
    with _Blocks(path) as blocks:
        for group in chosen.groups():
            if group.numbers[0] == SHARED:
                wanting: Iterable[tuple[Holder, Ints]] = (
                    (each, np.array([0])) for each in holders.values()
                )
            else:
                wanting = ((holders[number], mine) for number, mine in group.by_number())
            _hold(blocks, group, offset, wanting)


def _hold(
    blocks: _Blocks, group: Chosen, offset: int, wanting: Iterable[tuple[Holder, Ints]]
) -> None:
    """Add runs of one group."""
    begin, data = blocks.block(group)
    for holder, mine in wanting:
        starts, sizes = group.starts[mine], group.sizes[mine]
        if data is None:
            parts = blocks.single(starts, sizes)
            if sum(map(len, parts)) != int(sizes.sum()):
                sizes = np.array([len(part) for part in parts], np.int64)
            holder.parts += parts
        else:
            places = starts - begin
            if len(data) < int((places + sizes).max()):
                # The file has become shorter.
                places = np.minimum(places, len(data))
                sizes = np.minimum(sizes, len(data) - places)
            holder.parts.append(join_ranges(data, places, sizes))
        holder.positions.append(starts + offset)
        holder.sizes.append(sizes)


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

    def block(self, group: Chosen) -> tuple[int, bytes | None]:
        """Where a group begins, and all bytes from there to its end; None if that is too much."""
        begin = int(group.starts[0])
        end = int(group.starts[-1] + group.sizes[-1])
        if self._plain is not None and end - begin > len(group.starts) * _CALL_BYTES:
            wanted = int(group.sizes.sum())
            if end - begin - wanted > wanted // 4:
                return begin, None
        return begin, self.read(begin, end)

    def parts(self, group: Chosen) -> list[bytes]:
        """The runs of a group."""
        begin, data = self.block(group)
        if data is None:
            return self.single(group.starts, group.sizes)
        starts = group.starts - begin
        stops = starts + group.sizes
        return [data[a:b] for a, b in zip(starts.tolist(), stops.tolist(), strict=True)]

    def single(self, starts: Ints, sizes: Ints) -> list[bytes]:
        """Runs of a plain file, each by a call of its own."""
        assert self._plain is not None
        read, file = os.pread, self._plain.fileno()
        places = list(zip(sizes.tolist(), starts.tolist(), strict=True))
        found = [read(file, size, start) for size, start in places]
        if sum(map(len, found)) < int(sizes.sum()):
            # A system call may give fewer bytes than there are.
            return [self.read(start, start + size) for size, start in places]
        return found

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
