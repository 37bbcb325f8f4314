"""The small files beside the segments of a partition: topic id, leader epochs, producers.

- `partition.metadata` names the topic id. Kafka writes no newline at its end.
- `leader-epoch-checkpoint` has the start offset of each leader epoch. It is only a copy: at every
  startup the entries come from the log's batches (KAFKA-16541, KAFKA-10706). It is written after a
  flush, so it never names anything that is not durable, which makes it evidence of what a damaged
  log has lost.
- Producer snapshots hold Kafka's state of idempotent producers. A quorum has none: the
  empty file has 10 bytes: int16 version, uint32 CRC-32C of the rest, int32 count.

Source: Kafka's `PartitionMetadataFile`, `LeaderEpochCheckpointFile`, `CheckpointFile` and
`ProducerStateManager`.
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Iterable

from kraftwire.errors import StorageError
from kraftwire.log.files import Files, replace_file
from kraftwire.log.names import PARTITION_METADATA_FILE, base_offset_of, join, offset_name
from kraftwire.records.crc import crc32c

_TOPIC_ID = re.compile(r"version: (\d+)\s*\ntopic_id: (\S+)\s*", re.ASCII)


def ensure_partition_metadata(files: Files, directory: str, topic_id: bytes) -> None:
    """Write the file if it is missing.

    Raises: StorageError if it names another topic or cannot be read.
    """
    path = join(directory, PARTITION_METADATA_FILE)
    text = base64.urlsafe_b64encode(topic_id).rstrip(b"=").decode()
    if not files.exists(path):
        replace_file(files, path, f"version: 0\ntopic_id: {text}".encode())
        return
    content = files.read_bytes(path).decode("latin-1")
    match = _TOPIC_ID.fullmatch(content)
    if match is None or match[1] != "0":
        raise StorageError(f"expected version 0 and a topic id, found {content!r}", file=path)
    if match[2] != text:
        raise StorageError(f"belongs to topic id {match[2]}, expected {text}", file=path)


# (epoch, start offset), both strictly rising.
EpochEntries = list[tuple[int, int]]

_EPOCHS_VERSION = "0"
_EPOCH_ENTRY = re.compile(r"(\d{1,10}) (\d{1,19})", re.ASCII)


def epochs_text(entries: Iterable[tuple[int, int]]) -> str:
    """Return the contents of the file."""
    lines = [f"{epoch} {start}\n" for epoch, start in entries]
    return f"{_EPOCHS_VERSION}\n{len(lines)}\n" + "".join(lines)


def read_epochs(files: Files, path: str) -> EpochEntries | None:
    """Read the entries of the file; None if it is missing or invalid, since it is only a copy."""
    if not files.exists(path):
        return None
    lines = files.read_bytes(path).decode("latin-1").split("\n")
    matches = [_EPOCH_ENTRY.fullmatch(line) for line in lines[2:-1]]
    if lines[0] != _EPOCHS_VERSION or lines[-1] or lines[1:2] != [str(len(matches))]:
        return None
    return [(int(m[1]), int(m[2])) for m in matches if m] if all(matches) else None


def write_epochs(files: Files, path: str, entries: Iterable[tuple[int, int]]) -> None:
    """Replace the file durably. Raises: StorageError."""
    replace_file(files, path, epochs_text(entries).encode())


def epochs_from(entries: EpochEntries, start_offset: int) -> EpochEntries:
    """Return the entries of a log that now starts at an offset, where the epoch at it now begins.

    Source: Kafka's `LeaderEpochFileCache.truncateFromStartAsyncFlush`.
    """
    before = [epoch for epoch, start in entries if start <= start_offset]
    after = [(epoch, start) for epoch, start in entries if start > start_offset]
    return [(before[-1], start_offset), *after] if before else after


_NO_PRODUCERS = struct.pack(">i", 0)
_PRODUCERS_VERSION = 1
_PRODUCERS_HEAD = struct.pack(">hI", _PRODUCERS_VERSION, crc32c(_NO_PRODUCERS))
EMPTY_PRODUCER_SNAPSHOT = _PRODUCERS_HEAD + _NO_PRODUCERS


def write_producer_snapshot(files: Files, directory: str, offset: int) -> None:
    """Write a snapshot without producers; it need not be durable."""
    file = files.open(join(directory, offset_name(offset, "snapshot")), create=True)
    file.pwrite(EMPTY_PRODUCER_SNAPSHOT, 0)
    file.close()


def remove_producer_snapshots(
    files: Files, directory: str, *, above: int = -1, below: int | None = None
) -> None:
    """Remove the snapshots of all offsets above one, durably; or only those below another."""
    is_changed = False
    for name in files.listdir(directory):
        offset = base_offset_of(name, "snapshot")
        if offset is not None and offset > above and (below is None or offset < below):
            files.unlink(join(directory, name))
            is_changed = True
    if is_changed:
        files.fsync_dir(directory)
