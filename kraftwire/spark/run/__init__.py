"""A run of the pipeline: inputs, tasks, the commit of their parts, stages; see README.md."""

from __future__ import annotations

from kraftwire.spark.run.follow import RoundSchedule, tail
from kraftwire.spark.run.options import RunOptions, choose_tables
from kraftwire.spark.run.pipeline import RunOutcome, TailInputs, run
from kraftwire.spark.run.runner import LocalRunner, Runner, SparkRunner
from kraftwire.spark.run.starting import DeferredSparkRunner, spark_runner

__all__ = [
    "DeferredSparkRunner",
    "LocalRunner",
    "RoundSchedule",
    "RunOptions",
    "RunOutcome",
    "Runner",
    "SparkRunner",
    "TailInputs",
    "choose_tables",
    "run",
    "spark_runner",
    "tail",
]  # fmt: skip
