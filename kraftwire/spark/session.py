"""A Spark session for the pipeline: local by default, quiet, small."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOPBACK = "127.0.0.1"
_LOGGING = Path(__file__).with_name("log4j2.properties")

# Settings of our sessions; the caller's settings win.
_SETTINGS: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.parquet.compression.codec": "zstd",
}

_JVM = f"-XX:+UseSerialGC -Dlog4j2.configurationFile={_LOGGING.as_uri()}"
# A job of a few seconds gains nothing from the optimizing compiler, a long one is twice as fast.
_SHORT_JVM = f"-XX:TieredStopAtLevel=1 {_JVM}"

# In these locales Java, unlike Python, finds only files with ASCII names.
_ASCII_LOCALES = ("C", "POSIX")

# Only where driver and executors share a machine.
_LOOPBACK_ONLY: Mapping[str, str] = {
    "spark.driver.host": _LOOPBACK,
    "spark.driver.bindAddress": _LOOPBACK,
}

# Only where they share a process.
_LOCAL: Mapping[str, str] = {
    # Executors find it only if the package is installed, not in an archive.
    "spark.python.daemon.module": "kraftwire.spark.daemon",
    # As in the stages: workers with another environment would be forked from another daemon.
    "spark.executorEnv.SPARK_SIMPLIFIED_TRACEBACK": "1",
}


def local_session(
    master: str = "local[*]",
    settings: Mapping[str, str] | None = None,
    name: str = "kraftwire",
    *,
    is_short: bool = False,
    with_sources: bool = True,
) -> SparkSession:
    """Return a session with this Python on its workers, and our data sources registered.

    `master` is a Spark master URL; `settings` are Spark properties that win over ours. For work of
    a few seconds (`is_short`) the JVM starts faster, without its optimizing compiler. A caller that
    only runs the pipeline needs no data sources; leaving them out saves a CPU second.
    """
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if os.environ.get("LC_ALL") in _ASCII_LOCALES:
        os.environ["LC_ALL"] = "C.UTF-8"
    chosen = dict(_SETTINGS)
    chosen["spark.driver.extraJavaOptions"] = _SHORT_JVM if is_short else _JVM
    if master.startswith("local") or f"//{_LOOPBACK}" in master:
        os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)
        chosen |= _LOOPBACK_ONLY
    if master.startswith("local"):
        chosen |= _LOCAL
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in (chosen | dict(settings or {})).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    if with_sources:
        from kraftwire.spark import register

        register(spark)
    return spark
