"""Bytes of a file by position, in bounded memory.

Owns the window: one read of a few MiB that many small slices are cut from. A mapped file would
be as fast, but a broker may truncate a segment or shrink an index at any time, and touching a
page after the new end kills the process.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from kraftwire.decode.files.kinds import HEAD_SIZE, FileKind, guess
from kraftwire.decode.files.unpack import SupportsRead, copied, peek, unpacked
from kraftwire.errors import StorageError
from kraftwire.limits import BATCH_SIZE_MAX, FILE_WINDOW_BYTES

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
        """Ask for the file's size again and forget what was read; returns the size."""
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
                # One call may return less than asked for (Linux stops at 2 GiB).
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
    Raises: StorageError if the file cannot be opened, read or unpacked.
    """
    with ExitStack() as stack:
        try:
            file: IO[bytes] = stack.enter_context(path.open("rb"))
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
