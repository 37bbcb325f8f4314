"""What a capture may be read from: a path, a binary stream, pieces of bytes.

Owns how bytes are asked for, and who closes what: a file that was opened here is closed here, a
stream of the caller's stays open.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from kraftwire.errors import UsageError

__all__ = [
    "STDIN",
    "CaptureInput",
    "Opened",
    "Piece",
    "Pieces",
    "Readable",
    "input_name",
    "opened",
]

STDIN = "-"
_NO_NAME = "(stream)"

# Bytes that follow the last ones, or the position of bytes in the unpacked capture with them.
Piece = bytes | tuple[int, bytes]


@runtime_checkable
class Readable(Protocol):
    """A binary stream, such as a file, a pipe or `io.BytesIO`."""

    def read(self, size: int, /) -> bytes | None:
        """Return the next bytes, at most as many as wanted; none at the end."""


CaptureInput = str | os.PathLike[str] | bytes | bytearray | Readable | Iterable[Piece]


@dataclass(slots=True)
class Opened:
    """An input that can be read.

    `read` returns the next bytes, no more than asked for and none at the end. `pieces` is set
    where pieces give their positions. An input that `is_finite` has an end to wait for;
    `size` counts all bytes, 0 where that is unknown.
    """

    read: Callable[[int], bytes]
    close: Callable[[], None]
    is_finite: bool
    pieces: Pieces | None = None
    size: int = 0


def input_name(source: CaptureInput) -> str:
    """Return the name of an input in frames and messages: its path, or the stream's own name."""
    if isinstance(source, str | os.PathLike):
        return os.fspath(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else _NO_NAME


def opened(source: CaptureInput) -> Opened:
    """Open a path, or get ready to read what is open already.

    Raises: OSError if a path cannot be opened; UsageError for what cannot be read as bytes.
    """
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        if not path:
            raise UsageError("an empty name is not a capture")
        if path == STDIN:
            file = io.FileIO(sys.stdin.fileno(), closefd=False)
        else:
            file = io.FileIO(path)
        is_finite = file.seekable()
        size = os.fstat(file.fileno()).st_size if is_finite else 0
        read = _placed_reader(file) if is_finite and path != STDIN else _reader(file)
        return Opened(read, file.close, is_finite, size=size)
    if isinstance(source, bytes | bytearray):
        source = io.BytesIO(source)
    if isinstance(source, Readable):
        is_seekable = getattr(source, "seekable", None)
        return Opened(_reader(source), _nothing, is_seekable is not None and is_seekable())
    if isinstance(source, Iterable):
        pieces = Pieces(iter(source))
        return Opened(pieces.read, _nothing, False, pieces if pieces.has_positions else None)
    raise UsageError(f"a capture cannot be read from {type(source).__name__}")


def _reader(stream: Readable) -> Callable[[int], bytes]:
    """Return a function that reads what a stream has now, without waiting for more."""
    read = getattr(stream, "read1", None) or stream.read

    def read_bytes(size: int) -> bytes:
        data = read(size) or b""
        if isinstance(data, str):
            raise UsageError("a capture needs a binary stream, this one gives text")
        return data

    return read_bytes


def _placed_reader(file: io.FileIO) -> Callable[[int], bytes]:
    """Return a function that reads a file from its start, unaffected by copies of this process."""
    if not hasattr(os, "pread"):
        return file.read
    place = 0

    def read_bytes(size: int) -> bytes:
        nonlocal place
        data = os.pread(file.fileno(), size, place)
        place += len(data)
        return data

    return read_bytes


def _nothing() -> None:
    """Do nothing: what belongs to the caller stays open."""


class Pieces:
    """Pieces of bytes as a stream.

    `position` is that of the piece read last, where pieces give positions.
    """

    def __init__(self, pieces: Iterator[Piece]) -> None:
        self.position = 0
        self._pieces = pieces
        self._first: Piece | None = next(pieces, None)
        self.has_positions = isinstance(self._first, tuple)
        self._rest = b""

    def read(self, size: int) -> bytes:
        """Return what is left of the present piece, or the next one."""
        if self.has_positions:
            return self._next()
        data = self._rest or self._next()
        self._rest = data[size:]
        return data[:size]

    def _next(self) -> bytes:
        piece = self._first
        self._first = None
        while piece is None or not (piece[1] if isinstance(piece, tuple) else piece):
            try:
                piece = next(self._pieces)
            except StopIteration:
                return b""
        if isinstance(piece, tuple):
            self.position, piece = piece
        return bytes(piece)
