"""Log folders as they grow: how far they were read, what is new, what moved; see README.md."""

from __future__ import annotations

from kraftwire.spark.tail.folders import find_folders, is_passing
from kraftwire.spark.tail.growth import FolderEnd, LogStartMovedError, Stretch, verify
from kraftwire.spark.tail.marks import BatchMark, check
from kraftwire.spark.tail.offsets import (
    Offset,
    TriggerLimits,
    between,
    bounds_of,
    end_of,
    following,
)

__all__ = [
    "BatchMark",
    "FolderEnd",
    "LogStartMovedError",
    "Offset",
    "Stretch",
    "TriggerLimits",
    "between",
    "bounds_of",
    "check",
    "end_of",
    "find_folders",
    "following",
    "is_passing",
    "verify",
]
