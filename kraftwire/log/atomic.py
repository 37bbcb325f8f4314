"""Replacing a small file as a whole, so that a crash leaves the old or the new contents.

Order: remove the old temporary file, write it again, sync it, rename it, sync the directory (D1).
Source: Kafka's `FileQuorumStateStore` and `Utils.atomicMoveWithFallback`.
"""

from __future__ import annotations

from kraftwire.log.files import Files
from kraftwire.log.names import parent

__all__ = ["TEMPORARY_SUFFIX", "replace_file"]

TEMPORARY_SUFFIX = ".tmp"


def replace_file(files: Files, path: str, content: bytes) -> None:
    """Write a file durably, replacing any existing one."""
    temporary = path + TEMPORARY_SUFFIX
    if files.exists(temporary):
        files.unlink(temporary)
    file = files.open(temporary, create=True)
    try:
        file.pwrite(content, 0)
        file.fdatasync()
    finally:
        file.close()
    files.rename(temporary, path)
    files.fsync_dir(parent(path))
