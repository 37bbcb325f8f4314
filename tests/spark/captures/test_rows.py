"""Rows before they become Arrow."""

from __future__ import annotations

import pytest

pytest.importorskip("pyarrow", reason="needs the extra spark")

import numpy as np

from kraftwire.spark.captures.rows import Alike, Rows
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


def test_rows_that_are_alike_are_where_they_belong() -> None:
    """Between rows that were added one by one, also of two blocks, and after the last."""
    rows = Rows(TABLE)
    samples = [("x", 0, 0, 7), ("y", 0, 0, None)]

    def alike(which: list[int], after: list[int], offsets: list[int]) -> Alike:
        cells = {
            "offset": np.array(offsets),
            "time": (np.array(offsets), np.array([each % 2 == 0 for each in offsets])),
        }
        return Alike(samples, np.array(which), np.array(after), cells)

    rows.add(("a", 1, 1, 1))
    rows.add_alike(alike([0, 1, 1], [0, 1, 1], [10, 11, 12]))
    rows.add(("b", 2, 2, 2))
    rows.add_alike(alike([0], [2], [13]))
    rows.pack(at_least=6)
    (batch,) = rows.take()
    assert batch["name"].to_pylist() == ["x", "a", "y", "y", "b", "x"]
    assert batch["offset"].to_pylist() == [10, 1, 11, 12, 2, 13]
    assert batch["time"].cast("int64").to_pylist() == [None, 1, 11, None, 2, 13]
    assert batch["epoch"].to_pylist() == [7, 1, None, None, 2, 7]
