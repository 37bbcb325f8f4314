"""A run of the pipeline: inputs, tasks, the commit of their parts, stages; see README.md."""

from __future__ import annotations

from kraftwire.spark.run.options import RunOptions, choose_tables
from kraftwire.spark.run.pipeline import Outcome, run
from kraftwire.spark.run.runner import InProcess, OnSpark, Runner

__all__ = ["InProcess", "OnSpark", "Outcome", "RunOptions", "Runner", "choose_tables", "run"]
