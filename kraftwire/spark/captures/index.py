"""The first pass: which packets of a capture belong to which connection, by their headers.

Nothing is reassembled here: the second pass reads the packets of a connection again, by their
positions.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from kraftwire.spark.captures.connection_index import SHARED, FileIndex, IndexedConnection, Runs
from kraftwire.spark.captures.packet_index import PacketIndexer

__all__ = ["SHARED", "FileIndex", "IndexedConnection", "Runs", "index_capture"]


def index_capture(
    path: str | os.PathLike[str], keep: Callable[[Runs], None] | None = None
) -> FileIndex:
    """PacketIndexer the packets of a capture.

    With `keep`, runs are passed to it in batches, and the index has none. Raises: StorageError if
    the file cannot be opened or is not a capture.
    """
    return PacketIndexer(os.fspath(path), keep).index()
