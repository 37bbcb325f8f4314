"""Files that must be copied before they can be read by position: compressed ones and pipes.

The copy is a temporary file, so memory stays bounded, and its size is limited, so that a few
bytes cannot fill the disk.
"""

from __future__ import annotations

import gzip
import lzma
import os
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from io import BytesIO
from pathlib import Path
from typing import IO, Protocol, cast

from kraftwire.capture.packets.xz import XzReader
from kraftwire.capture.packets.zstd import ZstdReader
from kraftwire.decode.files.kinds import HEAD_SIZE, FileKind
from kraftwire.errors import StorageError

__all__ = ["SupportsRead", "copied", "peek", "unpacked"]

# A compressed file or a pipe is copied to disk before it is decoded, up to this size: twice the
# largest segment that Kafka can write (positions are signed 32-bit integers).
UNPACKED_FILE_BYTES_MAX = 4 * 1024 * 1024 * 1024

_CHUNK_SIZE = 1 << 20
_PEEK_SIZE = 1 << 18
_STUMBLES = (OSError, EOFError, zlib.error, lzma.LZMAError)


class SupportsRead(Protocol):
    """A binary stream."""

    def read(self, size: int, /) -> bytes | None:
        """Return the next bytes, at most `size`; none at the end."""


def peek(path: Path, file: IO[bytes], kind: FileKind) -> bytes:
    """The first unpacked bytes of a compressed file, at most `HEAD_SIZE`.

    Raises: StorageError if not even these can be unpacked.
    """
    file.seek(0)
    packed = file.read(_PEEK_SIZE)
    file.seek(0)
    try:
        return _head(BytesIO(packed), kind)
    except _STUMBLES as error:
        raise _cannot_unpack(path, kind, error) from error


def _head(file: IO[bytes], kind: FileKind) -> bytes:
    reader = _reader(file, kind)
    head = b""
    while len(head) < HEAD_SIZE and (part := reader.read(HEAD_SIZE - len(head))):
        head += part
    return head


@contextmanager
def copied(path: Path, file: SupportsRead) -> Iterator[IO[bytes]]:
    """A temporary copy of something that can be read only once, such as a pipe.

    Raises: StorageError if it is longer than the limit or cannot be read.
    """
    with tempfile.TemporaryFile() as copy:
        try:
            _copy(path, file, copy)
        except OSError as error:
            raise StorageError(f"cannot read: {error.strerror}", file=str(path)) from error
        yield copy


@contextmanager
def unpacked(path: Path, file: IO[bytes], kind: FileKind) -> Iterator[IO[bytes]]:
    """A temporary file with the unpacked bytes.

    Raises: StorageError if they are more than the limit, or if the file is cut or broken.
    """
    with tempfile.TemporaryFile() as plain:
        try:
            with closing(_reader(file, kind)) as reader:
                _copy(path, reader, plain)
        except _STUMBLES as error:
            raise _cannot_unpack(path, kind, error) from error
        yield plain


class _Reader(Protocol):
    def read(self, size: int, /) -> bytes:
        """Return the next bytes, at most `size`; none at the end."""

    def close(self) -> None:
        """Release the resources that reading takes."""


def _reader(file: IO[bytes], kind: FileKind) -> _Reader:
    if kind is FileKind.GZIP:
        return cast("_Reader", gzip.GzipFile(fileobj=file, mode="rb"))
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    return ZstdReader(file, size) if kind is FileKind.ZSTD else XzReader(file, size)


def _copy(path: Path, source: SupportsRead, target: IO[bytes]) -> None:
    size = 0
    while chunk := source.read(_CHUNK_SIZE):
        size += len(chunk)
        if size > UNPACKED_FILE_BYTES_MAX:
            raise StorageError(f"longer than {UNPACKED_FILE_BYTES_MAX} bytes", file=str(path))
        target.write(chunk)
    target.flush()


def _cannot_unpack(path: Path, kind: FileKind, error: Exception) -> StorageError:
    return StorageError(f"cannot unpack {kind}: {error}", file=str(path))
