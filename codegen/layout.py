"""The wire layout of a struct in one version; versions of equal layout share their functions.

A layout is hashable and says everything a decoder or encoder of that version must know, down
through nested structs. Nothing here knows Python's syntax beyond default values.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any

from codegen.schema import Field, Message, Struct
from codegen.types import FIXED, VARIABLE

__all__ = ["Absent", "Item", "Layout", "default_of", "is_optional_struct", "layouts_of"]


@dataclass(frozen=True)
class Item:
    """One field as it stands on the wire in one version.

    `kind` is fixed, string, bytes, records, struct or array; an array's `element` is one
    of fixed, string, bytes, struct. `type` is the primitive type's name or the struct's.
    """

    attribute: str
    kind: str
    type: str
    element: str
    nullable: bool
    compact: bool
    layout: Layout | None
    default: str
    may_be_none: bool
    is_tagged: bool

    @property
    def min_size(self) -> int:
        """Fewest bytes that the field can take."""
        if self.kind == "fixed":
            return FIXED[self.type].size
        if self.kind == "struct":
            inner = self.layout.min_size if self.layout else 0
            return 1 if self.nullable else inner
        if self.compact:
            return 1
        return 2 if self.kind == "string" else 4


@dataclass(frozen=True)
class Absent:
    """A field that the version does not carry; `refuse` unless the schema calls it ignorable."""

    attribute: str
    type: str
    default: str
    refuse: bool
    is_struct: bool
    nullable: bool


@dataclass(frozen=True)
class Layout:
    """Fields of a struct in wire order, tagged fields by tag, fields that are absent."""

    name: str
    items: tuple[Item, ...]
    tagged: tuple[tuple[int, Item], ...]
    absent: tuple[Absent, ...]
    flexible: bool

    @property
    def min_size(self) -> int:
        """Fewest bytes that the struct can take."""
        return sum(item.min_size for item in self.items) + self.flexible

    @property
    def children(self) -> tuple[Layout, ...]:
        """Layouts of nested structs, in wire order."""
        items = (*self.items, *(item for _, item in self.tagged))
        return tuple(item.layout for item in items if item.layout)


def layouts_of(message: Message) -> dict[int, Layout]:
    """The root's layout for each valid version; equal layouts are one object."""
    known: dict[Layout, Layout] = {}
    result = {}
    for version in range(message.versions.low, message.versions.high + 1):
        layout = _struct_layout(message, message.root, version)
        result[version] = known.setdefault(layout, layout)
    return result


def _struct_layout(message: Message, struct: Struct, version: int) -> Layout:
    items: list[Item] = []
    tagged: list[tuple[int, Item]] = []
    absent: list[Absent] = []
    for field in struct.fields:
        if version in field.tagged:
            tagged.append((field.tag, _item(message, field, version)))
        elif version in field.versions:
            items.append(_item(message, field, version))
        else:
            absent.append(_absent(field))
    flexible = version in message.flexible
    return Layout(
        struct.name, tuple(items), tuple(sorted(tagged, key=_tag)), tuple(absent), flexible
    )


def _tag(pair: tuple[int, Item]) -> int:
    return pair[0]


def _item(message: Message, field: Field, version: int) -> Item:
    if field.is_array:
        kind = "array"
        element = _kind(field)
    else:
        kind = _kind(field)
        element = ""
    layout = _struct_layout(message, field.struct, version) if field.struct else None
    return Item(
        attribute=field.attribute,
        kind=kind,
        type=field.type,
        element=element,
        nullable=version in field.nullable,
        compact=version in field.flexible,
        layout=layout,
        default=default_of(field),
        may_be_none=bool(field.nullable),
        is_tagged=version in field.tagged,
    )


def _kind(field: Field) -> str:
    if field.struct:
        return "struct"
    return "fixed" if field.type in FIXED else field.type


def _absent(field: Field) -> Absent:
    return Absent(
        attribute=field.attribute,
        type=field.type,
        default=default_of(field),
        refuse=not field.ignorable,
        is_struct=field.struct is not None and not field.is_array,
        nullable=bool(field.nullable),
    )


def is_optional_struct(field: Field) -> bool:
    """Whether None stands for a struct with every field at its default.

    A tagged struct is left out of the wire while it equals its default, so None costs nothing and
    spares an object for every element that does not carry it.
    """
    return bool(field.struct and not field.is_array and field.tagged and not field.nullable)


def default_of(field: Field) -> str:
    """Python expression for the default value of a field."""
    if field.default == "null":
        return "None"
    if field.is_array:
        return "[]"
    if field.struct:
        return "None" if is_optional_struct(field) else f"{field.struct.name}()"
    if field.type in VARIABLE:
        if field.type == "string":
            return _quoted(str(field.default or ""))
        return 'b""'
    if not field.has_default or field.default == "":
        return FIXED[field.type].default
    return _fixed_default(field.type, field.default)


def _quoted(text: str) -> str:
    # JSON's escapes are also Python's, but for pairs of surrogates, which this leaves alone.
    return json.dumps(text, ensure_ascii=False)


def _fixed_default(type_name: str, value: Any) -> str:
    if type_name == "bool":
        return "True" if value in (True, "true") else "False"
    if type_name == "float64":
        return repr(float(value))
    if type_name == "uuid":
        return repr(base64.urlsafe_b64decode(str(value) + "=="))
    return str(int(str(value), 0))
