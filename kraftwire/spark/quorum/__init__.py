"""The metadata log of a live quorum, read over the network; see README.md."""

from __future__ import annotations

from kraftwire.spark.log_moved_error import LogMovedError
from kraftwire.spark.quorum.reader import Position, QuorumReader, SnapshotId

__all__ = ["LogMovedError", "Position", "QuorumReader", "SnapshotId"]
