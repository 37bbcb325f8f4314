"""The file with the topic id of a partition's directory.

Source: Kafka's `PartitionMetadataFile`, which writes no newline at the end.
"""

from __future__ import annotations

import base64
import re

from kraftwire.errors import StorageError
from kraftwire.log.atomic import replace_file
from kraftwire.log.files import Files
from kraftwire.log.names import PARTITION_METADATA_FILE, join

__all__ = ["ensure_partition_metadata"]

_CONTENT = re.compile(r"version: (\d+)\s*\ntopic_id: (\S+)\s*", re.ASCII)


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
    match = _CONTENT.fullmatch(content)
    if match is None or match[1] != "0":
        raise StorageError(f"expected version 0 and a topic id, found {content!r}", file=path)
    if match[2] != text:
        raise StorageError(f"belongs to topic id {match[2]}, expected {text}", file=path)
