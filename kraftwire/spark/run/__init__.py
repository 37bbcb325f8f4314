"""A run of the pipeline: inputs, tasks, the commit of their parts, stages; see README.md."""

from __future__ import annotations

from kraftwire.spark.run.follow import Rhythm, tail
from kraftwire.spark.run.options import RunOptions, choose_tables
from kraftwire.spark.run.pipeline import Following, Outcome, run
from kraftwire.spark.run.runner import InProcess, OnSpark, Runner
from kraftwire.spark.run.starting import DeferredSpark, spark_runner

__all__ = [
    "DeferredSpark",
    "Following",
    "InProcess",
    "OnSpark",
    "Outcome",
    "Rhythm",
    "RunOptions",
    "Runner",
    "choose_tables",
    "run",
    "spark_runner",
    "tail",
]  # fmt: skip
