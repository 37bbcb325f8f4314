"""What is read of a segment: ranges that can be decoded independently, and the batches in them.

Owns the buffers of batches that are read at once.

A range ends only between two adjacent batches with correct CRCs, on the chain of lengths from the
start of the file. So a scan of the whole file passes through every cut, and the ranges together
give the same result as the whole. Valid batches of the current format are cut by columns;
everything else is left to the scanner of `kraftwire.decode.files`, one step at a time, so every
byte ends up in a batch or in a finding, and both ways of reading a log agree on which.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kraftwire.decode.files.report import FindingSink
from kraftwire.decode.files.scan import BatchHeader, FoundBatch, Scanner, crc_of, read_header
from kraftwire.decode.files.source import ByteSource, open_source
from kraftwire.errors import StorageError
from kraftwire.records.header import HEADER_SIZE, MAGIC
from kraftwire.spark.columns import Batches, cut

_MAGICS = ((b"\x04\x22\x4d\x18", "lz4"),)

UNREAD_PACKINGS = tuple(name for _, name in _MAGICS)

CHUNK_BYTES = 8 * 1024 * 1024

# After damage, a chunk starts this small and doubles: large reads for each step of the scan would
# take forever on a file that is damaged everywhere.
_CHUNK_BYTES_MIN = 1024 * 1024
SPLIT_BYTES = 64 * 1024 * 1024


def packing_of(head: bytes) -> str | None:
    """Return the name of the compression that a file begins with, None for any other file."""
    return next((name for magic, name in _MAGICS if head.startswith(magic)), None)


@dataclass(frozen=True)
class BatchPiece:
    """Batches of a file: `batches` with correct CRCs, or `found`, one of any kind.

    `position` is the file position of the buffer's first byte.
    """

    position: int
    batches: Batches | None
    found: FoundBatch | None = None


def pieces_of(
    source: ByteSource,
    sink: FindingSink,
    start: int = 0,
    end: int | None = None,
    chunk: int = CHUNK_BYTES,
) -> Iterator[BatchPiece]:
    """Yield the batches that begin in `[start, end)`, in order; a batch must begin at `start`."""
    scanner = Scanner(source, sink)
    end = source.size if end is None else min(end, source.size)
    position, size = start, chunk
    while position < end:
        header = read_header(source.read(position, HEADER_SIZE))
        if header is not None and header.magic == MAGIC:
            buffer, at = source.locate(position, size)
            sound = _sound(cut(buffer, at, at + end - position))
            if len(sound):
                yield BatchPiece(position - at, sound)
                position += sound.end - at
                size = min(chunk, 2 * size)
                continue
        scanner.position = position
        found = scanner.step()
        position = scanner.position
        if found is not None:
            yield BatchPiece(found.position - found.start, None, found)
        size = min(chunk, _CHUNK_BYTES_MIN)


def _sound(batches: Batches) -> Batches:
    """Return the batches before the first with a wrong CRC."""
    is_wrong = ~batches.is_valid
    return batches.first(int(is_wrong.argmax())) if is_wrong.any() else batches


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
