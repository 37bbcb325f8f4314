"""Derived tables: pure functions from DataFrames to DataFrames; see README.md."""

from __future__ import annotations

from kraftwire.spark.stages.known import STAGES, register
from kraftwire.spark.stages.stage import Stage, Tables

__all__ = ["STAGES", "Stage", "Tables", "register"]
