"""The packets of connections, read again from a file by the runs of its index."""

from __future__ import annotations

import io
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np

from kraftwire import engine
from kraftwire.capture.framing.frames import RawFrame
from kraftwire.capture.packets.source import CaptureSource
from kraftwire.capture.packets.unpacking import PACKED, PACKED_MAGIC_SIZE
from kraftwire.errors import StorageError
from kraftwire.limits import CAPTURE_READ_BYTES
from kraftwire.spark.captures.file_index import Ints, PacketRuns

# Packets with their position.
PacketPiece = tuple[int, bytes]


class ConnectionBytes:
    """The packets of a connection in memory, one after the other."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        # Runs of packets: where they begin in the recording, and their sizes.
        self._starts: list[Ints] = []
        self._sizes: list[Ints] = []

    def add(self, data: bytes, starts: Ints, sizes: Ints) -> None:
        """Add runs of packets, which begin at `starts` in the recording."""
        self._parts.append(data)
        self._starts.append(starts)
        self._sizes.append(sizes)

    def positions(self) -> PositionMap:
        """Return where the packets are in the recording."""
        empty = np.empty(0, np.int64)
        return PositionMap(
            np.concatenate([empty, *self._starts]), np.concatenate([empty, *self._sizes])
        )

    def pieces(self) -> Iterator[PacketPiece]:
        """Yield the packets as one capture, and forget them."""
        position = 0
        self._parts.reverse()
        while self._parts:
            part = self._parts.pop()
            yield position, part
            position += len(part)


class PositionMap:
    """Positions in the recording of the packets of a connection, by those in its bytes."""

    def __init__(self, starts: Ints, sizes: Ints) -> None:
        begins = np.cumsum(sizes) - sizes
        self._begins = array("q", begins.tobytes())
        self._shifts = array("q", (starts - begins).tobytes())

    def move(self, frames: Iterable[RawFrame], *, ends: bool) -> None:
        """Give frames their positions in the recording, and those of their `ends`."""
        begins, shifts = self._begins, self._shifts
        for frame in frames:
            at = frame.position
            frame.position = at + shifts[bisect_right(begins, at) - 1]
            if ends:
                at = frame.end_position
                frame.end_position = at + shifts[bisect_right(begins, at - 1) - 1]


def read_groups(path: str, runs: PacketRuns) -> Iterator[tuple[PacketRuns, bytes]]:
    """Yield runs in groups, each with its bytes, one run after the other.

    Runs are shorter where the file has become shorter. Raises: StorageError if the file cannot be
    read, or was deleted since it was indexed.
    """
    if not len(runs.starts):
        return
    try:
        with _opened(path) as read:
            yield from map(read, runs.groups())
    except OSError as error:
        raise StorageError(f"cannot read: {error.strerror}", file=path) from error


def join_ranges(data: bytes, starts: Ints, sizes: Ints) -> bytes:
    """Return ranges of the data, all of which exist, one after the other."""
    if engine.core is not None:
        joined: bytes = engine.core.join_ranges(
            data, np.ascontiguousarray(starts), np.ascontiguousarray(sizes)
        )
        return joined
    stops = starts + sizes
    return b"".join([data[a:b] for a, b in zip(starts.tolist(), stops.tolist(), strict=True)])


@contextmanager
def _opened(path: str) -> Iterator[Callable[[PacketRuns], tuple[PacketRuns, bytes]]]:
    """Open a file; yields a function that reads runs, which come in the order of the file."""
    with open(path, "rb", buffering=0) as file:
        if not file.read(PACKED_MAGIC_SIZE).startswith(PACKED):
            yield partial(_read_plain, file)
            return
    with CaptureSource(path) as source:
        yield partial(_read_each, _unpacking_reader(source))


def _read_plain(file: io.FileIO, runs: PacketRuns) -> tuple[PacketRuns, bytes]:
    if engine.core is not None:
        sizes = runs.sizes.astype(np.int64)
        data = engine.core.read_ranges(file.fileno(), np.ascontiguousarray(runs.starts), sizes)
        if data is not None:
            return runs, data

    def read(start: int, size: int) -> bytes:
        file.seek(start)
        data = file.read(size)
        # A single system call may return fewer bytes than there are.
        while len(data) < size and (more := file.read(size - len(data))):
            data += more
        return data

    return _read_each(read, runs)


def _read_each(
    read: Callable[[int, int], bytes], runs: PacketRuns
) -> tuple[PacketRuns, bytes]:
    places = zip(runs.starts.tolist(), runs.sizes.tolist(), strict=True)
    parts = [read(start, size) for start, size in places]
    return replace(runs, sizes=np.array([*map(len, parts)], np.uint32)), b"".join(parts)


def _unpacking_reader(source: CaptureSource) -> Callable[[int, int], bytes]:
    """Return a function that reads ranges of a packed file, which is unpacked once on the way."""
    position = 0

    def read(start: int, size: int) -> bytes:
        nonlocal position
        while position < start and (
            skipped := source.read_exactly(min(start - position, CAPTURE_READ_BYTES))
        ):
            position += len(skipped)
        data = source.read_exactly(size)
        position += len(data)
        return data

    return read
