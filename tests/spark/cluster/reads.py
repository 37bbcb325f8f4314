"""A program that reads captures and logs by their data sources, and writes what it found.

    python -m tests.spark.cluster.reads MASTER RESULT CAPTURES LOGS [KEY=VALUE...]
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kraftwire.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["READS", "found"]

# What is read: the source, the table, a filter that is pushed down.
READS = (
    ("kafka-capture", "exchanges", ""),
    ("kafka-capture", "frames", "api_key = 1"),
    ("kafka-log", "records", ""),
    ("kafka-log", "metadata_records", "offset < 50"),
    ("kafka-log", "bad_input", ""),
)


def found(spark: SparkSession, captures: str, logs: str) -> dict[str, list[Any]]:
    """Number and digest of the rows of each read, and in how many tasks it was done."""
    return {
        " ".join(each): _summed(_read(spark, each, captures, logs), each[2]) for each in READS
    }


def _read(
    spark: SparkSession, read: tuple[str, str, str], captures: str, logs: str
) -> DataFrame:
    source, table, _ = read
    path = captures if source == "kafka-capture" else logs
    return spark.read.format(source).options(table=table, splitBytes="20000").load(path)


def _summed(frame: DataFrame, condition: str) -> list[Any]:
    chosen = frame.where(condition) if condition else frame
    rows = sorted(repr(row) for row in chosen.collect())
    digest = hashlib.sha256("\n".join(rows).encode()).hexdigest()
    return [len(rows), digest, chosen.rdd.getNumPartitions()]


def main() -> None:
    """Read and write the result as JSON."""
    master, result, captures, logs, *properties = sys.argv[1:]
    settings = dict(each.split("=", 1) for each in properties)
    spark = local_session(master, settings)
    try:
        Path(result).write_text(json.dumps(found(spark, captures, logs)), encoding="utf-8")
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
