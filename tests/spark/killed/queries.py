"""A program with two streaming queries into Parquet, to be killed: a live quorum, and its files.

    python -m tests.spark.killed.queries CONTROLLERS DATA_FOLDER TARGET
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from kraftwire.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

__all__ = ["NAMES", "checkpoint", "rows", "start"]

NAMES = ("quorum", "files")

# So small that a query has many triggers, and that one is under way at almost any moment.
_OFFSETS = "5"


def checkpoint(target: Path, name: str) -> Path:
    """Where a query keeps its offsets."""
    return target / f"{name}-checkpoint"


def rows(target: Path, name: str) -> Path:
    """Where a query writes its rows."""
    return target / name


def start(
    spark: SparkSession, name: str, place: str, target: Path, *, is_endless: bool
) -> StreamingQuery:
    """Start a query; `place` is an address for the quorum, a folder for files."""
    reader = spark.readStream
    if is_endless:
        reader = reader.option("maxOffsetsPerTrigger", _OFFSETS)
    if name == "quorum":
        frame = reader.format("kraft-metadata").option("bootstrapControllers", place).load()
    else:
        frame = reader.format("kafka-log").option("table", "metadata_records").load(place)
    writer = frame.writeStream.option("checkpointLocation", str(checkpoint(target, name)))
    if not is_endless:
        writer = writer.trigger(availableNow=True)
    return writer.start(str(rows(target, name)), format="parquet")


def main() -> None:
    """Run both until this process is killed."""
    controllers, folder, target = sys.argv[1:]
    spark = local_session("local[2]", {"spark.sql.shuffle.partitions": "1"})
    for name, place in zip(NAMES, (controllers, folder), strict=True):
        start(spark, name, place, Path(target), is_endless=True)
    spark.streams.awaitAnyTermination()


if __name__ == "__main__":
    main()
