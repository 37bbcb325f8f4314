"""The names of the files in a log directory.

Source: Kafka's `LogFileUtils` and `Snapshots`.
"""

from __future__ import annotations

import re

from kraftwire.records.offsets import OffsetAndEpoch

BOOTSTRAP_FILE = "bootstrap.checkpoint"
LOCK_FILE = ".lock"
META_PROPERTIES_FILE = "meta.properties"
QUORUM_STATE_FILE = "quorum-state"
EPOCHS_FILE = "leader-epoch-checkpoint"
FLUSH_MARK_FILE = "flushed-offset"
MARK_MAGIC = b"kwflush1"
PARTITION_METADATA_FILE = "partition.metadata"

PART_SUFFIX = ".part"
DELETED_SUFFIX = ".deleted"

_LEFTOVERS = (PART_SUFFIX, DELETED_SUFFIX, ".tmp", ".swap", ".cleaned")
_OFFSET = re.compile(r"(\d{20})\.(log|index|timeindex|snapshot)", re.ASCII)
_CHECKPOINT = re.compile(r"(\d{20})-(\d{10})\.checkpoint", re.ASCII)


def join(directory: str, name: str) -> str:
    """Return the path of a file in a directory."""
    return f"{directory.rstrip('/')}/{name}"


def parent(path: str) -> str:
    """Return the directory that contains a file or directory."""
    before, slash, _ = path.rstrip("/").rpartition("/")
    return before or slash or "."


def partition_directory(directory: str, topic: str) -> str:
    """Return the directory of a replicated log's only partition."""
    return join(directory, f"{topic}-0")


def offset_name(offset: int, suffix: str) -> str:
    """Return the name of a segment's file or of a producer snapshot. `suffix` has no dot."""
    return f"{offset:020d}.{suffix}"


def base_offset_of(name: str, suffix: str) -> int | None:
    """Return the offset in a name with this suffix, None for any other name."""
    match = _OFFSET.fullmatch(name)
    return int(match[1]) if match and match[2] == suffix else None


def checkpoint_name(snapshot: OffsetAndEpoch) -> str:
    """Return the name of a snapshot: end offset (exclusive) and epoch of its last record."""
    return f"{snapshot.offset:020d}-{snapshot.epoch:010d}.checkpoint"


def part_name(snapshot: OffsetAndEpoch, number: int) -> str:
    """Return the name of an unfinished snapshot; Kafka uses a random number."""
    return f"{snapshot.offset:020d}-{snapshot.epoch:010d}-{number}.checkpoint{PART_SUFFIX}"


def checkpoint_of(name: str) -> OffsetAndEpoch | None:
    """Return end offset and epoch in a snapshot's name, None for any other name."""
    match = _CHECKPOINT.fullmatch(name)
    return OffsetAndEpoch(int(match[1]), int(match[2])) if match else None


def is_leftover(name: str) -> bool:
    """Return whether a crash left this file behind, unfinished or not yet deleted."""
    return name.endswith(_LEFTOVERS)
