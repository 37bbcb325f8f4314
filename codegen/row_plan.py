"""Plan the row of a struct: it and its short arrays of numbers, packed by one call.

The counterpart of a sweep. Arrays of structs and records must be empty for it; where they are
not, the ordinary steps write the struct.
"""

from __future__ import annotations

from codegen.layout import Item, Layout
from codegen.packers import PackerSet
from codegen.steps import Row, RowArray
from codegen.sweep_plan import is_steady
from codegen.types import FIXED

__all__ = ["local_name", "plan_row"]

# Names that the templates use themselves.
_TAKEN = frozenset({"add", "items", "n", "o", "out", "parent", "s", "tags"})
# Lengths up to this take one byte, with one added.
_ONE_BYTE_COUNT = 127


def local_name(attribute: str) -> str:
    """Name of the local variable that holds a field's value."""
    return f"{attribute}_" if attribute in _TAKEN else attribute


def plan_row(layout: Layout, packers: PackerSet, name: str) -> Row | None:
    """The row of a layout, None where it has strings or nothing but fixed-width fields."""
    variable = [item for item in layout.items if item.kind != "fixed"]
    if not variable or not all(is_steady(item) for item in layout.items):
        return None
    codes: list[str] = []
    arguments: list[str] = []
    conditions: list[str] = []
    counts: list[str] = []
    for item in layout.items:
        if item.kind == "fixed":
            codes.append(FIXED[item.type].code)
            arguments.append(f"o.{item.attribute}")
            continue
        local = local_name(item.attribute)
        is_numbers = item.kind == "array" and item.element == "fixed"
        codes.append("b" if item.compact else "i")
        conditions.append(_condition(item, local, is_numbers))
        arguments.append(_length(item, local, is_numbers))
        if is_numbers:
            codes.append(f"%d{FIXED[item.type].code}")
            arguments.append(f"*{local}")
            counts.append(f"len({local})")
    if layout.flexible:
        codes.append("x")
    arrays = tuple(RowArray(item.attribute, local_name(item.attribute)) for item in variable)
    if counts:
        packer = f"{name}[{', '.join(counts)}]"
    else:
        packer, name = packers.name("put", codes), ""
    return Row(packer, f">{''.join(codes)}" if name else "", " and ".join(conditions),
               ", ".join(arguments), arrays)  # fmt: skip


def _condition(item: Item, local: str, is_numbers: bool) -> str:
    """Whether the row can hold the field; stumbles on None where that is not allowed."""
    if not is_numbers:
        return f"not {local}" if item.nullable else f"not len({local})"
    parts = [f"{local} is not None"] if item.nullable else []
    if item.compact:
        parts.append(f"len({local}) < {_ONE_BYTE_COUNT}")
    return " and ".join(parts) or "True"


def _length(item: Item, local: str, is_numbers: bool) -> str:
    if is_numbers:
        return f"len({local}) + 1" if item.compact else f"len({local})"
    empty, null = (1, 0) if item.compact else (0, -1)
    return f"{null} if {local} is None else {empty}" if item.nullable else str(empty)
