"""Recognizes what a pipe on standard input holds, from its first bytes.

Owns how many bytes are waited for: no more than a packet's worth of a capture, which may be live.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import IO

from kraftwire.decode.files.kinds import HEAD_SIZE, FileKind, guess, producer_snapshot_size
from kraftwire.decode.files.source import SupportsRead, peek
from kraftwire.errors import StorageError
from kraftwire.limits import STATE_FILE_BYTES_MAX

__all__ = ["Piped"]

_MAGIC_SIZE = 6
# Zstandard gives nothing before a whole block, of 128 KiB at most.
_PACKED_SIZE = 1 << 18


class Piped:
    """A stream that can be read once, of which the first bytes are read ahead."""

    name = "-"

    def __init__(self, stream: SupportsRead) -> None:
        self._stream = stream
        self._head = b""
        self.is_packed = False

    @property
    def has_bytes(self) -> bool:
        """Whether any bytes were found. Order: after `kind`, before anything is read."""
        return bool(self._head)

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, at most as many as wanted; those looked at come first."""
        if self._head:
            data, self._head = self._head[:size], self._head[size:]
            return data
        return self._stream.read(size) or b""

    def kind(self, path: Path) -> FileKind:
        """Return the kind of the input, once unpacked. Order: before anything is read.

        The kind of its compression if it cannot be unpacked: too little of it is there, or it is
        damaged.
        """
        self._look(_MAGIC_SIZE)
        found = guess(path, self._head)
        if found.is_capture:
            return found
        self._look(_PACKED_SIZE if found.is_compressed else HEAD_SIZE)
        found = guess(path, self._head[:HEAD_SIZE])
        self.is_packed = found.is_compressed
        if found is FileKind.UNKNOWN:
            return self._unless_producers(path)
        return self._inner(path, found) if self.is_packed else found

    def _unless_producers(self, path: Path) -> FileKind:
        """Return the kind of what may be a producer snapshot: if so, its size is right."""
        size = producer_snapshot_size(self._head)
        if size is None or size > STATE_FILE_BYTES_MAX:
            return FileKind.UNKNOWN
        self._look(size + 1)
        return guess(path, self._head[:HEAD_SIZE], len(self._head))

    def _inner(self, path: Path, kind: FileKind) -> FileKind:
        packed: IO[bytes] = BytesIO(self._head)
        try:
            return guess(path, peek(path, packed, kind))
        except StorageError:
            return kind

    def _look(self, size: int) -> None:
        while len(self._head) < size and (part := self._stream.read(size - len(self._head))):
            self._head += part
