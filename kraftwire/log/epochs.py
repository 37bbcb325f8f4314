"""The start offsets of the leader epochs of a log, and the file that holds them.

The file is only a copy: at every startup the entries come from the log's batches (KAFKA-16541,
KAFKA-10706). It is written after a flush, so it never names anything that is not durable, which
makes it evidence of what a damaged log has lost.

Source: Kafka's `LeaderEpochCheckpointFile` and `CheckpointFile`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from kraftwire.log.atomic import replace_file
from kraftwire.log.files import Files

__all__ = ["EpochEntries", "epochs_from", "epochs_text", "read_epochs", "write_epochs"]

# (epoch, start offset), both strictly rising.
EpochEntries = list[tuple[int, int]]

_VERSION = "0"
_ENTRY = re.compile(r"(\d{1,10}) (\d{1,19})", re.ASCII)


def epochs_text(entries: Iterable[tuple[int, int]]) -> str:
    """Return the contents of the file."""
    lines = [f"{epoch} {start}\n" for epoch, start in entries]
    return f"{_VERSION}\n{len(lines)}\n" + "".join(lines)


def read_epochs(files: Files, path: str) -> EpochEntries | None:
    """Read the entries of the file; None if it is missing or invalid, since it is only a copy."""
    if not files.exists(path):
        return None
    lines = files.read_bytes(path).decode("latin-1").split("\n")
    matches = [_ENTRY.fullmatch(line) for line in lines[2:-1]]
    if lines[0] != _VERSION or lines[-1] or lines[1:2] != [str(len(matches))]:
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
