"""From a capture to the tables of the pipeline; no Spark in here."""

from __future__ import annotations

from kraftwire.spark.captures.decode import decode_tables

__all__ = ["decode_tables"]
