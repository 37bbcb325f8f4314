"""Rows before they become Arrow."""

from __future__ import annotations

import pytest

pytest.importorskip("pyarrow", reason="needs the extra spark")

from kraftwire.spark.captures.rows import Rows
from kraftwire.spark.tables.columns import Column, Table

TABLE = Table(
    "rows",
    "A row.",
    (
        Column("name", "string", "a name"),
        Column("offset", "bigint", "a number"),
        Column("time", "timestamp", "a time"),
        Column("epoch", "int", "a smaller number"),
    ),
)


def test_numbers_that_no_column_can_hold_are_null() -> None:
    """Damaged bytes may give any number, and must not end a run."""
    rows = Rows(TABLE)
    rows.add(("a", 1 << 63, 1 << 70, 1 << 31))
    rows.add(("b", -(1 << 63), None, -(1 << 31)))
    rows.add(("c", None, -5, (1 << 31) - 1))
    rows.pack(at_least=1)
    (batch,) = rows.take()
    assert batch["offset"].to_pylist() == [None, -(1 << 63), None]
    assert batch["time"].cast("int64").to_pylist() == [None, None, -5]
    assert batch["epoch"].to_pylist() == [None, -(1 << 31), (1 << 31) - 1]
