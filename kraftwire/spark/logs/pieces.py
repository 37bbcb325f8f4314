"""A segment in pieces: many valid batches at once, or one that had to be judged by itself.

Valid batches of the current format are cut by columns. Everything else is left to the scanner of
`kraftwire.decode.files`, one step at a time, so every byte ends up in a batch or in a finding, and
both ways of reading a log agree on which.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kraftwire.decode.files.report import FindingSink
from kraftwire.decode.files.scan import FoundBatch, Scanner, read_header
from kraftwire.decode.files.source import ByteSource
from kraftwire.records.header import HEADER_SIZE, MAGIC
from kraftwire.spark.columns import Batches, cut

__all__ = ["CHUNK_BYTES", "Piece", "pieces_of"]

CHUNK_BYTES = 8 * 1024 * 1024

# After damage, a chunk starts this small and doubles: large reads for each step of the scan would
# take forever on a file that is damaged everywhere.
_CHUNK_BYTES_MIN = 1024 * 1024


@dataclass(frozen=True)
class Piece:
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
) -> Iterator[Piece]:
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
                yield Piece(position - at, sound)
                position += sound.end - at
                size = min(chunk, 2 * size)
                continue
        scanner.position = position
        found = scanner.step()
        position = scanner.position
        if found is not None:
            yield Piece(found.position - found.start, None, found)
        size = min(chunk, _CHUNK_BYTES_MIN)


def _sound(batches: Batches) -> Batches:
    """Return the batches before the first with a wrong CRC."""
    is_wrong = ~batches.is_valid
    return batches.first(int(is_wrong.argmax())) if is_wrong.any() else batches
