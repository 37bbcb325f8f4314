"""Record batches and their contents; see README.md for the entry points."""

from __future__ import annotations

from kraftwire.records.batch import RecordBatch
from kraftwire.records.builder import (
    BatchBuilder,
    BatchHeader,
    build_batch,
    build_columns,
    record_size_max,
)
from kraftwire.records.legacy import LegacyBatch
from kraftwire.records.reader import Batch, BatchReader, read_batches
from kraftwire.records.record import Record

__all__ = [
    "Batch",
    "BatchBuilder",
    "BatchHeader",
    "BatchReader",
    "LegacyBatch",
    "Record",
    "RecordBatch",
    "build_batch",
    "build_columns",
    "read_batches",
    "record_size_max",
]
