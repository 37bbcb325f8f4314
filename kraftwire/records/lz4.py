"""LZ4 frames as Kafka writes and reads them.

Layout: magic, flags, block descriptor, optional content size, a checksum byte of the header; then
blocks, each with its size as a little-endian 32-bit integer whose high bit says "stored as is",
until a size of zero. Blocks are independent of each other.

The checksums inside a frame are not verified: the batch's CRC covers the same bytes, and clients
of magic 0 computed the header's checksum over the wrong bytes.

Source: Kafka's `Lz4BlockInputStream` and `Lz4BlockOutputStream`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from io import BytesIO

from kraftwire.errors import WireError
from kraftwire.records.decompression_limit import BombError

__all__ = ["compress", "decompress"]

_MAGIC = b"\x04\x22\x4d\x18"
_SIZE = struct.Struct("<I")
_STORED = 0x80000000
_END_MARK = bytes(4)

# Version 1, independent blocks, no checksums, no content size; blocks of 64 KiB; the checksum.
_HEADER = _MAGIC + b"\x60\x40\x82"
_BLOCK_SIZE = 64 * 1024
_HEADER_SIZE_MIN = len(_HEADER)

_VERSION_SHIFT = 6
_INDEPENDENT = 0x20
_BLOCK_CHECKSUM = 0x10
_CONTENT_SIZE = 0x08
_CHECKSUM_SIZE = 4
_CONTENT_SIZE_SIZE = 8

# Block descriptor 4 to 7: 64 KiB, 256 KiB, 1 MiB, 4 MiB.
_BLOCK_SIZE_CODES = range(4, 8)


def compress(data: bytes | memoryview) -> bytes:
    """Compress into one frame."""
    import cramjam

    view = memoryview(data)
    out = bytearray(_HEADER)
    for start in range(0, len(view), _BLOCK_SIZE):
        block = view[start : start + _BLOCK_SIZE]
        packed = bytes(cramjam.lz4.compress_block(block, store_size=False))
        if len(packed) < len(block):
            out += _SIZE.pack(len(packed))
            out += packed
        else:
            out += _SIZE.pack(len(block) | _STORED)
            out += block
    out += _END_MARK
    return bytes(out)


def decompress(data: bytes | memoryview, limit: int) -> bytes:
    """Decompress a frame; like Java's reader, ignore what follows the frame.

    Raises: WireError on damage or a result beyond the limit.
    """
    import cramjam

    view = memoryview(data)
    position, block_size, has_checksums = _header(view)
    room = bytearray(block_size)
    out = BytesIO()
    for block, is_stored in _blocks(view, position, has_checksums=has_checksums):
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


def _header(view: memoryview) -> tuple[int, int, bool]:
    """Return where the blocks begin, their size, and whether checksums follow them."""
    if view[:4] != _MAGIC or len(view) < _HEADER_SIZE_MIN:
        raise WireError(
            "damaged lz4 data: no frame", expected=_MAGIC.hex(), found=bytes(view[:7]).hex()
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


def _blocks(
    view: memoryview, position: int, *, has_checksums: bool
) -> Iterator[tuple[memoryview, bool]]:
    """Yield the blocks of a frame, each with whether it is stored as is."""
    trailer = _CHECKSUM_SIZE if has_checksums else 0
    while True:
        start = position + _SIZE.size
        if start > len(view):
            raise WireError(
                "damaged lz4 data: the frame is cut",
                expected="an end mark",
                found=f"{max(0, len(view) - position)} bytes",
            )
        (word,) = _SIZE.unpack_from(view, position)
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
