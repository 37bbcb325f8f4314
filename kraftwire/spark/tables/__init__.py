"""The tables of the pipeline: names, columns and what they mean."""

from __future__ import annotations

from kraftwire.spark.tables.columns import Column, Table
from kraftwire.spark.tables.names import TABLES, AnyTable, find_table, matching

__all__ = ["TABLES", "AnyTable", "Column", "Table", "find_table", "matching"]
