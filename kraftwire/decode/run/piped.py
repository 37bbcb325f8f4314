"""Standard input that is a pipe: its first bytes show what it holds, and are then read again.

Owns how many bytes are waited for: no more than a packet's worth of a capture, which may be live.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import IO

from kraftwire.decode.files.kinds import HEAD_SIZE, FileKind, guess
from kraftwire.decode.files.unpack import SupportsRead, peek
from kraftwire.errors import StorageError

__all__ = ["Piped"]

_MAGIC_SIZE = 6
# Zstandard gives nothing before a whole block, of 128 KiB at most.
_PACKED_SIZE = 1 << 18


class Piped:
    """A stream that can be read once, but for its first bytes."""

    name = "-"

    def __init__(self, stream: SupportsRead) -> None:
        self._stream = stream
        self._head = b""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, at most as many as wanted; those looked at come first."""
        if self._head:
            data, self._head = self._head[:size], self._head[size:]
            return data
        return self._stream.read(size) or b""

    def kind(self, path: Path) -> FileKind:
        """Return the kind of the input, once unpacked. Order: before anything is read."""
        self._look(_MAGIC_SIZE)
        found = guess(path, self._head)
        if found.is_capture:
            return found
        self._look(_PACKED_SIZE if found.is_compressed else HEAD_SIZE)
        found = guess(path, self._head[:HEAD_SIZE])
        return self._inner(path, found) if found.is_compressed else found

    def _inner(self, path: Path, kind: FileKind) -> FileKind:
        packed: IO[bytes] = BytesIO(self._head)
        try:
            return guess(path, peek(path, packed, kind))
        except StorageError:
            # Too little, or damaged: the reader of captures goes as far as it can.
            return FileKind.UNKNOWN

    def _look(self, size: int) -> None:
        while len(self._head) < size and (part := self._stream.read(size - len(self._head))):
            self._head += part
