"""Captures, log directories and live quorums as Spark tables.

Needs the extra `kraftwire[spark]` and Java 17. Importing this package loads none of its libraries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]


def register(spark: SparkSession) -> None:
    """Register `format("kafka-capture")`, `format("kafka-log")` and `format("kraft-metadata")`.

    Enables filter pushdown for Python data sources; these sources use filters only with their
    option `filterPushdown`.
    """
    from kraftwire.spark.sources.known import SOURCES

    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    for source in SOURCES:
        spark.dataSource.register(source)
