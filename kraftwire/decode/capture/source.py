"""The bytes of a capture in order: a file, a pipe or standard input, unpacked on the way.

Owns decompression as a stream and nothing else: no byte is kept, so memory does not depend on the
size of the capture. A plain file is read rather than mapped: reads into a small block are as fast
as touching fresh pages, they never fill memory with the file, and a file that is cut while it is
read ends instead of killing the process.
"""

from __future__ import annotations

import gzip
import io
import lzma
import os
import shutil
import sys
import tempfile
import threading
import zlib
from collections.abc import Callable
from typing import IO, Any

from kraftwire.errors import StorageError
from kraftwire.limits import CAPTURE_READ_BYTES

__all__ = ["CaptureSource"]

_GZIP = b"\x1f\x8b"
_XZ = b"\xfd7zXZ\x00"
_ZSTD = b"\x28\xb5\x2f\xfd"
_MAGIC_SIZE = 6
# How the library says that its input ends too early.
_ZSTD_CUT = "incomplete frame"


class CaptureSource:
    """Reads a capture once, from the start to the end.

    Shape: `problem` says why the bytes ended before they should have; empty if they did not.
    `is_damaged` tells that they were wrong there, rather than just at their end.
    Raises: StorageError if the file cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.problem = ""
        self.is_damaged = False
        self._rest = b""
        self._pipe: _ZstdPipe | None = None
        try:
            self._file = self._open()
            self._read_some = self._reader()
        except OSError as error:
            raise StorageError(f"cannot open: {error.strerror}", file=path) from error

    def _open(self) -> io.FileIO:
        if self.path == "-":
            return io.FileIO(sys.stdin.fileno(), closefd=False)
        return io.FileIO(self.path)

    def _reader(self) -> Callable[[int], bytes]:
        """Choose by the first bytes, which are put back."""
        head = b""
        while len(head) < _MAGIC_SIZE and (part := self._file.read(_MAGIC_SIZE - len(head))):
            head += part
        again = _Replayed(head, self._file)
        if head.startswith(_GZIP):
            return gzip.GzipFile(fileobj=io.BufferedReader(again)).read1
        if head.startswith(_XZ):
            return lzma.LZMAFile(io.BufferedReader(again)).read1
        if head.startswith(_ZSTD):
            self._pipe = _ZstdPipe(again)
            return self._pipe.read
        return again.read

    def read(self, minimum: int = 1) -> bytes:
        """The next bytes, at least `minimum` of them unless the capture ends before.

        Shape: a pipe yields what there is, so that live captures are decoded as they come.
        """
        data = self._rest or self._attempt()
        self._rest = b""
        if len(data) >= minimum or not data:
            return data
        parts = [data]
        missing = minimum - len(data)
        while missing > 0 and (data := self._attempt()):
            parts.append(data)
            missing -= len(data)
        return b"".join(parts)

    def read_exactly(self, size: int) -> bytes:
        """The next bytes, `size` of them unless the capture ends before."""
        data = self.read(size)
        self._rest = data[size:]
        return data[:size]

    def fail(self, problem: str) -> None:
        """Note that the bytes make no sense from here on."""
        self.problem = problem
        self.is_damaged = True

    def _attempt(self) -> bytes:
        try:
            return self._read_some(CAPTURE_READ_BYTES)
        except EOFError as error:
            self.problem = f"the packed file is cut off: {error}"
        except (OSError, zlib.error, lzma.LZMAError) as error:
            self.fail(f"cannot read on: {error}")
        return b""

    def __enter__(self) -> CaptureSource:
        return self

    def __exit__(self, *_: object) -> None:
        """Give the file back."""
        self._file.close()
        if self._pipe is not None:
            self._pipe.close()


class _Replayed(io.RawIOBase):
    """A file whose first bytes were read already."""

    def __init__(self, head: bytes, file: io.FileIO) -> None:
        self._head = head
        self._file = file

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        if self._head:
            head, self._head = self._head, b""
            return head
        return self._file.read(size) or b""

    def readinto(self, buffer: Any, /) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class _ZstdPipe:
    """Zstandard as a stream: the library unpacks from file to file only, so the target is a pipe.

    The packed bytes are copied to a temporary file, because the library opens its input for
    writing as well, which captures do not always allow and which would keep a pipe from ending.
    """

    def __init__(self, packed: io.RawIOBase) -> None:
        self._errors: list[str] = []
        copy = tempfile.TemporaryFile()  # noqa: SIM115 (the thread closes it)
        shutil.copyfileobj(packed, copy)
        copy.seek(0)
        self._output, target = os.pipe()
        # The thread knows nothing of this object: else it would keep alive what it waits for.
        arguments = (copy, target, self._errors)
        threading.Thread(target=_unpack_zstd, args=arguments, daemon=True).start()

    def read(self, size: int) -> bytes:
        """The next unpacked bytes. Raises: EOFError where the input is cut off, OSError where it is
        damaged.
        """
        data = os.read(self._output, size)
        if not data and self._errors:
            text = self._errors[0]
            raise EOFError(text) if _ZSTD_CUT in text else OSError(text)
        return data

    def close(self) -> None:
        """Stop reading; the thread then fails to write and ends."""
        if self._output >= 0:
            os.close(self._output)
            self._output = -1

    def __del__(self) -> None:
        self.close()


def _unpack_zstd(packed: IO[bytes], target: int, errors: list[str]) -> None:
    import cramjam

    try:
        with packed:
            cramjam.zstd.decompress_into(
                cramjam.File(f"/dev/fd/{packed.fileno()}"),
                cramjam.File(f"/dev/fd/{target}", read=False, write=True, truncate=False),
            )
    except (cramjam.DecompressionError, OSError) as error:
        errors.append(str(error))
    finally:
        os.close(target)
