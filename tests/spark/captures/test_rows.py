"""Rows before they become Arrow."""

from __future__ import annotations

from typing import NamedTuple

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


class _Thing(NamedTuple):
    """What a row is about."""

    name: str
    offset: int | None
    time: int | None
    epoch: int | None


def test_numbers_that_no_column_can_hold_are_null() -> None:
    """Damaged bytes may give any number, and must not end a run."""
    rows = Rows(TABLE)
    rows.add(_Thing("a", 1 << 63, 1 << 70, 1 << 31))
    rows.add(_Thing("b", -(1 << 63), None, -(1 << 31)))
    rows.add(_Thing("c", None, -5, (1 << 31) - 1))
    rows.pack(at_least=1)
    (batch,) = rows.take_batches()
    assert batch["offset"].to_pylist() == [None, -(1 << 63), None]
    assert batch["time"].cast("int64").to_pylist() == [None, None, -5]
    assert batch["epoch"].to_pylist() == [None, -(1 << 31), (1 << 31) - 1]


def test_a_column_says_where_it_comes_from() -> None:
    """The attribute of its name, or one of an object inside; converted unless it is null."""
    table = Table(
        "rows",
        "A row.",
        (
            Column("twice", "bigint", "converted", "offset", lambda offset: 2 * offset),
            Column("name", "string", "an attribute"),
            Column("real", "bigint", "one inside", "offset.real"),
            Column("epoch", "bigint", "null", "epoch", lambda epoch: -epoch),
        ),
    )
    things = _Thing("a", 5, None, None), _Thing("b", 6, None, 7)
    cells = [list(column) for column in table.cells([table.row(thing) for thing in things])]
    assert cells == [[10, 12], ["a", "b"], [5, 6], [None, -7]]
