"""Producer snapshots: Kafka's state of idempotent producers, which a quorum does not have.

Shape of the empty file, 10 bytes: int16 version, uint32 CRC-32C of what follows, int32 count.
Source: Kafka's `ProducerStateManager`.
"""

from __future__ import annotations

import struct

from crc32c import crc32c

from kraftwire.log.files import Files
from kraftwire.log.names import base_offset_of, join, offset_name

__all__ = ["EMPTY_PRODUCER_SNAPSHOT", "remove_producer_snapshots", "write_producer_snapshot"]

_COUNT = struct.pack(">i", 0)
_VERSION = 1
EMPTY_PRODUCER_SNAPSHOT = struct.pack(">hI", _VERSION, crc32c(_COUNT)) + _COUNT


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
