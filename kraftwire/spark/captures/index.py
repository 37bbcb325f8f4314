"""Which packets of a capture belong to which connection, found by their headers alone.

Owns the first of two passes. Nothing is reassembled here: the second pass reads the packets of a
connection again, by their positions.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from kraftwire.spark.captures.blocks import BlockWalk
from kraftwire.spark.captures.talks import SHARED, FileIndex, Runs, Talk
from kraftwire.spark.captures.walk import PACKED

__all__ = ["PACKED", "SHARED", "FileIndex", "Runs", "Talk", "index_capture"]


def index_capture(
    path: str | os.PathLike[str], keep: Callable[[Runs], None] | None = None
) -> FileIndex:
    """Walk the packets of a capture.

    Shape: with `keep` the runs go there, some at a time, and the index has none. Raises:
    StorageError if the capture cannot be opened or is none.
    """
    return BlockWalk(os.fspath(path), keep).index()
