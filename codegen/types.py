"""The primitive types of the schema language and what each means on the wire and in Python."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FIXED", "PRIMITIVES", "VARIABLE", "FixedType"]


@dataclass(frozen=True)
class FixedType:
    """A type of constant size: `code` is its letter in a `struct` format."""

    code: str
    size: int
    annotation: str
    default: str


FIXED: dict[str, FixedType] = {
    "bool": FixedType("?", 1, "bool", "False"),
    "int8": FixedType("b", 1, "int", "0"),
    "int16": FixedType("h", 2, "int", "0"),
    "uint16": FixedType("H", 2, "int", "0"),
    "int32": FixedType("i", 4, "int", "0"),
    "uint32": FixedType("I", 4, "int", "0"),
    "int64": FixedType("q", 8, "int", "0"),
    "float64": FixedType("d", 8, "float", "0.0"),
    "uuid": FixedType("16s", 16, "bytes", "ZERO_UUID"),
}

# Annotation and default of the types that carry a length before them.
VARIABLE: dict[str, tuple[str, str]] = {
    "string": ("str", '""'),
    "bytes": ("bytes", 'b""'),
    "records": ("bytes | memoryview", 'b""'),
}

PRIMITIVES = frozenset(FIXED) | frozenset(VARIABLE)
