"""Options of all streams of logs, with the names of Spark's own Kafka source."""

from __future__ import annotations

from typing import Any

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

from kraftwire.spark.sources.log_options import chosen, positive

__all__ = ["check_stream_options", "offsets_max", "read_limit", "starts_late"]

_STARTS = ("earliest", "latest")


def check_stream_options(options: Any) -> None:
    """Refuse wrong options early: Spark hides errors that are raised when a stream starts.

    Raises: UsageError.
    """
    starts_late(options)
    offsets_max(options)


def starts_late(options: Any) -> bool:
    """Whether `startingOffsets` is ``latest``. Raises: UsageError."""
    return chosen(options, "startingOffsets", _STARTS) == "latest"


def offsets_max(options: Any) -> int | None:
    """Return `maxOffsetsPerTrigger`, None for no limit. Raises: UsageError."""
    name = "maxOffsetsPerTrigger"
    return None if options.get(name) is None else positive(options, name, 1)


def read_limit(offsets: int | None) -> ReadLimit:
    """Convert the limit to Spark's."""
    return ReadAllAvailable() if offsets is None else ReadMaxRows(offsets)
