"""Options that all streams of logs have, by the names that Spark's own Kafka source uses."""

from __future__ import annotations

from typing import Any

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

from kraftwire.errors import UsageError
from kraftwire.spark.sources.log_options import chosen

__all__ = ["offsets_max", "read_limit", "starts_late"]

_STARTS = ("earliest", "latest")


def starts_late(options: Any) -> bool:
    """Whether `startingOffsets` is ``latest``. Raises: UsageError."""
    return chosen(options, "startingOffsets", _STARTS) == "latest"


def offsets_max(options: Any) -> int | None:
    """`maxOffsetsPerTrigger`, None for no limit. Raises: UsageError."""
    text = options.get("maxOffsetsPerTrigger")
    if text is None:
        return None
    if not str(text).isdecimal() or int(text) < 1:
        raise UsageError(f"option maxOffsetsPerTrigger: expected 1 or more, found {text}")
    return int(text)


def read_limit(offsets: int | None) -> ReadLimit:
    """The same as Spark's limit."""
    return ReadAllAvailable() if offsets is None else ReadMaxRows(offsets)
