"""Snappy as Kafka's Java client writes it: blocks in the framing of the xerial library.

Layout: a header of 16 bytes (magic, version 1, lowest compatible version 1), then blocks, each
with its compressed size as a big-endian 32-bit integer. A new header may come between blocks if
streams were concatenated. Data without the header is one raw block, as other clients wrote.

Source: xerial's `SnappyInputStream` and `SnappyOutputStream`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from io import BytesIO

from kraftwire.errors import WireError
from kraftwire.records.decompression_limit import BombError
from kraftwire.wire.varint import read_uvarint

__all__ = ["compress", "decompress"]

_MAGIC = b"\x82SNAPPY\x00"
_HEADER = _MAGIC + struct.pack(">ii", 1, 1)
_SIZE = struct.Struct(">i")

# The block size of the Java client.
_BLOCK_SIZE = 32 * 1024

# The densest element, a copy, is two bytes and stands for at most 64; so a block that announces
# more than this is damaged, and no buffer is made for it.
_RATIO_MAX = 32


def compress(data: bytes | memoryview) -> bytes:
    """Compress into xerial's framing."""
    import cramjam

    view = memoryview(data)
    out = bytearray(_HEADER)
    for start in range(0, len(view), _BLOCK_SIZE):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _BLOCK_SIZE]))
        out += _SIZE.pack(len(block))
        out += block
    return bytes(out)


def decompress(data: bytes | memoryview, limit: int) -> bytes:
    """Decompress either form. Raises: WireError on damage or a result beyond the limit."""
    import cramjam

    view = memoryview(data)
    total = sum(map(_announced_size, _blocks(view)))
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
        for block in _blocks(view):
            try:
                position += cramjam.snappy.decompress_raw_into(block, room[position:])
            except cramjam.DecompressionError as error:
                raise WireError(f"damaged snappy data: {error}") from None
    return out.getvalue()


def _blocks(view: memoryview) -> Iterator[memoryview]:
    """Yield the compressed blocks."""
    if view[: len(_MAGIC)] != _MAGIC:
        yield view
        return
    position = 0
    while position < len(view):
        if view[position : position + len(_MAGIC)] == _MAGIC:
            position += len(_HEADER)
            if position > len(view):
                raise WireError("damaged snappy data: the header of the framing is cut")
            continue
        start = position + _SIZE.size
        size = _SIZE.unpack_from(view, position)[0] if start <= len(view) else -1
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
    if size > len(block) * _RATIO_MAX:
        raise WireError(
            "damaged snappy data: a block announces more than it can hold",
            expected=f"at most {len(block) * _RATIO_MAX} bytes",
            found=str(size),
        )
    return size
