"""Compression of batches: the codec of each id, and both directions of each codec, bounded.

gzip is zlib's, which takes a limit on its output; snappy, lz4 and zstd are cramjam's. The framing
around snappy's and lz4's blocks is handled here: kraftwire.records.snappy and
kraftwire.records.lz4.

Source: Kafka's `CompressionType` and the classes of its package `compress`.
"""

from __future__ import annotations

import zlib
from io import BytesIO

from kraftwire.errors import UsageError, WireError
from kraftwire.records import lz4, snappy
from kraftwire.records.decompression_limit import BombError
from kraftwire.records.limits import RECORDS_RATIO_MAX, RECORDS_SIZE_FREE, RECORDS_SIZE_MAX

__all__ = ["CODEC_MASK", "NAMES", "codec_id", "compress", "decompress", "size_limit"]

# The bits of a batch's attributes that hold the codec's id.
CODEC_MASK = 0x07

# Name by id. Ids without a codec have a name too, because the header is still readable.
NAMES = ("none", "gzip", "snappy", "lz4", "zstd", "unknown(5)", "unknown(6)", "unknown(7)")
_KNOWN = 5

_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_LEVELS = range(-1, 10)
_LEVELS = range(-(2**31), 2**31)
_GZIP_WINDOW_BITS = 31

# zlib copies the input that it does not use, so a stream of many tiny members must not be passed
# whole for each of them.
_GZIP_STEP = 1024
_GZIP_STEP_GROWTH = 4
_GZIP_PART_BYTES = 1024 * 1024

# zstd streams need not declare their content size, so the first guess is a multiple of the input
# and each further one a multiple of the last.
_GUESS_MIN = 64 * 1024
_GUESS_RATIO = 8
_GUESS_GROWTH = 4


def codec_id(name: str) -> int:
    """Return the id of a codec. Raises: UsageError, listing the names, for an unknown name."""
    if name not in NAMES[:_KNOWN]:
        raise UsageError(f"no compression {name!r}; there are {', '.join(NAMES[:_KNOWN])}")
    return NAMES.index(name)


def size_limit(compressed_size: int) -> int:
    """Return the size to which `compressed_size` bytes may expand."""
    return min(RECORDS_SIZE_MAX, RECORDS_SIZE_FREE + RECORDS_RATIO_MAX * compressed_size)


def decompress(codec: int, data: bytes | memoryview, *, limit: int | None = None) -> bytes:
    """Decompress the records of a batch; `limit` bounds the result (by default `size_limit`).

    Raises: WireError on an unknown codec, damaged data or a result beyond the limit.
    """
    if not 0 <= codec < _KNOWN:
        raise WireError(
            "unknown compression codec", expected=f"0 to {_KNOWN - 1}", found=str(codec)
        )
    if codec == 0:
        return bytes(data)
    if limit is None:
        limit = size_limit(len(data))
    reader = (_gunzip, snappy.decompress, lz4.decompress, _unzstd)[codec - 1]
    return reader(data, limit)


def compress(codec: int, data: bytes | memoryview, *, level: int | None = None) -> bytes:
    """Compress the records of a batch in a form that every Kafka client reads.

    `level` is the codec's own scale, for gzip (-1 to 9) and zstd only. Raises: UsageError for an
    unknown codec or level.
    """
    if not 0 <= codec < _KNOWN:
        raise UsageError(f"no compression codec {codec}; there are 0 to {_KNOWN - 1}")
    if codec == 0:
        return bytes(data)
    levels = _GZIP_LEVELS if codec == 1 else _LEVELS
    if level is not None and (not isinstance(level, int) or level not in levels):
        raise UsageError(
            f"compression level {level!r:.60}: expected {levels.start} to {levels.stop - 1}"
        )
    if codec == 1:
        return zlib.compress(data, -1 if level is None else level, _GZIP_WINDOW_BITS)
    if codec == 2:
        return snappy.compress(data)
    if codec == 3:
        return lz4.compress(data)
    import cramjam

    return bytes(cramjam.zstd.compress(data, level))


def _gunzip(data: bytes | memoryview, limit: int) -> bytes:
    """Return all members of a gzip stream; like Java's reader, ignore what follows the last."""
    view = memoryview(data)
    out = BytesIO()
    position = 0
    while True:
        position = _gunzip_member(view, position, out, limit)
        if view[position : position + len(_GZIP_MAGIC)] != _GZIP_MAGIC:
            return out.getvalue()


def _gunzip_member(view: memoryview, position: int, out: BytesIO, limit: int) -> int:
    """Decompress one member and append it to `out`; return the position after the member."""
    member = zlib.decompressobj(_GZIP_WINDOW_BITS)
    step = _GZIP_STEP
    while not member.eof:
        left: bytes | memoryview = view[position : position + step]
        if not left:
            raise WireError("damaged gzip data: it is cut", expected="a trailer", found="the end")
        try:
            while left:
                part = member.decompress(left, min(limit + 1 - out.tell(), _GZIP_PART_BYTES))
                if out.tell() + len(part) > limit:
                    raise _too_large(view, "gzip", limit)
                out.write(part)
                position += len(left) - len(member.unconsumed_tail)
                left = member.unconsumed_tail
        except zlib.error as error:
            raise WireError(f"damaged gzip data: {error}") from None
        position -= len(member.unused_data)
        step = min(step * _GZIP_STEP_GROWTH, _GZIP_PART_BYTES)
    return position


def _unzstd(data: bytes | memoryview, limit: int) -> bytes:
    """Return all frames of a zstd stream."""
    import cramjam

    guess = min(limit, max(_GUESS_MIN, len(data) * _GUESS_RATIO))
    while True:
        out = BytesIO()
        # A BytesIO returns its bytes without a copy.
        out.seek(guess - 1)
        out.write(b"\x00")
        try:
            with out.getbuffer() as room:
                size = cramjam.zstd.decompress_into(data, room)
            out.truncate(size)
            return out.getvalue()
        except cramjam.DecompressionError as error:
            # Only the error text of Rust's standard library shows that the buffer was too small.
            if "whole buffer" not in str(error):
                raise WireError(f"damaged zstd data: {error}") from None
        if guess == limit:
            raise _too_large(data, "zstd", limit)
        guess = min(limit, guess * _GUESS_GROWTH)


def _too_large(data: bytes | memoryview, name: str, limit: int) -> BombError:
    return BombError(
        f"the {name} data of a batch expands too far",
        expected=f"at most {limit} bytes from {len(data)}",
        found="more",
    )
