"""What a table is: named columns with a type and a meaning, as Arrow and as Spark see them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["ARROW", "Column", "Table"]

_TOPIC = pa.struct(
    [("topic", pa.string()), ("topic_id", pa.string()), ("partition", pa.int32())]
)
_FINDING = pa.struct(
    [
        ("id", pa.string()),
        ("offset", pa.int32()),
        ("path", pa.string()),
        ("detail", pa.string()),
    ]
)
_HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])

# Column types by the names that `kraftwire pipeline tables` prints. Spark wants time in
# microseconds with a zone, and no dictionaries, large or view types.
ARROW: Mapping[str, pa.DataType] = {
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "array<smallint>": pa.list_(pa.int16()),
    "array<int>": pa.list_(pa.int32()),
    "array<string>": pa.list_(pa.string()),
    "array<topic>": pa.list_(_TOPIC),
    "array<finding>": pa.list_(_FINDING),
    "array<header>": pa.list_(_HEADER),
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `type` is a key of `ARROW`; `about` says what it holds, units included.

    `cell` is where it comes from in tables that are made row by row: an attribute of the object
    that the row is about, by default the one of the same name, or of one inside it ("frame.size").
    `convert` makes the cell of its value, unless that is None.
    """

    name: str
    type: str
    about: str
    cell: str | None = None
    convert: Callable[[Any], Any] | None = None


@dataclass(frozen=True)
class Table:
    """A table. `columns` are in order; `about` says in a sentence what a row is."""

    name: str
    about: str
    columns: tuple[Column, ...]

    @cached_property
    def arrow(self) -> pa.Schema:
        """Return the schema of its Arrow batches; every column is nullable, as Spark demands."""
        return pa.schema([pa.field(one.name, ARROW[one.type]) for one in self.columns])

    @property
    def spark(self) -> StructType:
        """Return the schema as Spark sees it."""
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(self.arrow)

    @cached_property
    def row(self) -> Callable[[Any], tuple[Any, ...]]:
        """Return a function that gets the values of all columns, in order, of an object."""
        # One call for all attributes costs a fraction of a call for each.
        return attrgetter(*[one.cell or one.name for one in self.columns])

    def cells(self, rows: Sequence[tuple[Any, ...]]) -> Iterator[Sequence[Any]]:
        """Yield the cells of each column of such rows, of which there is at least one."""
        for column, values in zip(self.columns, zip(*rows, strict=True), strict=True):
            convert = column.convert
            yield values if convert is None else [
                None if value is None else convert(value) for value in values
            ]
