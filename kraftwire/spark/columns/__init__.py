"""Records by columns: the batches of a buffer to Arrow arrays; see README.md."""

from __future__ import annotations

from kraftwire.spark.columns.batches import Batches, cut
from kraftwire.spark.columns.read import BatchProblem, Columns, read_batch, read_columns, read_cut

__all__ = ["BatchProblem", "Batches", "Columns", "cut", "read_batch", "read_columns", "read_cut"]
