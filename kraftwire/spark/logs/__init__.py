"""Segments and snapshots as tables; see README.md."""

from __future__ import annotations

from kraftwire.spark.logs.decode import LOG_TABLES, LogOptions, decode_pieces, decode_tables
from kraftwire.spark.logs.plan import plan

__all__ = ["LOG_TABLES", "LogOptions", "decode_pieces", "decode_tables", "plan"]
