"""Ranges of a segment that can be decoded independently.

A cut is made only between two adjacent batches with correct CRCs, on the chain of lengths from the
start of the file. So a scan of the whole file passes through every cut, and the ranges together
give the same result as the whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kraftwire.decode.files.scan import BatchHeader, crc_of, read_header
from kraftwire.decode.files.source import ByteSource, open_source
from kraftwire.errors import StorageError
from kraftwire.records.header import HEADER_SIZE

__all__ = ["SPLIT_BYTES", "chain", "plan"]

SPLIT_BYTES = 64 * 1024 * 1024


def plan(
    path: str | Path, split: int = SPLIT_BYTES, start: int = 0, end: int | None = None
) -> list[tuple[int, int]]:
    """Return ranges `[start, end)` of a file, in order, that together cover it.

    Each is about `split` bytes; there is one range for a file without batches, for a compressed
    file (it is unpacked each time it is opened), and for everything after the first damage to the
    chain. With `start` and `end`, which are borders of batches, only what lies between them.
    """
    path = Path(path)
    try:
        with open_source(path) as source:
            size = source.size
            is_packed = size != path.stat().st_size
            end = size if end is None else min(size, end)
            if not source.kind.has_batches or is_packed or end - start <= split:
                return [(start, end)]
            cuts = list(_cuts(source, split, start, end))
    except (OSError, StorageError):
        return [(0, 0)]
    return list(zip([start, *cuts], [*cuts, end], strict=True))


def chain(source: ByteSource, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Yield batches by their lengths alone, up to the first impossible header."""
    while (header := read_header(source.read(position, HEADER_SIZE))) is not None:
        if position + header.size > source.size:
            return
        yield position, header
        position += header.size


def _cuts(source: ByteSource, split: int, start: int, end: int) -> Iterator[int]:
    wanted = start + split
    before: tuple[int, BatchHeader] | None = None
    for position, header in chain(source, start):
        is_wanted = wanted <= position < end - split // 2
        ends = (before, (position, header))
        if is_wanted and all(one is not None and _is_sound(source, *one) for one in ends):
            yield position
            wanted = position + split
        before = position, header


def _is_sound(source: ByteSource, position: int, header: BatchHeader) -> bool:
    data = source.read(position, header.size)
    return len(data) == header.size and crc_of(data, header.magic) == header.crc
