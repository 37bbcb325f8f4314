"""Compressed files as streams, in bounded memory whatever a file claims about itself.

Gzip, bzip2, xz, Zstandard, and the first file of a zip archive, which must be the only one.
Source of zip: APPNOTE.TXT of PKWARE.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import struct
import sys
import zlib
from typing import Any, Protocol, cast

from kraftwire.limits import CAPTURE_READ_BYTES

# The dictionary of an xz file, or the window of a zstd file, may have WINDOW_BYTES_FREE: xz -6 and
# zstd -19 take 8 MiB. A larger one, up to what xz -9 takes, is filled as far as the file was
# unpacked, which may be WINDOW_BYTES_FREE and WINDOW_BYTES_RATIO for each of its bytes.
WINDOW_BYTES_FREE = 16 * 1024 * 1024
WINDOW_BYTES_RATIO = 6
WINDOW_BYTES_MAX = 64 * 1024 * 1024
ZSTD_WINDOW_MAX = 128 * 1024 * 1024

# The decoder's memory apart from the dictionary.
_OVERHEAD = 1024 * 1024

# Part of an error text of the standard library.
_CUT = "Compressed file ended before the end-of-stream marker was reached"


class Packed(Protocol):
    """The stream that packed bytes are read from."""

    def read(self, size: int, /) -> bytes | None:
        """Return the next bytes, at most as many as wanted; none at the end."""


class Unpacked(Protocol):
    """A stream of unpacked bytes."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, at most as many as wanted; none at the end."""

    def close(self) -> None:
        """Release the resources that reading takes."""


def ensure_window(unpacked: int, packed: int) -> None:
    """Refuse to continue with a large dictionary where little input unpacks to much.

    Raises: OSError, which says what may be done instead.
    """
    if unpacked > WINDOW_BYTES_FREE + WINDOW_BYTES_RATIO * packed:
        raise OSError("its dictionary takes too much memory for its size: unpack it beforehand")


# How many packed bytes a decoder of a stream is fed at first, and how many times more each time.
# A decoder copies what it does not use, and a file may consist of thousands of empty streams.
_FED_FIRST = 1024
_FED_RATIO = 4


class _Feed:
    """The packed bytes of a file, for decoders of one stream after the other.

    `read` counts those that were read from the file.
    """

    def __init__(self, packed: Packed) -> None:
        self.read = 0
        self._packed = packed
        self._block = b""
        self._at = 0
        self._size = _FED_FIRST

    def begin_stream(self, unused: bytes) -> None:
        """Begin another stream, with what the one before has left."""
        self._size = _FED_FIRST
        self._at -= len(unused)
        if self._at < 0:
            self._block, self._at = unused + self._block[self._at + len(unused) :], 0

    def next_piece(self) -> bytes:
        """Return the next bytes to be fed; none at the end."""
        self.peek(1)
        piece = self._block[self._at : self._at + self._size]
        self._at += len(piece)
        self._size = min(self._size * _FED_RATIO, CAPTURE_READ_BYTES)
        return piece

    def peek(self, size: int) -> bytes:
        """Return the next bytes, which stay; fewer than `size` at the end."""
        while len(self._block) - self._at < size:
            more = self._packed.read(CAPTURE_READ_BYTES)
            if not more:
                break
            self.read += len(more)
            self._block, self._at = self._block[self._at :] + more, 0
        return self._block[self._at : self._at + size]


class _Decoder(Protocol):
    """A decoder of the standard library, for one stream."""

    @property
    def eof(self) -> bool:
        """Whether the stream is over."""

    @property
    def needs_input(self) -> bool:
        """Whether it has unpacked all that it was fed."""

    @property
    def unused_data(self) -> bytes:
        """What it was fed beyond the end of the stream."""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Return the next unpacked bytes."""


class _StreamReader:
    """Unpacks the streams of a file, one after the other.

    `packed_size` is the size of the file where it is known, else 0. With a large dictionary
    little input may not unpack to much: see `ensure_window`.
    """

    cut_text = _CUT
    _decoder: _Decoder

    def __init__(self, packed: Packed, packed_size: int = 0) -> None:
        self._feed = _Feed(packed)
        self._packed_size = packed_size
        self._unpacked = 0
        self._is_large = False
        # Whether nothing has come out of this stream, and others were before it.
        self._is_later = False

    def read(self, size: int) -> bytes:
        """Return the next bytes, at most `size`; none at the end.

        Raises: EOFError where the file is cut off, OSError or LZMAError where it is damaged or
        claims too much.
        """
        while not self._decoder.eof or self._next_stream():
            fresh = self._feed.next_piece() if self._decoder.needs_input else b""
            if not fresh and self._decoder.needs_input:
                raise EOFError(self.cut_text)
            data = self._unpack(fresh, size)
            if data is None:
                return b""  # bytes after a stream that do not begin another stream are ignored
            if data:
                self._is_later = False
                self._unpacked += len(data)
                if self._is_large:
                    ensure_window(self._unpacked, max(self._feed.read, self._packed_size))
                return data
        return b""

    def close(self) -> None:
        """Do nothing: the caller owns the file."""

    def _next_stream(self) -> bool:
        """Begin the stream that follows the present one; returns whether there is one."""
        self._feed.begin_stream(self._decoder.unused_data)
        if not self._feed.peek(1):
            return False
        self._is_later = True
        self._begin_stream()
        return True

    def _begin_stream(self) -> None:
        """Make the decoder of a stream."""
        raise NotImplementedError

    def _unpack(self, fresh: bytes, size: int) -> bytes | None:
        """Return the next bytes, which may be none; None if a later stream is none."""
        raise NotImplementedError


class XzReader(_StreamReader):
    """Unpacks the streams of an xz file."""

    def __init__(self, packed: Packed, packed_size: int = 0) -> None:
        super().__init__(packed, packed_size)
        # Fed to this stream before anything came out of the file, to begin again with.
        self._start = bytearray()
        self._begin_stream()

    def _begin_stream(self) -> None:
        self._start.clear()
        window = WINDOW_BYTES_MAX if self._is_large else WINDOW_BYTES_FREE
        self._decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=window + _OVERHEAD)

    def _unpack(self, fresh: bytes, size: int) -> bytes | None:
        if not self._unpacked and not self._is_large:
            self._start += fresh
        try:
            return self._decoder.decompress(fresh, size)
        except lzma.LZMAError as error:
            if "Memory usage limit" not in str(error):
                if self._is_later:
                    return None
                raise
        if self._is_large or self._unpacked:
            raise OSError("it claims a dictionary that is too large: unpack it beforehand")
        self._is_large = True
        fresh = bytes(self._start)
        self._begin_stream()
        return self._unpack(fresh, size)


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


class ZstdReader(_StreamReader):
    """Unpacks the frames of a zstd file.

    Raises: OSError if the first frame claims a window that is too large.
    """

    cut_text = "incomplete frame"

    def __init__(self, packed: Packed, packed_size: int = 0) -> None:
        super().__init__(packed, packed_size)
        self._begin_stream()

    def _begin_stream(self) -> None:
        """Prepare for a frame; the decoder reports what is none, or is cut within its header."""
        head = self._feed.peek(_DESCRIPTOR_END)
        if head.startswith(_MAGIC) and len(head) >= _DESCRIPTOR_END:
            size = _header_size(head[4])
            head = self._feed.peek(size)
            if len(head) >= size:
                self._allow_window(_window_size(head))
        self._decoder = zstd.ZstdDecompressor()

    def _unpack(self, fresh: bytes, size: int) -> bytes:
        try:
            return self._decoder.decompress(fresh, min(size, _PIECE_SIZE))
        except zstd.ZstdError as error:
            raise OSError(str(error).removeprefix(_WHILE)) from error

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


class Bzip2Reader(_StreamReader):
    """Unpacks the streams of a bzip2 file."""

    def __init__(self, packed: Packed) -> None:
        super().__init__(packed)
        self._begin_stream()

    def _begin_stream(self) -> None:
        self._decoder = bz2.BZ2Decompressor()

    def _unpack(self, fresh: bytes, size: int) -> bytes | None:
        try:
            return self._decoder.decompress(fresh, size)
        except OSError:
            if self._is_later:
                return None
            raise


_LOCAL_HEADER = struct.Struct("<4sHHHHHIIIHH")
_MEMBER = b"PK\x03\x04"
_STORED, _DEFLATED = 0, 8
_ENCRYPTED, _SIZE_FOLLOWS = 1, 8
_ZIP64 = 0xFFFFFFFF
# After the bytes of a file that were written before their size was known: a signature, the checksum
# and both sizes, with 64 bits at most.
_DESCRIPTOR_MAX = 24
# The entries that macOS adds about each file and folder.
_OF_MACOS = re.compile(rb"__MACOSX/|(?:.*/)?(?:\._|\.DS_Store$)", re.DOTALL)


class ZipReader:
    """Unpacks the only file of a zip archive, read from its start.

    Folders, and what macOS adds, are passed over. Raises: OSError for what cannot be read, and
    where more files follow; EOFError where the archive is cut off.
    """

    def __init__(self, packed: Packed) -> None:
        self._packed = packed
        self._rest = b""
        self._inflate: zlib._Decompress | None = None
        self._left = 0
        self._crc = self._expected = 0
        self._has_descriptor = self._is_over = False
        self._is_begun = False

    def read(self, size: int) -> bytes:
        """Return the next bytes, at most `size`; none at the end."""
        if not self._is_begun:
            self._is_begun = True
            self._is_over = not self._begin_member()
        while not self._is_over:
            data = self._stored(size) if self._inflate is None else self._inflated(size)
            if data:
                self._crc = zlib.crc32(data, self._crc)
                return data
            self._end()
        return b""

    def close(self) -> None:
        """Do nothing: the caller owns the file."""

    def _begin_member(self) -> bool:
        """Read headers up to that of a file; returns whether there is one."""
        while (head := self._read(_LOCAL_HEADER.size)).startswith(_MEMBER):
            if len(head) < _LOCAL_HEADER.size:
                raise EOFError(_CUT)
            _, _, flags, method, _, _, crc, packed, _, name_size, extra_size = (
                _LOCAL_HEADER.unpack(head)
            )
            name = self._read(name_size)
            self._read(extra_size)
            if name.endswith(b"/") or _OF_MACOS.match(name):
                if flags & _SIZE_FOLLOWS and packed == 0 and method != _STORED:
                    return False
                self._read(packed)
                continue
            if flags & _ENCRYPTED:
                raise OSError("the archive is encrypted: unpack it beforehand")
            if method not in (_STORED, _DEFLATED):
                raise OSError(f"a zip archive with compression method {method}: unpack it")
            if method == _STORED and (flags & _SIZE_FOLLOWS or packed == _ZIP64):
                raise OSError("a zip archive without the size of its file: unpack it")
            self._has_descriptor = bool(flags & _SIZE_FOLLOWS)
            self._expected, self._left = crc, packed
            self._inflate = zlib.decompressobj(-zlib.MAX_WBITS) if method == _DEFLATED else None
            return True
        return False

    def _stored(self, size: int) -> bytes:
        data = self._some(min(size, self._left))
        self._left -= len(data)
        if not data and self._left:
            raise EOFError(_CUT)
        return data

    def _inflated(self, size: int) -> bytes:
        assert self._inflate is not None
        while not self._inflate.eof:
            fresh = self._inflate.unconsumed_tail or self._some(CAPTURE_READ_BYTES)
            data = self._inflate.decompress(fresh, size)
            if data:
                return data
            if not fresh:
                raise EOFError(_CUT)
        self._rest = self._inflate.unused_data + self._rest
        return b""

    def _end(self) -> None:
        """Check the file, and that no other one follows."""
        self._is_over = True
        tail = self._read(_DESCRIPTOR_MAX if self._has_descriptor else len(_MEMBER))
        if not self._has_descriptor and self._crc != self._expected:
            raise OSError("the checksum in the archive is wrong")
        at = tail.find(_MEMBER)
        if at >= 0:
            self._rest = tail[at:] + self._rest
            if self._begin_member():
                raise OSError("the archive holds more than one file: unpack it beforehand")

    def _read(self, size: int) -> bytes:
        """Return the next `size` bytes of the archive, fewer at its end."""
        parts = []
        while size > 0 and (part := self._some(size)):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _some(self, size: int) -> bytes:
        if not self._rest:
            self._rest = self._packed.read(CAPTURE_READ_BYTES) or b""
        data, self._rest = self._rest[:size], self._rest[size:]
        return data


GZIP, BZIP2, XZ, ZSTD, ZIP = b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", _MAGIC, _MEMBER
# Frames of Zstandard that a decoder skips; some programs begin with one.
ZSTD_SKIPPED = tuple(bytes([first]) + b"\x2a\x4d\x18" for first in range(0x50, 0x60))
# The first bytes of compressed files.
PACKED = (GZIP, BZIP2, XZ, ZSTD, *ZSTD_SKIPPED, ZIP)
PACKED_MAGIC_SIZE = max(map(len, PACKED))


def unpack(head: bytes, packed: Packed, packed_size: int = 0) -> Unpacked:
    """Return a reader of a compressed file by its first bytes, which `packed` gives again."""
    if head.startswith(GZIP):
        return cast("Unpacked", gzip.GzipFile(fileobj=io.BufferedReader(_Raw(packed))))
    if head.startswith(BZIP2):
        return Bzip2Reader(packed)
    if head.startswith(XZ):
        return XzReader(packed, packed_size)
    return ZipReader(packed) if head.startswith(ZIP) else ZstdReader(packed, packed_size)


class _Raw(io.RawIOBase):
    """A stream as the standard library wants it."""

    def __init__(self, packed: Packed) -> None:
        self._packed = packed

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        data = self._packed.read(len(buffer)) or b""
        buffer[: len(data)] = data
        return len(data)
