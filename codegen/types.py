"""The primitive types of the schema language and what each means in Python."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FIXED", "PRIMITIVES", "VARIABLE", "FixedType"]


@dataclass(frozen=True)
class FixedType:
    """A type of constant size; its size is in kraftwire.wire.sizes."""

    annotation: str
    default: str


FIXED: dict[str, FixedType] = {
    "bool": FixedType("bool", "False"),
    "int8": FixedType("int", "0"),
    "int16": FixedType("int", "0"),
    "uint16": FixedType("int", "0"),
    "int32": FixedType("int", "0"),
    "uint32": FixedType("int", "0"),
    "int64": FixedType("int", "0"),
    "float64": FixedType("float", "0.0"),
    "uuid": FixedType("bytes", "ZERO_UUID"),
}

# Annotation and default of the types that are preceded by a length.
VARIABLE: dict[str, tuple[str, str]] = {
    "string": ("str", '""'),
    "bytes": ("bytes", 'b""'),
    "records": ("bytes | memoryview", 'b""'),
}

PRIMITIVES = frozenset(FIXED) | frozenset(VARIABLE)
