"""Bytes of a file by position, in bounded memory; compressed files and pipes are copied first."""

from __future__ import annotations

import lzma
import os
import stat
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from io import BytesIO
from pathlib import Path
from typing import IO, Protocol

from kraftwire.capture.packets.unpacking import PACKED_MAGIC_SIZE, Unpacked, unpack
from kraftwire.decode.files.kinds import HEAD_SIZE, FileKind, guess
from kraftwire.errors import StorageError
from kraftwire.limits import BATCH_SIZE_MAX, FILE_WINDOW_BYTES
from kraftwire.small_files import open_ending

# A compressed file or a pipe is copied to disk before it is decoded, up to this size: twice the
# largest segment that Kafka can write (positions are signed 32-bit integers).
UNPACKED_FILE_BYTES_MAX = 4 * 1024 * 1024 * 1024

# A compressed file may become UNPACKED_FREE bytes, and UNPACKED_RATIO more for each byte that it
# has: batches compress by less, and a few bytes can claim to be a full disk.
UNPACKED_FREE = 256 * 1024 * 1024
UNPACKED_RATIO = 100

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
        return _head(BytesIO(packed))
    except _STUMBLES as error:
        raise _cannot_unpack(path, kind, error) from error


def _head(file: IO[bytes]) -> bytes:
    reader = _reader(file)
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
            size_max = UNPACKED_FREE + UNPACKED_RATIO * os.fstat(file.fileno()).st_size
            with closing(_reader(file)) as reader:
                _copy(path, reader, plain, min(size_max, UNPACKED_FILE_BYTES_MAX))
        except _STUMBLES as error:
            raise _cannot_unpack(path, kind, error) from error
        yield plain


def _reader(file: IO[bytes]) -> Unpacked:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    head = file.read(PACKED_MAGIC_SIZE)
    file.seek(0)
    return unpack(head, file, size)


def _copy(
    path: Path, source: SupportsRead, target: IO[bytes], size_max: int = UNPACKED_FILE_BYTES_MAX
) -> None:
    size = 0
    while chunk := source.read(_CHUNK_SIZE):
        size += len(chunk)
        if size > size_max:
            raise StorageError(f"longer than {size_max} bytes: unpack it first", file=str(path))
        target.write(chunk)
    target.flush()


def _cannot_unpack(path: Path, kind: FileKind, error: Exception) -> StorageError:
    return StorageError(f"cannot unpack {kind}: {error}", file=str(path))


# A batch of a compressed file, or a state file that is compressed, may have PACKED_BATCH_FREE bytes
# and PACKED_BATCH_RATIO more for each byte of the compressed file: they are read whole, and a few
# bytes can claim to be any length. No batch of the quorum has more than 8 MiB.
PACKED_BATCH_FREE = 8 * 1024 * 1024
PACKED_BATCH_RATIO = 2


class ByteSource:
    """A file's bytes; `refresh` reads the size again, so the file may grow or shrink.

    `whole_max` is how much of it may be read at once: a batch, or all of a small file.
    """

    def __init__(
        self, path: Path, file: IO[bytes], kind: FileKind, whole_max: int = BATCH_SIZE_MAX
    ) -> None:
        self.whole_max = whole_max
        self.path = path
        self.kind = kind
        self.file = file
        self.size = 0
        self._start = 0
        self._window = b""
        self._view = memoryview(b"")
        self.refresh()

    def refresh(self) -> int:
        """Read the file's size again and drop cached bytes; returns the size."""
        self.size = os.fstat(self.file.fileno()).st_size
        self._window = b""
        self._view = memoryview(b"")
        return self.size

    def shorten(self, size: int) -> None:
        """Take the file for one that ends at `size`, whatever comes to it meanwhile."""
        if size < self.refresh():
            self.size = size

    def read(self, position: int, size: int) -> memoryview:
        """Bytes from a position on; fewer than `size` only where the file ends.

        The slice stays valid and unchanged however long it is kept.
        Raises: StorageError if the operating system cannot read.
        """
        begin = position - self._start
        end = begin + size
        if begin < 0 or end > len(self._window):
            self._fill(position, size)
            begin, end = 0, size
        return self._view[begin:end]

    def locate(self, position: int, size: int) -> tuple[bytes, int]:
        """A buffer that holds `read(position, size)`, and where in the buffer that begins.

        For readers that are faster with `bytes` than with a view. Raises: as `read`.
        """
        self.read(position, size)
        return self._window, position - self._start

    def _fill(self, position: int, size: int) -> None:
        wanted = max(0, min(max(size, FILE_WINDOW_BYTES), self.size - position))
        parts: list[bytes] = []
        at = position
        try:
            while wanted > 0:
                # One call may return fewer bytes than requested (Linux stops at 2 GiB).
                part = os.pread(self.file.fileno(), wanted, at)
                if not part:
                    break
                parts.append(part)
                at += len(part)
                wanted -= len(part)
        except OSError as error:
            raise StorageError(
                f"cannot read: {error.strerror}", file=str(self.path), position=position
            ) from error
        self._window = parts[0] if len(parts) == 1 else b"".join(parts)
        self._view = memoryview(self._window)
        self._start = position


@contextmanager
def open_source(path: Path) -> Iterator[ByteSource]:
    """Open a file of any kind; what is compressed is unpacked, what is a pipe is copied first.

    The source's `kind` is that of the unpacked bytes. A capture is returned unchanged,
    compressed or not, because its own reader unpacks it.
    Raises: StorageError if the file cannot be opened, read or unpacked, or is a device.
    """
    with ExitStack() as stack:
        try:
            file: IO[bytes] = stack.enter_context(open(path, "rb", opener=open_ending))
        except (OSError, ValueError) as error:
            # A name with a null byte is a ValueError.
            problem = error.strerror if isinstance(error, OSError) else str(error)
            raise StorageError(f"cannot open: {problem}", file=str(path)) from error
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            file = stack.enter_context(copied(path, file))
        yield _opened(path, file, stack)


@contextmanager
def open_stream(path: Path, stream: SupportsRead) -> Iterator[ByteSource]:
    """As `open_source`, for a binary stream of any kind, which is copied; `path` names it."""
    with ExitStack() as stack:
        yield _opened(path, stack.enter_context(copied(path, stream)), stack)


def _opened(path: Path, file: IO[bytes], stack: ExitStack) -> ByteSource:
    source = _source(path, file)
    if not source.kind.is_compressed:
        return source
    inner = guess(path, peek(path, file, source.kind))
    if inner.is_capture or inner is FileKind.TAR:
        source.kind = inner
        return source
    whole_max = min(BATCH_SIZE_MAX, PACKED_BATCH_FREE + PACKED_BATCH_RATIO * source.size)
    return _source(path, stack.enter_context(unpacked(path, file, source.kind)), whole_max)


def _source(path: Path, file: IO[bytes], whole_max: int = BATCH_SIZE_MAX) -> ByteSource:
    source = ByteSource(path, file, FileKind.UNKNOWN, whole_max)
    source.kind = guess(path, bytes(source.read(0, HEAD_SIZE)), source.size)
    return source
