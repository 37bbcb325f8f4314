"""How far a partition's folder was read: up to a batch that can be recognized.

A byte position alone is not safe: a truncated log grows again, and other bytes take its place.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kraftwire.decode.files.scan import BatchHeader, read_header
from kraftwire.errors import LogMovedError
from kraftwire.records.header import HEADER_SIZE


@dataclass(frozen=True, slots=True)
class BatchMark:
    """The last batch that was read.

    `next_offset` follows its last record; `epoch` and `crc` are from its header; it is in the
    segment with base offset `segment`, from `position` to `end`.
    """

    next_offset: int
    epoch: int
    crc: int
    segment: int
    position: int
    end: int

    @classmethod
    def of(cls, segment: int, position: int, header: BatchHeader) -> BatchMark:
        """Return the mark of a batch."""
        end = position + header.size
        following = header.last_offset + 1
        return cls(following, header.leader_epoch, header.crc, segment, position, end)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> BatchMark:
        """Return the mark that `to_json` wrote."""
        return cls(**data)

    def to_json(self) -> dict[str, int]:
        """Return its numbers by name."""
        return asdict(self)


def segment_path(folder: Path, base_offset: int) -> Path:
    """Return the path of the segment with a base offset."""
    return folder / f"{base_offset:020}.log"


def check(path: Path, mark: BatchMark) -> None:
    """Make sure that the batch of a mark is still where it was.

    Raises: LogMovedError with what was expected and what was found; FileNotFoundError.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        head = os.pread(file.fileno(), HEADER_SIZE, mark.position)
    header = read_header(memoryview(head))
    found = None if header is None else BatchMark.of(mark.segment, mark.position, header)
    if found == mark and mark.end <= size:
        return
    raise LogMovedError(
        f"this was read up to offset {mark.next_offset}, and its last batch {_description(mark)}; "
        f"{_instead(found, mark, size)}: the log was truncated or rewritten",
        file=str(path),
        position=mark.position,
    )


def _description(mark: BatchMark) -> str:
    return f"had epoch {mark.epoch}, CRC {mark.crc} and {mark.end - mark.position} bytes"


def _instead(found: BatchMark | None, mark: BatchMark, size: int) -> str:
    if size < mark.end:
        return f"the file now has {size} bytes, and that batch ended at {mark.end}"
    if found is None:
        return "there is no batch there now"
    return f"the one there now ends before offset {found.next_offset} and {_description(found)}"
