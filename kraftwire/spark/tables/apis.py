"""Typed tables: one for each request and each response, with all fields of all versions.

Owns the Arrow type of a message (a struct of the fields of all its versions), the arrays of decoded
messages, made column by column, and copies of messages without their secrets, by the rules of
`kraftwire decode`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kraftwire import messages
from kraftwire.decode.body.secrets import (
    REDACTED,
    holds_secrets,
    may_carry_secrets,
    secret_paths,
)
from kraftwire.errors import UsageError
from kraftwire.spark.tables.columns import ARROW, Column
from kraftwire.wire.facts import FieldFacts, MessageFacts, StructFacts
from kraftwire.wire.json_form import uuid_to_text
from kraftwire.wire.message import Message
from kraftwire.wire.sizes import is_at_default
from kraftwire.wire.versions import Versions

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_PRIMITIVES: Mapping[str, Any] = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    # Spark has no unsigned types.
    "uint16": pa.int32(),
    "uint32": pa.int64(),
    "float64": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "uuid": pa.string(),
    # The size of the batches; the batches have their own table.
    "records": pa.int32(),
}

_STEP = re.compile(r"(\w+)(?:\[(\d+)\])?")

# Conversions of values for Arrow; types that are not listed need none.
_CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {
    "bytes": bytes,
    "uuid": uuid_to_text,
    "records": len,
}
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


@cache
def message_type(name: str) -> Any:
    """Return the type of a message by its name."""
    return struct_type(messages.find(name).facts().root)


def struct_type(facts: StructFacts) -> Any:
    """Return the type of a struct; every field is nullable."""
    return pa.struct([(column_name(each), field_type(each)) for each in facts.fields])


def field_type(facts: FieldFacts) -> Any:
    """Return the type of a field."""
    one = struct_type(facts.struct) if facts.struct else _PRIMITIVES[facts.type]
    # Spark's name for the elements of a list.
    return pa.list_(pa.field("element", one)) if facts.is_array else one


def column_name(facts: FieldFacts) -> str:
    """Return the name of a field's column."""
    return f"{facts.attribute}_size" if facts.type == "records" else facts.attribute


def without_secrets(message: Message, version: int) -> Message:
    """Return the message itself if it holds no secrets, else a copy with a mark in their place."""
    name = message.NAME
    if not may_carry_secrets(name):
        return message
    root = message.facts().root
    if not holds_secrets(name):
        # It contains another message as bytes.
        paths = [each.name for each in root.fields if each.type == "bytes"]
    else:
        paths = secret_paths(name, message.to_json(version))
    if not paths:
        return message
    copy = deepcopy(message)
    for path in paths:
        _hide(copy, root, path.split("."))
    return copy


def _hide(value: Any, facts: StructFacts, path: list[str]) -> None:
    """Put the mark at the end of a path such as ``resources[0].configs[1].value``."""
    for step in path:
        match = _STEP.fullmatch(step)
        assert match is not None
        field = _field(facts, match[1])
        if field.struct is None:
            held = getattr(value, field.attribute)
            if held is not None:
                mark: str | bytes = REDACTED if field.type == "string" else REDACTED.encode()
                setattr(value, field.attribute, mark)
            return
        value = getattr(value, field.attribute)
        if match[2] is not None:
            value = value[int(match[2])]
        facts = field.struct


def _field(facts: StructFacts, name: str) -> FieldFacts:
    return next(each for each in facts.fields if each.name == name)


def message_array(name: str, held: Sequence[tuple[Message, int] | None]) -> Any:
    """Return an array of messages of one schema, each with its version, or None for a null.

    Its type is `message_type(name)`; fields that a version lacks are null.
    """
    kind = message_type(name)
    by_version: dict[int, list[int]] = {}
    for row, one in enumerate(held):
        by_version.setdefault(-1 if one is None else one[1], []).append(row)
    parts, order = [], []
    for version, rows in by_version.items():
        order += rows
        chosen = [one[0] for row in rows if (one := held[row]) is not None]
        parts.append(
            _structs(chosen[0].facts().root, chosen, version)
            if chosen
            else pa.nulls(len(rows), kind)
        )
    if not parts:
        return pa.array([], kind)
    if len(parts) == 1:
        return parts[0]
    return pa.concat_arrays(parts).take(pa.array(np.argsort(order, kind="stable")))


def _structs(facts: StructFacts, values: Sequence[Any], version: int) -> Any:
    """Return an array of structs; a value may be None."""
    kind = struct_type(facts)
    is_null = [value is None for value in values]
    has_null = any(is_null)
    arrays = []
    for each in facts.fields:
        if version not in each.versions:
            arrays.append(pa.nulls(len(values), field_type(each)))
            continue
        get = attrgetter(each.attribute)
        if has_null:
            column = [None if value is None else get(value) for value in values]
        else:
            column = list(map(get, values))
        if each.struct and not each.is_array and version in each.tagged:
            # A tagged field at its default is not sent; a struct of defaults would claim that it
            # was.
            column = [None if is_at_default(each, value) else value for value in column]
        arrays.append(_column(each, column, version))
    names = [column_name(each) for each in facts.fields]
    if not names:
        return pa.array([None if value is None else {} for value in values], kind)
    mask = pa.array(is_null) if has_null else None
    return pa.StructArray.from_arrays(arrays, fields=list(kind), mask=mask)


def _column(facts: FieldFacts, values: list[Any], version: int) -> Any:
    if not facts.is_array:
        return _plain(facts, values, version)
    sizes = np.fromiter((0 if value is None else len(value) for value in values), np.int32)
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    flat = list(chain.from_iterable(value for value in values if value is not None))
    is_null = [value is None for value in values]
    return pa.ListArray.from_arrays(
        pa.array(offsets),
        _plain(facts, flat, version),
        type=field_type(facts),
        mask=pa.array(is_null) if any(is_null) else None,
    )


def _plain(facts: FieldFacts, values: list[Any], version: int) -> Any:
    """Return the values of a field that is not an array, or the elements of an array."""
    if facts.struct:
        return _structs(facts.struct, values, version)
    convert = _CONVERSIONS.get(facts.type)
    if convert is not None:
        values = [None if value is None else convert(value) for value in values]
    kind = field_type(facts)
    return pa.array(values, kind.value_type if facts.is_array else kind)


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
