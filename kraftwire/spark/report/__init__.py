"""The report about a folder of tables: one HTML file, written without Spark; see README.md."""

from __future__ import annotations

from kraftwire.spark.report.folder import Interval
from kraftwire.spark.report.page import write

__all__ = ["Interval", "write"]
