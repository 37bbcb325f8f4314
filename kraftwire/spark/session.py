"""A Spark session as the pipeline wants it: on this machine by default, quiet, small."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["local_session"]

_LOOPBACK = "127.0.0.1"
_LOGGING = Path(__file__).with_name("log4j2.properties")

# What a session of ours needs; the caller's settings win.
_SETTINGS: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.parquet.compression.codec": "zstd",
    # A job of some seconds gains nothing by the optimizing compiler (36 CPU-seconds became 27).
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
    # The plans of the stages compile to more than the 48 MB that this compiler reserves.
    "-XX:ReservedCodeCacheSize=128m "
    f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}",
}

# Only where driver and executors share a machine.
_LOCAL: Mapping[str, str] = {
    "spark.driver.host": _LOOPBACK,
    "spark.driver.bindAddress": _LOOPBACK,
}


def local_session(
    master: str = "local[*]", settings: Mapping[str, str] | None = None, name: str = "kraftwire"
) -> SparkSession:
    """A session with this Python on its workers, and our data sources registered.

    `master` is a Spark master URL; `settings` are Spark properties that win over ours.
    """
    from pyspark.sql import SparkSession

    from kraftwire.spark import register

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    chosen = dict(_SETTINGS)
    if master.startswith("local") or f"//{_LOOPBACK}" in master:
        os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)
        chosen |= _LOCAL
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in (chosen | dict(settings or {})).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    register(spark)
    return spark
