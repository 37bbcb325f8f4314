"""Zstandard as a stream."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from typing import IO, cast

from kraftwire.decode.capture.xz import Packed, ensure_window
from kraftwire.decode.limits import WINDOW_BYTES_FREE, ZSTD_WINDOW_MAX

__all__ = ["ZstdPipe", "window_size"]

_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = b"\x2a\x4d\x18"
_DICTIONARY_ID_SIZES = (0, 1, 2, 4)
_CONTENT_SIZE_SIZES = (0, 2, 4, 8)
_REPEATED = 1
_FRAME_HEADER_SIZE_MAX = 18


# How the library says that its input ends too early.
_CUT = "incomplete frame"


class ZstdPipe:
    """Zstandard as a stream: the library unpacks from file to file only, so the target is a pipe.

    The packed bytes are copied to a temporary file, because the library opens its input for
    writing as well, which captures do not always allow and which would keep a pipe from ending.
    """

    def __init__(self, packed: Packed, packed_size: int = 0) -> None:
        self._errors: list[str] = []
        copy = tempfile.TemporaryFile()  # noqa: SIM115 (the thread closes it)
        shutil.copyfileobj(cast("IO[bytes]", packed), copy)
        self._packed_size = max(copy.tell(), packed_size)
        window = window_size(copy)
        if window > ZSTD_WINDOW_MAX:
            copy.close()
            raise OSError("it claims a window that is too large: unpack it beforehand")
        self._is_large = window > WINDOW_BYTES_FREE
        self._unpacked = 0
        copy.seek(0)
        self._output, target = os.pipe()
        # The thread knows nothing of this object: else it would keep alive what it waits for.
        arguments = (copy, target, self._errors)
        threading.Thread(target=_unpack, args=arguments, daemon=True).start()

    def read(self, size: int) -> bytes:
        """The next unpacked bytes. Raises: EOFError where the input is cut off, OSError where it is
        damaged.
        """
        data = os.read(self._output, size)
        if not data and self._errors:
            text = self._errors[0]
            raise EOFError(text) if _CUT in text else OSError(text)
        self._unpacked += len(data)
        if self._is_large:
            ensure_window(self._unpacked, self._packed_size)
        return data

    def close(self) -> None:
        """Stop reading; the thread then fails to write and ends."""
        if self._output >= 0:
            os.close(self._output)
            self._output = -1

    def __del__(self) -> None:
        self.close()


def _unpack(packed: IO[bytes], target: int, errors: list[str]) -> None:
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


def window_size(file: IO[bytes]) -> int:
    """The largest window that any frame of a file claims; 0 where none can be read.

    Source: RFC 8878, section 3.1.1.
    """
    size = position = 0
    while True:
        file.seek(position)
        head = file.read(_FRAME_HEADER_SIZE_MAX)
        if len(head) >= 8 and head[1:4] == _SKIPPABLE and head[0] & 0xF0 == 0x50:
            position += 8 + int.from_bytes(head[4:8], "little")
            continue
        if len(head) < 6 or head[:4] != _MAGIC:
            return size
        window, start = _frame_header(head)
        size = max(size, window)
        position = _after_blocks(file, position + start) + (4 if head[4] & 0x04 else 0)


def _frame_header(head: bytes) -> tuple[int, int]:
    """The window of a frame, and where its blocks begin."""
    flags = head[4]
    is_single = bool(flags & 0x20)
    window = 0
    if not is_single:
        base = 1 << 10 + (head[5] >> 3)
        window = base + base // 8 * (head[5] & 0x07)
    at = 5 + (not is_single) + _DICTIONARY_ID_SIZES[flags & 0x03]
    content = _CONTENT_SIZE_SIZES[flags >> 6] or int(is_single)
    if is_single:
        window = int.from_bytes(head[at : at + content], "little")
    return window, at + content


def _after_blocks(file: IO[bytes], position: int) -> int:
    """Where the last block of a frame ends; at the end of the file where it is cut."""
    while True:
        file.seek(position)
        header = file.read(3)
        if len(header) < 3:
            return position
        word = int.from_bytes(header, "little")
        position += 3 + (1 if word >> 1 & 3 == _REPEATED else word >> 3)
        if word & 1:
            return position
