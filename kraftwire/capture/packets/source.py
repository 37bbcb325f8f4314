"""The bytes of a capture in order: a file, a stream or pieces of bytes, unpacked as they are read.

Owns decompression as a stream and the positions of bytes: no byte is kept, so memory does not
depend on the size of the capture. A plain file is read rather than mapped: reads into a small block
are as fast as touching fresh pages, they never fill memory with the file, and a file that is cut
while it is read ends instead of killing the process.
"""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from typing import Any

from kraftwire.capture.packets.inputs import CaptureInput, input_name, opened
from kraftwire.capture.packets.packet import Follow
from kraftwire.capture.packets.xz import XzReader
from kraftwire.capture.packets.zstd import ZstdReader
from kraftwire.errors import StorageError
from kraftwire.limits import CAPTURE_READ_BYTES

__all__ = ["CaptureSource"]

_GZIP = b"\x1f\x8b"
_XZ = b"\xfd7zXZ\x00"
_ZSTD = b"\x28\xb5\x2f\xfd"
_MAGIC_SIZE = 6


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
        while len(head) < _MAGIC_SIZE and (part := read(_MAGIC_SIZE - len(head))):
            head += part
        again = _Replayed(head, read)
        self.is_packed = head.startswith((_GZIP, _XZ, _ZSTD))
        if head.startswith(_GZIP):
            return gzip.GzipFile(fileobj=io.BufferedReader(again)).read1
        if head.startswith(_XZ):
            return XzReader(again, self._input.size).read
        if head.startswith(_ZSTD):
            return ZstdReader(again, self._input.size).read
        return again.read

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


class _Replayed(io.RawIOBase):
    """A stream whose first bytes were read already."""

    def __init__(self, head: bytes, read: Callable[[int], bytes]) -> None:
        self._head = head
        self._read = read

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        if self._head:
            head, self._head = self._head, b""
            return head
        return self._read(size)

    def readinto(self, buffer: Any, /) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)
