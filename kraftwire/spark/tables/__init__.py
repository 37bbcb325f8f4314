"""The tables of the pipeline: names, columns and what they mean."""

from __future__ import annotations

from kraftwire.spark.tables.columns import Column, Table
from kraftwire.spark.tables.known import TABLES

__all__ = ["TABLES", "Column", "Table"]
