"""Compression of batches: the codec of each id, and both directions of each codec, bounded.

gzip is zlib's, which takes a limit on its output; snappy, lz4 and zstd are cramjam's. The framing
around snappy's and lz4's blocks is handled here.

Snappy is as Kafka's Java client writes it: a header of 16 bytes (magic, version 1, lowest
compatible version 1), then blocks, each with its compressed size as a big-endian 32-bit integer. A
new header may come between blocks if streams were concatenated. Data without the header is one raw
block, as other clients wrote.

An LZ4 frame is magic, flags, block descriptor, optional content size and a checksum byte of the
header; then blocks, each with its size as a little-endian 32-bit integer whose high bit says
"stored as is", until a size of zero. Blocks are independent of each other. The checksums inside a
frame are not verified: the batch's CRC covers the same bytes, and clients of magic 0 computed the
header's checksum over the wrong bytes.

Source: Kafka's `CompressionType`, `Lz4BlockInputStream` and `Lz4BlockOutputStream`; xerial's
`SnappyInputStream` and `SnappyOutputStream`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from io import BytesIO

from kraftwire.errors import UsageError, WireError
from kraftwire.records.limits import (
    RECORDS_RATIO_MAX,
    RECORDS_SIZE_FREE,
    RECORDS_SIZE_MAX,
    BombError,
)
from kraftwire.wire.varint import read_uvarint

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

_SNAPPY_MAGIC = b"\x82SNAPPY\x00"
_SNAPPY_HEADER = _SNAPPY_MAGIC + struct.pack(">ii", 1, 1)
_SNAPPY_SIZE = struct.Struct(">i")

# The block size of the Java client.
_SNAPPY_BLOCK_SIZE = 32 * 1024

# The densest element, a copy, is two bytes and stands for at most 64; so a block that announces
# more than this is damaged, and no buffer is made for it.
_SNAPPY_RATIO_MAX = 32

_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_SIZE = struct.Struct("<I")
_STORED = 0x80000000
_END_MARK = bytes(4)

# Version 1, independent blocks, no checksums, no content size; blocks of 64 KiB; the checksum.
_LZ4_HEADER = _LZ4_MAGIC + b"\x60\x40\x82"
_LZ4_BLOCK_SIZE = 64 * 1024
_HEADER_SIZE_MIN = len(_LZ4_HEADER)

_VERSION_SHIFT = 6
_INDEPENDENT = 0x20
_BLOCK_CHECKSUM = 0x10
_CONTENT_SIZE = 0x08
_CHECKSUM_SIZE = 4
_CONTENT_SIZE_SIZE = 8

# Block descriptor 4 to 7: 64 KiB, 256 KiB, 1 MiB, 4 MiB.
_BLOCK_SIZE_CODES = range(4, 8)


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
    reader = (_gunzip, _unsnappy, _unlz4, _unzstd)[codec - 1]
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
        return _snappy(data)
    if codec == 3:
        return _lz4(data)
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


def _snappy(data: bytes | memoryview) -> bytes:
    """Compress into xerial's framing."""
    import cramjam

    view = memoryview(data)
    out = bytearray(_SNAPPY_HEADER)
    for start in range(0, len(view), _SNAPPY_BLOCK_SIZE):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _SNAPPY_BLOCK_SIZE]))
        out += _SNAPPY_SIZE.pack(len(block))
        out += block
    return bytes(out)


def _unsnappy(data: bytes | memoryview, limit: int) -> bytes:
    """Decompress either form. Raises: WireError on damage or a result beyond the limit."""
    import cramjam

    view = memoryview(data)
    total = sum(map(_announced_size, _snappy_blocks(view)))
    if total > limit:
        raise BombError(
            "the snappy data of a batch expands too far",
            expected=f"at most {limit} bytes from {len(view)}",
            found=f"{total} announced",
        )
    out = BytesIO()
    if total:
        out.seek(total - 1)
        out.write(b"\x00")
    position = 0
    with out.getbuffer() as room:
        for block in _snappy_blocks(view):
            try:
                position += cramjam.snappy.decompress_raw_into(block, room[position:])
            except cramjam.DecompressionError as error:
                raise WireError(f"damaged snappy data: {error}") from None
    return out.getvalue()


def _snappy_blocks(view: memoryview) -> Iterator[memoryview]:
    """Yield the compressed blocks."""
    if view[: len(_SNAPPY_MAGIC)] != _SNAPPY_MAGIC:
        yield view
        return
    position = 0
    while position < len(view):
        if view[position : position + len(_SNAPPY_MAGIC)] == _SNAPPY_MAGIC:
            position += len(_SNAPPY_HEADER)
            if position > len(view):
                raise WireError("damaged snappy data: the header of the framing is cut")
            continue
        start = position + _SNAPPY_SIZE.size
        size = _SNAPPY_SIZE.unpack_from(view, position)[0] if start <= len(view) else -1
        if not 0 <= size <= len(view) - start:
            raise WireError(
                "damaged snappy data: a block leads outside",
                expected=f"a size of 0 to {max(0, len(view) - start)}",
                found=str(size) if start <= len(view) else f"{len(view) - position} bytes of it",
            )
        yield view[start : start + size]
        position = start + size


def _announced_size(block: memoryview) -> int:
    """Return the size of a block's contents, which precedes them."""
    try:
        size, _ = read_uvarint(block, 0)
    except WireError as error:
        raise WireError(f"damaged snappy data: no size of a block: {error.problem}") from None
    if size > len(block) * _SNAPPY_RATIO_MAX:
        raise WireError(
            "damaged snappy data: a block announces more than it can hold",
            expected=f"at most {len(block) * _SNAPPY_RATIO_MAX} bytes",
            found=str(size),
        )
    return size


def _lz4(data: bytes | memoryview) -> bytes:
    """Compress into one frame."""
    import cramjam

    view = memoryview(data)
    out = bytearray(_LZ4_HEADER)
    for start in range(0, len(view), _LZ4_BLOCK_SIZE):
        block = view[start : start + _LZ4_BLOCK_SIZE]
        packed = bytes(cramjam.lz4.compress_block(block, store_size=False))
        if len(packed) < len(block):
            out += _LZ4_SIZE.pack(len(packed))
            out += packed
        else:
            out += _LZ4_SIZE.pack(len(block) | _STORED)
            out += block
    out += _END_MARK
    return bytes(out)


def _unlz4(data: bytes | memoryview, limit: int) -> bytes:
    """Decompress a frame; like Java's reader, ignore what follows the frame.

    Raises: WireError on damage or a result beyond the limit.
    """
    import cramjam

    view = memoryview(data)
    position, block_size, has_checksums = _lz4_header(view)
    room = bytearray(block_size)
    out = BytesIO()
    for block, is_stored in _lz4_blocks(view, position, has_checksums=has_checksums):
        if is_stored:
            part = block
        else:
            try:
                size = cramjam.lz4.decompress_block_into(block, room)
            except cramjam.DecompressionError as error:
                raise WireError(f"damaged lz4 data: {error}") from None
            part = memoryview(room)[:size]
        if len(part) > min(block_size, limit - out.tell()):
            raise BombError(
                "the lz4 data of a batch expands too far",
                expected=f"at most {limit} bytes from {len(view)}, {block_size} from a block",
                found="more",
            )
        out.write(part)
    return out.getvalue()


def _lz4_header(view: memoryview) -> tuple[int, int, bool]:
    """Return where the blocks begin, their size, and whether checksums follow them."""
    if view[:4] != _LZ4_MAGIC or len(view) < _HEADER_SIZE_MIN:
        raise WireError(
            "damaged lz4 data: no frame", expected=_LZ4_MAGIC.hex(), found=bytes(view[:7]).hex()
        )
    flags, descriptor = view[4], view[5]
    if flags >> _VERSION_SHIFT != 1 or not flags & _INDEPENDENT:
        raise WireError(
            "lz4 frame of a kind that Kafka does not read",
            expected="version 1, independent blocks",
            found=f"flags 0x{flags:02x}",
        )
    code = descriptor >> 4 & 0x07
    if code not in _BLOCK_SIZE_CODES:
        raise WireError("damaged lz4 data: block size", expected="4 to 7", found=str(code))
    start = _HEADER_SIZE_MIN + (_CONTENT_SIZE_SIZE if flags & _CONTENT_SIZE else 0)
    return start, 1 << 2 * code + 8, bool(flags & _BLOCK_CHECKSUM)


def _lz4_blocks(
    view: memoryview, position: int, *, has_checksums: bool
) -> Iterator[tuple[memoryview, bool]]:
    """Yield the blocks of a frame, each with whether it is stored as is."""
    trailer = _CHECKSUM_SIZE if has_checksums else 0
    while True:
        start = position + _LZ4_SIZE.size
        if start > len(view):
            raise WireError(
                "damaged lz4 data: the frame is cut",
                expected="an end mark",
                found=f"{max(0, len(view) - position)} bytes",
            )
        (word,) = _LZ4_SIZE.unpack_from(view, position)
        if word == 0:
            return
        size = word & ~_STORED
        position = start + size + trailer
        if position > len(view):
            raise WireError(
                "damaged lz4 data: a block leads outside",
                expected=f"at most {len(view) - start} bytes",
                found=str(size + trailer),
            )
        yield view[start : start + size], bool(word & _STORED)
