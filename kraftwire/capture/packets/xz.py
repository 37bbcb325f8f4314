"""Xz as a stream, in bounded memory whatever dictionary the file claims.

A dictionary takes as much memory as it is claimed to have, but not before as much was unpacked. So
a large one is allowed as long as little was unpacked, or the file is large itself.
"""

from __future__ import annotations

import lzma
from typing import Protocol

from kraftwire.capture.limits import WINDOW_BYTES_FREE, WINDOW_BYTES_MAX, WINDOW_BYTES_RATIO
from kraftwire.limits import CAPTURE_READ_BYTES

__all__ = ["Packed", "XzReader", "ensure_window"]

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
