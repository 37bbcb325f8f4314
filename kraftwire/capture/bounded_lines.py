"""Lines of a stream in bounded memory: what is too long is skipped, not kept."""

from __future__ import annotations

# Lines are read in pieces of this size; nearly every line is one piece.
LINE_READ_BYTES = 64 * 1024

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO


def read_lines(source: BinaryIO, limit: int) -> Iterator[bytes | bytearray | None]:
    """The lines with their ends; None for one of more than `limit` bytes."""
    while line := source.readline(LINE_READ_BYTES):
        yield line if line.endswith(b"\n") else _rest(source, line, limit)


def _rest(source: BinaryIO, first: bytes, limit: int) -> bytearray | None:
    """Return a line of which one read got only the `first` part; None if it is too long."""
    line: bytearray | None = bytearray(first)
    piece = first
    while not piece.endswith(b"\n") and (piece := source.readline(LINE_READ_BYTES)):
        if line is not None:
            line += piece
            if len(line) > limit:
                line = None
    return line
