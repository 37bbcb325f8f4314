"""The columns of a table by API, and exchanges as its rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from kraftwire import messages
from kraftwire.errors import UsageError
from kraftwire.spark.tables.apis.arrays import message_array
from kraftwire.spark.tables.apis.hidden import without_secrets
from kraftwire.spark.tables.apis.types import message_type
from kraftwire.wire.message import Message

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["API_TABLES", "ApiExchange", "ApiTable", "api_tables"]

_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

# Name of the table -> name of the API.
API_TABLES: Mapping[str, str] = {
    "api_" + _WORDS.sub("_", name).lower(): name for name in messages.API_NAMES.values()
}

_BEFORE = (
    ("file", pa.string()),
    ("position", pa.int64()),
    ("response_position", pa.int64()),
    ("connection", pa.string()),
    ("time", pa.timestamp("us", tz="UTC")),
    ("time_ns", pa.int64()),
    ("api_version", pa.int16()),
    ("correlation_id", pa.int32()),
    ("client_id", pa.string()),
    ("latency_ns", pa.int64()),
)


@dataclass(frozen=True, slots=True)
class ApiExchange:
    """A request and its response, decoded as far as they are.

    Shape: the names and units of the columns of `exchanges`. A message comes with the version of
    its schema; None stands for one that was not captured or could not be decoded.
    """

    file: str
    position: int
    time_ns: int
    api_version: int
    connection: str | None = None
    response_position: int | None = None
    correlation_id: int | None = None
    client_id: str | None = None
    latency_ns: int | None = None
    request: tuple[Message, int] | None = None
    response: tuple[Message, int] | None = None


@dataclass(frozen=True)
class ApiTable:
    """The table of one API; `api` is its name without Request or Response."""

    name: str
    api: str

    @property
    def about(self) -> str:
        """What a row is."""
        return f"A {self.api} request with its response, all fields of all versions."

    @cached_property
    def arrow(self) -> pa.Schema:
        """The schema of its Arrow batches; every column may be null, as Spark demands."""
        fields = [pa.field(name, kind) for name, kind in _BEFORE]
        # Parquet and Spark have no structs without fields.
        for name in ("request", "response"):
            kind = message_type(self._message(name))
            fields += [pa.field(name, kind)] if kind.num_fields else []
        return pa.schema(fields)

    @property
    def spark(self) -> StructType:
        """The schema as Spark sees it."""
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(self.arrow)

    def rows(self, exchanges: Sequence[ApiExchange], *, show_secrets: bool = False) -> pa.Table:
        """Exchanges of this API as a table."""
        arrays = []
        for field in self.arrow:
            if field.name in ("request", "response"):
                held = [getattr(each, field.name) for each in exchanges]
                if not show_secrets:
                    held = [one and (without_secrets(*one), one[1]) for one in held]
                arrays.append(message_array(self._message(field.name), held))
            elif field.name == "time":
                micros = [each.time_ns // 1000 for each in exchanges]
                arrays.append(pa.array(micros, pa.int64()).cast(field.type))
            else:
                values = [getattr(each, field.name) for each in exchanges]
                arrays.append(pa.array(values, field.type))
        return pa.table(arrays, self.arrow)

    def _message(self, side: str) -> str:
        return self.api + side.capitalize()


@cache
def api_tables(name: str) -> ApiTable:
    """The table of an API, by its own name (``api_fetch``) or the API's (``Fetch``).

    Raises: UsageError if there is none.
    """
    for table, api in API_TABLES.items():
        if name in (table, api):
            return ApiTable(table, api)
    raise UsageError(f"no API has a table {name!r}; there are {', '.join(API_TABLES)}")
