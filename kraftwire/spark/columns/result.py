"""The results of reading by columns: tables of records, and the problems of batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kraftwire.errors import WireError

__all__ = ["BYTES_MAX", "HEADERS", "ROWS_MAX", "SCHEMA", "Columns", "Problem"]

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))

SCHEMA = pa.schema(
    [
        ("batch", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("sequence", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", HEADERS),
    ]
)

# Rows, and bytes of records, in one table, about: a record of seven bytes takes 40 in the columns
# and well over a hundred in the rows that Spark receives.
ROWS_MAX = 16 * 1024
BYTES_MAX = 4 * 1024 * 1024


@dataclass(frozen=True)
class Problem:
    """Why the columns lack records of a batch; `batch` is its index."""

    batch: int
    error: WireError


@dataclass(frozen=True)
class Columns:
    """Records of some batches, in order.

    The columns of `table` are those of `SCHEMA`: `batch` is the index of the record's batch
    among those that were given, `timestamp` is in milliseconds, `sequence` -1 without a producer.
    A batch with a wrong CRC has no records here; a damaged one has those before the damage.
    """

    table: Any
    problems: tuple[Problem, ...]
