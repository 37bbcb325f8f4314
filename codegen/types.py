"""The primitive types of the schema language and what each means in Python."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FixedType:
    """A type of constant size; `code` is its letter in a format of the `struct` module."""

    annotation: str
    default: str
    code: str
    size: int


FIXED: dict[str, FixedType] = {
    "bool": FixedType("bool", "False", "?", 1),
    "int8": FixedType("int", "0", "b", 1),
    "int16": FixedType("int", "0", "h", 2),
    "uint16": FixedType("int", "0", "H", 2),
    "int32": FixedType("int", "0", "i", 4),
    "uint32": FixedType("int", "0", "I", 4),
    "int64": FixedType("int", "0", "q", 8),
    "float64": FixedType("float", "0.0", "d", 8),
    "uuid": FixedType("bytes", "ZERO_UUID", "16s", 16),
}

# Annotation and default of the types that are preceded by a length.
VARIABLE: dict[str, tuple[str, str]] = {
    "string": ("str", '""'),
    "bytes": ("bytes", 'b""'),
    "records": ("bytes | memoryview", 'b""'),
}

PRIMITIVES = frozenset(FIXED) | frozenset(VARIABLE)
