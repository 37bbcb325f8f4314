"""The bytes of a capture in order: from a path, a stream or pieces, unpacked as they are read."""

from __future__ import annotations

import io
import lzma
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from kraftwire.capture.packets.packet import Follow
from kraftwire.capture.packets.unpacking import PACKED, PACKED_MAGIC_SIZE, unpack
from kraftwire.errors import StorageError, UsageError
from kraftwire.limits import CAPTURE_READ_BYTES

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
    pieces: PieceStream | None = None
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
        pieces = PieceStream(iter(source))
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


class PieceStream:
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




class CaptureSource:
    """Reads a capture once, from the start to the end.

    `path` names it. `size` counts the bytes that were read, unpacked; `position` is that of
    the first byte of what `read` returned last, and `end` is after the last byte of all, both
    counted from `offset`, at which a file in a row of several begins. `problem` says why the bytes
    ended before they should have; empty if they did not. `is_damaged`: they were wrong
    there, rather than just at their end. `is_packed` if they are compressed; `packed` counts the
    bytes that were read as they are in the file, `file_size` those of the whole file, 0 where that
    is not known, and `on_block` is called for each block that was read. `follow`, if there is one,
    takes packets of classic captures before anything else sees them. If it `has_pauses`, `PAUSE`
    comes among the packets before more bytes are read.
    Raises: StorageError if the input cannot be opened; UsageError if it cannot be read from.
    """

    def __init__(
        self, source: CaptureInput, name: str | None = None, *, offset: int = 0
    ) -> None:
        self.path = input_name(source) if name is None else name
        self.problem = ""
        self.packed = 0
        self.is_packed = False
        self.on_block: Callable[[CaptureSource], None] | None = None
        self.on_secrets: Callable[[bytes], None] | None = None
        self.follow: Follow | None = None
        self.has_pauses = False
        self.is_damaged = False
        self.size = 0
        self.offset = self.position = self.end = offset
        self._rest = b""
        self._rest_position = 0
        self._block_position = 0
        try:
            self._input = opened(source)
        except (OSError, ValueError) as error:
            # A name with a null byte is a ValueError.
            raise self._cannot_open(error) from error
        try:
            self._read_some = self._reader()
        except (OSError, ValueError) as error:
            self._input.close()
            raise self._cannot_open(error) from error

    def _cannot_open(self, error: OSError | ValueError) -> StorageError:
        problem = f"cannot open: {getattr(error, 'strerror', '') or error}"
        return StorageError(problem, file=self.path)

    def _reader(self) -> Callable[[int], bytes]:
        """Choose a reader by the first bytes, which are put back."""
        read = self._count_packed
        if self._input.pieces is not None:
            return read  # positions are those of unpacked bytes
        head = b""
        while len(head) < PACKED_MAGIC_SIZE and (
            part := read(PACKED_MAGIC_SIZE - len(head))
        ):
            head += part
        again = _Replayed(head, read)
        self.is_packed = head.startswith(PACKED)
        if not self.is_packed:
            return again.read
        unpacked = unpack(head, again, self._input.size)
        # The packets of a live capture so far are decoded without waiting for more.
        return getattr(unpacked, "read1", unpacked.read)

    @property
    def is_finite(self) -> bool:
        """Whether the input has an end to wait for, and is no live capture."""
        return self._input.is_finite

    @property
    def file_size(self) -> int:
        """The size of the file in bytes, compressed if it is; 0 for anything but a file."""
        return self._input.size

    def read(self, minimum: int = 1) -> bytes:
        """Return the next bytes, at least `minimum` of them unless the capture ends before.

        A pipe yields what it has, so that live captures are decoded as they come.
        """
        data, self._rest = self._rest, b""
        if data:
            self.position = self._rest_position
        else:
            data = self._attempt()
            self.position = self._block_position
        if len(data) >= minimum or not data:
            return data
        parts = [data]
        missing = minimum - len(data)
        while missing > 0 and (data := self._attempt()):
            parts.append(data)
            missing -= len(data)
        return b"".join(parts)

    def read_exactly(self, size: int) -> bytes:
        """Return the next bytes, `size` of them unless the capture ends before."""
        data = self.read(size)
        self._rest = data[size:]
        self._rest_position = self.position + size
        return data[:size]

    def read_on(self) -> None:
        """Count the remaining bytes without keeping them, unless the input may never end."""
        problem = self.problem
        while self._input.is_finite and self._attempt():
            pass
        self.problem = problem or self.problem

    def fail(self, problem: str) -> None:
        """Note that the bytes make no sense from here on."""
        self.problem = problem
        self.is_damaged = True

    def _attempt(self) -> bytes:
        try:
            data = self._read_some(CAPTURE_READ_BYTES)
        except EOFError as error:
            self.problem = f"the packed file is cut off: {error}"
            return b""
        except (OSError, zlib.error, lzma.LZMAError) as error:
            self.fail(f"cannot read on: {error}")
            return b""
        pieces = self._input.pieces
        self._block_position = self.offset + (self.size if pieces is None else pieces.position)
        self.end = max(self.end, self._block_position + len(data))
        self.size += len(data)
        if self.on_block is not None:
            self.on_block(self)
        return data

    def _count_packed(self, size: int) -> bytes:
        data = self._input.read(size)
        self.packed += len(data)
        return data

    def __enter__(self) -> CaptureSource:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._input.close()


class _Replayed:
    """A stream whose first bytes were read already."""

    def __init__(self, head: bytes, read: Callable[[int], bytes]) -> None:
        self._head = head
        self._read = read

    def read(self, size: int, /) -> bytes:
        if self._head:
            head, self._head = self._head, b""
            return head
        return self._read(size)
