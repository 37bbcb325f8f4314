"""The packets of connections, read again from one file by the runs of its index.

Owns how much is read at once: where wanted runs lie close together, the bytes between them are read
as well; elsewhere each run is read by itself.
"""

from __future__ import annotations

import io
import os
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from kraftwire import engine
from kraftwire.capture.framing.frames import RawFrame
from kraftwire.capture.packets.source import CaptureSource
from kraftwire.capture.packets.unpacking import PACKED, PACKED_MAGIC_SIZE
from kraftwire.errors import StorageError
from kraftwire.spark.captures.byte_ranges import Ints, join_ranges
from kraftwire.spark.captures.connection_index import SHARED

Piece = tuple[int, bytes]

# Runs that begin in the same block of a file may be read at once.
_BLOCK_BYTES = 4 * 1024 * 1024
# Bytes that could be read in the time that one call takes.
_CALL_BYTES = 8 * 1024


@dataclass(frozen=True, slots=True)
class Chosen:
    """Wanted runs of a file, in file order, with the numbers of their connections."""

    numbers: Ints
    starts: Ints
    sizes: Ints

    def groups(self) -> Iterator[Chosen]:
        """Return runs that may be read at once; data of all connections is a group of its own."""
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


@dataclass(slots=True)
class Held:
    """The packets of a connection in memory, in parts, after what applies to all packets.

    `starts` and `sizes` are those of runs of packets, each in one part: `starts` in the recording.
    """

    parts: list[bytes] = field(default_factory=list)
    starts: list[Ints] = field(default_factory=list)
    sizes: list[Ints] = field(default_factory=list)

    def pieces(self) -> Iterator[Piece]:
        """Yield the parts as one capture, each with its position in that; keep none."""
        position = 0
        self.parts.reverse()
        while self.parts:
            part = self.parts.pop()
            yield position, part
            position += len(part)


class Places:
    """Positions in the recording of the bytes of a connection in memory."""

    def __init__(self, held: Held) -> None:
        empty = np.empty(0, np.int64)
        sizes = np.concatenate([empty, *held.sizes])
        starts = np.concatenate([empty, *held.starts])
        begins = np.cumsum(sizes) - sizes
        self._begins = array("q", begins.tobytes())
        self._shifts = array("q", (starts - begins).tobytes())

    def place(self, frames: Iterable[RawFrame], *, ends: bool) -> None:
        """Give frames their positions in the recording, and those of their `ends`."""
        begins, shifts = self._begins, self._shifts
        for frame in frames:
            at = frame.position
            frame.position = at + shifts[bisect_right(begins, at) - 1]
            if ends:
                at = frame.end_position
                frame.end_position = at + shifts[bisect_right(begins, at - 1) - 1]


def read_runs(path: str, chosen: Chosen) -> Iterator[Piece]:
    """Yield runs with their positions in the file, one after the other.

    Raises: StorageError if the file cannot be read, or was deleted since it was indexed.
    """
    with _opened(path) as blocks:
        for group in chosen.groups():
            yield from zip(group.starts.tolist(), blocks.parts(group), strict=True)


def hold_runs(
    path: str, chosen: Chosen, offset: int, held: dict[int, Held]
) -> None:
    """Add runs to the packets held of each connection, by its number.

    The file begins at `offset` in the recording. Raises: as `read_runs`.
    """
    if not len(chosen.starts):
        return
    with _opened(path) as blocks:
        for group in chosen.groups():
            if group.numbers[0] == SHARED:
                wanting: Iterable[tuple[Held, Ints]] = (
                    (each, np.array([0])) for each in held.values()
                )
            else:
                wanting = ((held[number], mine) for number, mine in group.by_number())
            _hold(blocks, group, offset, wanting)


def _hold(
    blocks: _Blocks, group: Chosen, offset: int, wanting: Iterable[tuple[Held, Ints]]
) -> None:
    """Add runs of one group."""
    begin, data = blocks.block(group)
    for connection, mine in wanting:
        starts, sizes = group.starts[mine], group.sizes[mine]
        if data is None:
            parts = blocks.joined(starts, sizes)
            if sum(map(len, parts)) != int(sizes.sum()):
                sizes = np.array([len(part) for part in parts], np.int64)
            connection.parts += parts
        else:
            places = starts - begin
            if len(data) < int((places + sizes).max()):
                # The file has become shorter.
                places = np.minimum(places, len(data))
                sizes = np.minimum(sizes, len(data) - places)
            connection.parts.append(join_ranges(data, places, sizes))
        connection.starts.append(starts + offset)
        connection.sizes.append(sizes)


@contextmanager
def _opened(path: str) -> Iterator[_Blocks]:
    try:
        with _Blocks(path) as blocks:
            yield blocks
    except OSError as error:
        raise StorageError(f"cannot read: {error.strerror}", file=path) from error


class _Blocks:
    """Reads ranges of a file in order; a packed file is unpacked once on the way."""

    def __init__(self, path: str) -> None:
        self._plain: io.FileIO | None = io.FileIO(path)
        self._packed: CaptureSource | None = None
        if self._plain.read(PACKED_MAGIC_SIZE).startswith(PACKED):
            self._plain.close()
            self._plain = None
            self._packed = CaptureSource(path)
        self._rest = b""
        self._position = 0

    def __enter__(self) -> _Blocks:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        if self._plain is not None:
            self._plain.close()
        if self._packed is not None:
            self._packed.__exit__()

    def block(self, group: Chosen) -> tuple[int, bytes | None]:
        """Return where a group begins and all its bytes; None if they are too many."""
        begin = int(group.starts[0])
        end = int(group.starts[-1] + group.sizes[-1])
        if self._plain is not None and end - begin > len(group.starts) * _CALL_BYTES:
            wanted = int(group.sizes.sum())
            if end - begin - wanted > wanted // 4:
                return begin, None
        return begin, self.read(begin, end)

    def parts(self, group: Chosen) -> list[bytes]:
        """Yield the runs of a group."""
        begin, data = self.block(group)
        if data is None:
            return self.single(group.starts, group.sizes)
        starts = group.starts - begin
        stops = starts + group.sizes
        return [data[a:b] for a, b in zip(starts.tolist(), stops.tolist(), strict=True)]

    def joined(self, starts: Ints, sizes: Ints) -> list[bytes]:
        """Return the bytes of runs of a plain file in any number of parts."""
        if engine.core is not None and self._plain is not None:
            numbers = np.ascontiguousarray(starts), np.ascontiguousarray(sizes)
            found = engine.core.read_ranges(self._plain.fileno(), *numbers)
            if found is not None:
                return [found]
        return self.single(starts, sizes)

    def single(self, starts: Ints, sizes: Ints) -> list[bytes]:
        """Yield runs of a plain file, each read by its own call."""
        assert self._plain is not None
        read, file = os.pread, self._plain.fileno()
        places = list(zip(sizes.tolist(), starts.tolist(), strict=True))
        found = [read(file, size, start) for size, start in places]
        if sum(map(len, found)) < int(sizes.sum()):
            # A system call may return fewer bytes than there are.
            return [self.read(start, start + size) for size, start in places]
        return found

    def read(self, begin: int, end: int) -> bytes:
        """Return the bytes of a range, fewer where the file has become shorter."""
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
    """Read `size` bytes; a single system call may return fewer."""
    data = file.read(size)
    while len(data) < size and (more := file.read(size - len(data))):
        data += more
    return data
