"""What a table is: named columns with a type and a meaning, as Arrow and as Spark see them.

Owns the columns that several tables have, and the conversion of values to their cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kraftwire.protocol.error_codes import error_name
from kraftwire.wire.json_form import uuid_to_text

if TYPE_CHECKING:
    from pyspark.sql.types import StructType
from kraftwire.messages import API_NAMES

_ZERO = bytes(16)

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
_SPAN = pa.struct([("first_ns", pa.int64()), ("last_ns", pa.int64())])
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
    "array<span>": pa.list_(_SPAN),
}


def micros(time_ns: int | None) -> int | None:
    """Convert a time to the microseconds of Spark's timestamps; None if unknown."""
    return None if time_ns is None or time_ns < 0 else time_ns // 1000


def known(number: int | None) -> int | None:
    """Return a number that is not negative; None for others, which mean that it is unknown."""
    return None if number is None or number < 0 else number


@lru_cache(maxsize=4096)
def ends(connection: str) -> tuple[str, str]:
    """Return client and server of a connection by its name."""
    client, _, server = connection.partition("-")
    return client, server


def client_of(connection: str) -> str:
    """Return the client of a connection by its name."""
    return ends(connection)[0]


def server_of(connection: str) -> str:
    """Return the server of a connection by its name."""
    return ends(connection)[1]


@lru_cache(maxsize=4096)
def uuid_text(value: bytes | None) -> str | None:
    """Return a topic id as Kafka prints it; None for none."""
    return None if value is None or value == _ZERO else uuid_to_text(value)


def error_text(code: int) -> str | None:
    """Return the name of an error; None for no error."""
    return error_name(code) if code else None


def error_texts(codes: list[int]) -> list[str | None]:
    """Return the names of errors."""
    return [error_text(code) for code in codes]


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

    def table(self, rows: Sequence[Any]) -> pa.Table:
        """Return the rows about some objects."""
        if not rows:
            return self.arrow.empty_table()
        cells = self.cells([self.row(each) for each in rows])
        arrays = [pa.array(each, kind) for each, kind in zip(cells, self.arrow.types, strict=True)]
        return pa.Table.from_arrays(arrays, schema=self.arrow)


def evidence(of: str = "") -> tuple[Column, Column]:
    """Return the columns that say where a row comes from: what `of` names in a row knows it."""
    return (
        Column("file", "string", "path of the input file", f"{of}file"),
        Column("position", "bigint", "byte position in the file, unpacked", f"{of}position"),
    )


def partition(of: str = "") -> tuple[Column, Column, Column]:
    """Return the columns about a partition: what `of` names in a row knows it."""
    return (
        Column("topic", "string", "name of the topic, where known", f"{of}topic"),
        Column(
            "topic_id", "string", "id of the topic, url-safe base64, where known", f"{of}topic_id"
        ),
        Column("partition", "int", "number of the partition", f"{of}partition"),
    )


# Of rows about a frame.
EVIDENCE = evidence("frame.")
TIME = (
    Column("time", "timestamp", "time of the last packet", "frame.time_ns", micros),
    Column("time_ns", "bigint", "the same, nanoseconds since the epoch", "frame.time_ns"),
)
CONNECTION = Column("connection", "string", "client:port-server:port", "frame.connection")
API = {
    column.name: column
    for column in (
        Column("api_key", "smallint", "number of the API", "frame.api_key"),
        Column("api_name", "string", "name of the API", "frame.api_key", API_NAMES.get),
        Column("api_version", "smallint", "version of the request", "frame.api_version"),
        Column("correlation_id", "int", "correlation id", "frame.correlation_id"),
        Column(
            "client_id",
            "string",
            "client id of the request",
            "frame.request",
            attrgetter("client_id"),
        ),
    )
}


def of(frame: str, *columns: Column) -> tuple[Column, ...]:
    """Return columns about the `frame` of a row as those of one whose frame is named so."""
    return tuple(
        replace(each, cell=f"{frame}{(each.cell or '').removeprefix('frame.')}") for each in columns
    )


CLUSTER = Column("cluster", "string", "cluster id, null if unknown")
