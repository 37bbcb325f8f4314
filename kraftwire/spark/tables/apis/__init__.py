"""A typed table for each request and response; see README.md."""

from __future__ import annotations

from kraftwire.spark.tables.apis.table import EVIDENCE, TYPED_TABLES, TypedTable, typed_table

__all__ = ["EVIDENCE", "TYPED_TABLES", "TypedTable", "typed_table"]
