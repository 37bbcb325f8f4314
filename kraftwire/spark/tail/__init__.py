"""Log folders as they grow: how far they were read, what is new, what moved; see README.md."""

from __future__ import annotations

from kraftwire.spark.tail.folders import find_folders, is_passing
from kraftwire.spark.tail.growth import Bound, LogStartMovedError, Stretch, verify
from kraftwire.spark.tail.marks import Mark, check
from kraftwire.spark.tail.offsets import Limits, Offset, between, bounds_of, end_of, following

__all__ = [
    "Bound",
    "Limits",
    "LogStartMovedError",
    "Mark",
    "Offset",
    "Stretch",
    "between",
    "bounds_of",
    "check",
    "end_of",
    "find_folders",
    "following",
    "is_passing",
    "verify",
]
