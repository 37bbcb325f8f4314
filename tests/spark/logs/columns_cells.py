"""What the reader gives for a buffer, in the form of columns."""

from __future__ import annotations

from typing import Any

from kraftwire.errors import WireError
from kraftwire.records import read_batches
from kraftwire.spark.columns import read_columns

__all__ = ["cells_by_columns", "cells_by_reader"]

Cells = list[dict[str, Any]]


def cells_by_reader(buffer: bytes) -> tuple[Cells, list[str]]:
    """Every record as a row of `read_columns`, and the text of every error."""
    rows: Cells = []
    errors = []
    for index, batch in enumerate(read_batches(buffer)):
        error: WireError | None = None
        records = []
        try:
            batch.ensure_valid()
            records, error = batch.salvage()
        except WireError as wrong:
            error = wrong
        errors += [] if error is None else [str(error)]
        for record in records:
            row = record._asdict() | {"batch": index}
            row["headers"] = [{"key": key, "value": value} for key, value in record.headers]
            rows.append(row)
    return rows, errors


def cells_by_columns(buffer: bytes) -> tuple[Cells, list[str]]:
    """The same by columns."""
    rows: Cells = []
    errors = []
    for table, problems in read_columns(buffer):
        table.validate(full=True)
        rows += table.to_pylist()
        errors += map(str, problems)
    return rows, errors
