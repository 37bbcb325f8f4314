"""Records by columns: the batches of a buffer to Arrow arrays; see README.md."""

from __future__ import annotations

from kraftwire.spark.columns.batches import Batches, cut
from kraftwire.spark.columns.read import read_batch, read_columns, read_cut
from kraftwire.spark.columns.result import Columns, Problem

__all__ = ["Batches", "Columns", "Problem", "cut", "read_batch", "read_columns", "read_cut"]
