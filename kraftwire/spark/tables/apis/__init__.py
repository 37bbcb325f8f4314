"""A typed table for each API; see README.md."""

from __future__ import annotations

from kraftwire.spark.tables.apis.table import API_TABLES, ApiExchange, ApiTable, api_tables

__all__ = ["API_TABLES", "ApiExchange", "ApiTable", "api_tables"]
