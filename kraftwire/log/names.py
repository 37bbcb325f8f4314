"""The names of the files in a log directory.

Source: Kafka's `LogFileUtils` and `Snapshots`.
"""

from __future__ import annotations

import re

from kraftwire.records.offsets import OffsetAndEpoch

__all__ = [
    "BOOTSTRAP_FILE",
    "DELETED_SUFFIX",
    "EPOCHS_FILE",
    "FLUSH_MARK_FILE",
    "LOCK_FILE",
    "META_PROPERTIES_FILE",
    "PARTITION_METADATA_FILE",
    "PART_SUFFIX",
    "QUORUM_STATE_FILE",
    "base_offset_of",
    "checkpoint_name",
    "checkpoint_of",
    "is_leftover",
    "join",
    "offset_name",
    "parent",
    "part_name",
    "partition_directory",
]

BOOTSTRAP_FILE = "bootstrap.checkpoint"
LOCK_FILE = ".lock"
META_PROPERTIES_FILE = "meta.properties"
QUORUM_STATE_FILE = "quorum-state"
EPOCHS_FILE = "leader-epoch-checkpoint"
FLUSH_MARK_FILE = "flushed-offset"
PARTITION_METADATA_FILE = "partition.metadata"

PART_SUFFIX = ".part"
DELETED_SUFFIX = ".deleted"

_LEFTOVERS = (PART_SUFFIX, DELETED_SUFFIX, ".tmp", ".swap", ".cleaned")
_OFFSET = re.compile(r"(\d{20})\.(log|index|timeindex|snapshot)", re.ASCII)
_CHECKPOINT = re.compile(r"(\d{20})-(\d{10})\.checkpoint", re.ASCII)


def join(directory: str, name: str) -> str:
    """The path of a file in a directory."""
    return f"{directory.rstrip('/')}/{name}"


def parent(path: str) -> str:
    """The directory that a file or directory is in."""
    before, slash, _ = path.rstrip("/").rpartition("/")
    return before or slash or "."


def partition_directory(directory: str, topic: str) -> str:
    """Where a log directory keeps the only partition of a replicated log."""
    return join(directory, f"{topic}-0")


def offset_name(offset: int, suffix: str) -> str:
    """The name of a segment's file or of a producer snapshot. `suffix` without dot."""
    return f"{offset:020d}.{suffix}"


def base_offset_of(name: str, suffix: str) -> int | None:
    """The offset in a name that ends in this suffix, None for any other name."""
    match = _OFFSET.fullmatch(name)
    return int(match[1]) if match and match[2] == suffix else None


def checkpoint_name(snapshot: OffsetAndEpoch) -> str:
    """The name of a snapshot: end offset (exclusive) and epoch of the last record in it."""
    return f"{snapshot.offset:020d}-{snapshot.epoch:010d}.checkpoint"


def part_name(snapshot: OffsetAndEpoch, number: int) -> str:
    """The name of a snapshot that is not complete; Kafka has a random number there."""
    return f"{snapshot.offset:020d}-{snapshot.epoch:010d}-{number}.checkpoint{PART_SUFFIX}"


def checkpoint_of(name: str) -> OffsetAndEpoch | None:
    """End offset and epoch in a snapshot's name, None for any other name."""
    match = _CHECKPOINT.fullmatch(name)
    return OffsetAndEpoch(int(match[1]), int(match[2])) if match else None


def is_leftover(name: str) -> bool:
    """Whether a crash left this file: it was not finished, or its deletion was not."""
    return name.endswith(_LEFTOVERS)
