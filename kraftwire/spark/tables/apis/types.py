"""The Arrow type of a message: a struct of the fields of all its versions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import pyarrow as pa

from kraftwire import messages
from kraftwire.wire.facts import FieldFacts, StructFacts

__all__ = ["column_name", "field_type", "message_type", "struct_type"]

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
