"""What the names of files and folders in a log directory say: offsets, suffixes, partitions.

Names only; nothing here opens a file.

Source: Kafka's `LogFileUtils`, `UnifiedLog` (folder names), `Snapshots` (checkpoint names) and
`RemoteIndexCache` (names of fetched indexes).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["FileName", "Partition", "parse_file_name", "partition_of"]

# Kafka renames a file before it deletes it, while it swaps cleaned segments in, and while it
# writes a snapshot or a state file.
_STATES = (".deleted", ".cleaned", ".swap", ".part", ".tmp")
_COMPRESSIONS = (".gz", ".xz", ".zst")
# The second form is the cache of indexes of tiered segments: base offset, then the segment's id.
_SEGMENT_FILE = re.compile(
    r"(\d{20})(?:_[\w-]{22})?\.(log|index|timeindex|txnindex|snapshot)", re.ASCII
)
_SNAPSHOT = re.compile(r"(\d{20})-(\d{10})\.checkpoint", re.ASCII)
_PARTITION = re.compile(
    r"(.+)-(\d+)(?:\.[0-9a-fA-F]{32}-(?:delete|future|stray))?", re.ASCII | re.DOTALL
)


@dataclass(frozen=True, slots=True)
class FileName:
    """A file's name, taken apart.

    `stem` is the name without the suffixes of renaming and compression; `suffix` is the
    part that shows the kind (``log``, ``index``, ``checkpoint``, ...), empty if the name is not
    that of a segment's file or of a snapshot; `state` is the suffix of a file that is being
    removed or put in place, such as ``.deleted``.
    """

    stem: str
    suffix: str = ""
    base_offset: int | None = None
    epoch: int | None = None
    state: str = ""


@dataclass(frozen=True, slots=True)
class Partition:
    """Topic and partition index that a folder's name stands for."""

    topic: str
    index: int


def parse_file_name(name: str) -> FileName:
    """Take a file's name apart (the last component of a path)."""
    stem, state = name, ""
    for ending in (*_COMPRESSIONS, *_STATES):
        if stem.endswith(ending) and stem != ending:
            stem = stem.removesuffix(ending)
            state = ending if ending in _STATES else state
    if match := _SEGMENT_FILE.fullmatch(stem):
        return FileName(stem, match[2], int(match[1]), state=state)
    if match := _SNAPSHOT.fullmatch(stem):
        return FileName(stem, "checkpoint", int(match[1]), int(match[2]), state)
    if stem == "bootstrap.checkpoint":
        return FileName(stem, "checkpoint", 0, 0, state)
    return FileName(stem, state=state)


def partition_of(path: Path) -> Partition | None:
    """The partition that a file belongs to by the name of its folder, or None."""
    match = _PARTITION.fullmatch(path.absolute().parent.name)
    return Partition(match[1], int(match[2])) if match else None
