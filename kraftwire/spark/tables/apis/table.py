"""Typed tables: one for each request and each response, with all fields of all versions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kraftwire import messages
from kraftwire.errors import UsageError
from kraftwire.spark.tables.apis.arrays import message_array
from kraftwire.spark.tables.apis.hidden import without_secrets
from kraftwire.spark.tables.apis.types import column_name, field_type, message_type
from kraftwire.spark.tables.columns import ARROW, Column
from kraftwire.wire.facts import FieldFacts, MessageFacts, StructFacts
from kraftwire.wire.message import Message
from kraftwire.wire.versions import Versions

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["EVIDENCE", "TYPED_TABLES", "TypedTable", "typed_table"]

_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

# Name of the table -> name of the message.
TYPED_TABLES: Mapping[str, str] = {
    _WORDS.sub("_", name + side).lower(): name + side
    for name in messages.API_NAMES.values()
    for side in ("Request", "Response")
}

# The first columns of every row.
EVIDENCE = (
    Column("file", "string", "path of the input file"),
    Column("position", "bigint", "byte position in the file, unpacked"),
    Column("time", "timestamp", "time of the last packet"),
    Column("time_ns", "bigint", "the same, nanoseconds since the epoch"),
    Column("connection", "string", "client:port-server:port"),
    Column("api_version", "smallint", "version of the request"),
    Column("correlation_id", "int", "correlation id"),
    Column("client_id", "string", "client id of the request"),
)

# Only messages have one-byte numbers.
_PLAIN = {pa.int8(): "tinyint", **{kind: name for name, kind in ARROW.items()}}


@dataclass(frozen=True)
class TypedTable:
    """The table of one message, such as `fetch_response`; `message` is its name in the schemas."""

    name: str
    message: str

    @property
    def about(self) -> str:
        """What a row is."""
        return f"A {self.message}: evidence, then the fields of all its versions."

    @property
    def api_key(self) -> int:
        """The API's number."""
        return self._facts.api_key

    @property
    def is_request(self) -> bool:
        """Whether the message is a request."""
        return self._facts.kind == "request"

    @property
    def columns(self) -> tuple[Column, ...]:
        """Its columns in order, each struct before its fields, which have paths with dots."""
        facts = self._facts
        return (*EVIDENCE, *_described(facts.root, "", facts.versions))

    @cached_property
    def arrow(self) -> pa.Schema:
        """Return the schema of its Arrow batches; every column is nullable, as Spark demands."""
        fields = [pa.field(one.name, ARROW[one.type]) for one in EVIDENCE]
        return pa.schema([*fields, *message_type(self.message)])

    @property
    def spark(self) -> StructType:
        """Return the schema as Spark sees it."""
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(self.arrow)

    def rows(
        self,
        evidence: Sequence[tuple[Any, ...]],
        held: Sequence[tuple[Message, int]],
        *,
        show_secrets: bool = False,
    ) -> pa.RecordBatch:
        """Convert messages to rows.

        Each message comes with the cells of `EVIDENCE` in order, but `time` in microseconds, and
        the version of its schema.
        """
        if not show_secrets:
            held = [(without_secrets(*each), each[1]) for each in held]
        schema = self.arrow
        kinds = schema.types
        cells = list(zip(*evidence, strict=True)) or [()] * len(EVIDENCE)
        before = [pa.array(each, kind) for each, kind in zip(cells, kinds, strict=False)]
        return pa.RecordBatch.from_arrays(
            [*before, *message_array(self.message, held).flatten()], schema=schema
        )

    @property
    def _facts(self) -> MessageFacts:
        return messages.find(self.message).facts()


@cache
def typed_table(name: str) -> TypedTable:
    """Return the table of a request or response by its name. Raises: UsageError if unknown."""
    if name not in TYPED_TABLES:
        raise UsageError(f"no request or response has a table {name!r}")
    return TypedTable(name, TYPED_TABLES[name])


def _described(facts: StructFacts, before: str, versions: Versions) -> Iterator[Column]:
    for each in facts.fields:
        path = before + column_name(each)
        yield Column(path, _type_name(each), _about(each, versions))
        if each.struct:
            yield from _described(each.struct, path + ".", versions)


def _type_name(facts: FieldFacts) -> str:
    if facts.struct:
        return "array<struct>" if facts.is_array else "struct"
    kind = field_type(facts)
    return f"array<{_PLAIN[kind.value_type]}>" if facts.is_array else _PLAIN[kind]


def _about(facts: FieldFacts, versions: Versions) -> str:
    """Describe a field, and name the versions that have it unless all do."""
    text = facts.about.strip().rstrip(".")
    if facts.type == "records":
        text = "Size in bytes; the batches are in the table batches"
    low, high = max(facts.versions.low, versions.low), min(facts.versions.high, versions.high)
    if (low, high) == (versions.low, versions.high):
        return text
    return f"{text} (versions {low} to {high})" if low < high else f"{text} (version {low})"
