"""Xz and Zstandard as streams, in bounded memory whatever a file claims about itself."""

from __future__ import annotations

import lzma
import sys
from typing import Protocol

from kraftwire.capture.limits import (
    WINDOW_BYTES_FREE,
    WINDOW_BYTES_MAX,
    WINDOW_BYTES_RATIO,
    ZSTD_WINDOW_MAX,
)
from kraftwire.limits import CAPTURE_READ_BYTES

# The decoder's memory apart from the dictionary.
_OVERHEAD = 1024 * 1024

# Part of an error text of the standard library.
_CUT = "Compressed file ended before the end-of-stream marker was reached"


class Packed(Protocol):
    """The stream that packed bytes are read from."""

    def read(self, size: int, /) -> bytes | None:
        """Return the next bytes, at most as many as wanted; none at the end."""


def ensure_window(unpacked: int, packed: int) -> None:
    """Refuse to continue with a large dictionary where little input unpacks to much.

    Raises: OSError, which says what may be done instead.
    """
    if unpacked > WINDOW_BYTES_FREE + WINDOW_BYTES_RATIO * packed:
        raise OSError("its dictionary takes too much memory for its size: unpack it beforehand")


class XzReader:
    """Unpacks the streams of an xz file.

    `packed_size` is the size of the file where it is known, else 0.
    """

    def __init__(self, packed: Packed, packed_size: int = 0) -> None:
        self._packed = packed
        self._packed_size = packed_size
        self._read = self._unpacked = 0
        self._is_large = False
        self._is_later = False
        # Fed before anything came out, to begin again with; and what is to be fed next.
        self._start = self._next = b""
        self._decoder = _decoder(WINDOW_BYTES_FREE)

    def read(self, size: int) -> bytes:
        """Return the next bytes, at most `size`; none at the end.

        Raises: EOFError where the file is cut off, OSError or LZMAError where it is damaged or
        claims too much.
        """
        while True:
            if self._decoder.eof and not self._next_stream():
                return b""
            fresh, self._next = self._next, b""
            if not fresh and self._decoder.needs_input:
                fresh = self._fill()
                if not fresh:
                    raise EOFError(_CUT)
            try:
                data = self._unpack(fresh, size)
            except lzma.LZMAError:
                if self._is_later:
                    return b""  # bytes after a stream that do not begin another stream are ignored
                raise
            if data:
                self._is_later = False
                self._unpacked += len(data)
                if self._is_large:
                    ensure_window(self._unpacked, max(self._read, self._packed_size))
                return data

    def close(self) -> None:
        """Do nothing: the caller owns the file."""

    def _unpack(self, fresh: bytes, size: int) -> bytes:
        if not self._unpacked:
            self._start += fresh
        try:
            return self._decoder.decompress(fresh, size)
        except lzma.LZMAError as error:
            if "Memory usage limit" not in str(error):
                raise
        if self._is_large or self._unpacked:
            raise OSError("it claims a dictionary that is too large: unpack it beforehand")
        self._is_large = True
        self._decoder = _decoder(WINDOW_BYTES_MAX)
        fresh, self._start = self._start, b""
        return self._unpack(fresh, size)

    def _fill(self) -> bytes:
        data = self._packed.read(CAPTURE_READ_BYTES) or b""
        self._read += len(data)
        return data

    def _next_stream(self) -> bool:
        """Begin the stream that follows the present one; returns whether there is one."""
        self._next = self._decoder.unused_data or self._fill()
        if not self._next:
            return False
        self._is_later = True
        self._decoder = _decoder(WINDOW_BYTES_MAX if self._is_large else WINDOW_BYTES_FREE)
        return True


def _decoder(window: int) -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=window + _OVERHEAD)


if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


# The library puts this before the reason.
_WHILE = "Unable to decompress Zstandard data: "

_MAGIC = b"\x28\xb5\x2f\xfd"
_DESCRIPTOR_END = 5
# Unpacked at once: the decoder discards what it has unpacked when it meets damage.
_PIECE_SIZE = 32 * 1024
_DICTIONARY_ID_SIZES = (0, 1, 2, 4)
_CONTENT_SIZE_SIZES = (0, 2, 4, 8)


class ZstdReader:
    """Unpacks the frames of a zstd file.

    `packed_size` is the size of the file where it is known, else 0. Raises: OSError if the first
    frame claims a window that is too large.
    """

    def __init__(self, packed: Packed, packed_size: int = 0) -> None:
        self._packed = packed
        self._packed_size = packed_size
        self._read = self._unpacked = 0
        self._is_large = False
        self._next = b""
        self._decoder = zstd.ZstdDecompressor()
        self._start_frame()

    def read(self, size: int) -> bytes:
        """Return the next bytes, at most `size`; none at the end.

        Raises: EOFError where the file is cut off, OSError where it is damaged or a frame claims
        too much.
        """
        while not self._decoder.eof or self._start_frame():
            fresh, self._next = self._next, b""
            if not fresh and self._decoder.needs_input:
                fresh = self._fill()
                if not fresh:
                    raise EOFError("incomplete frame")
            try:
                data = self._decoder.decompress(fresh, min(size, _PIECE_SIZE))
            except zstd.ZstdError as error:
                raise OSError(str(error).removeprefix(_WHILE)) from error
            if data:
                self._unpacked += len(data)
                if self._is_large:
                    ensure_window(self._unpacked, max(self._read, self._packed_size))
                return data
        return b""

    def close(self) -> None:
        """Do nothing: the caller owns the file."""

    def _fill(self) -> bytes:
        data = self._packed.read(CAPTURE_READ_BYTES) or b""
        self._read += len(data)
        return data

    def _start_frame(self) -> bool:
        """Prepare for the next frame; returns False if there is none.

        The decoder reports what is not a frame, or is cut within its header.
        """
        head = self._decoder.unused_data if self._decoder.eof else b""
        head = self._until(_DESCRIPTOR_END, head)
        if not head:
            return False
        if head.startswith(_MAGIC) and len(head) >= _DESCRIPTOR_END:
            size = _header_size(head[4])
            head = self._until(size, head)
            if len(head) >= size:
                self._allow_window(_window_size(head))
        self._decoder = zstd.ZstdDecompressor()
        self._next = head
        return True

    def _until(self, size: int, head: bytes) -> bytes:
        while len(head) < size and (data := self._fill()):
            head += data
        return head

    def _allow_window(self, window: int) -> None:
        if window > ZSTD_WINDOW_MAX:
            raise OSError("it claims a window that is too large: unpack it beforehand")
        self._is_large = self._is_large or window > WINDOW_BYTES_FREE


def _header_size(descriptor: int) -> int:
    """The size of a frame header, by its fifth byte. Source: RFC 8878, section 3.1.1.1."""
    is_single = bool(descriptor & 0x20)
    content = _CONTENT_SIZE_SIZES[descriptor >> 6] or int(is_single)
    return _DESCRIPTOR_END + (not is_single) + _DICTIONARY_ID_SIZES[descriptor & 0x03] + content


def _window_size(head: bytes) -> int:
    """The window that a frame claims: all of its content where that is one segment.

    Source: RFC 8878, section 3.1.1.1.
    """
    if head[4] & 0x20:
        content = _CONTENT_SIZE_SIZES[head[4] >> 6] or 1
        end = _header_size(head[4])
        return int.from_bytes(head[end - content : end], "little")
    base = 1 << 10 + (head[5] >> 3)
    return base + base // 8 * (head[5] & 0x07)
