"""Plan the row of a struct: it and its short arrays of numbers, packed by one call.

The counterpart of a sweep. Arrays of structs and records must be empty for it; where they are
not, the ordinary steps write the struct.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from codegen.encode_steps import Pack, PackRow, Put, PutLengthOf, RecordsRow, Take, Zero
from codegen.layout import Item, Layout
from codegen.packers import PackerSet
from codegen.steps import Step
from codegen.sweep_plan import is_steady
from codegen.types import FIXED

__all__ = ["PlannedRow", "local_name", "plan_row", "size_of"]

# Names that the templates use themselves.
_TAKEN = frozenset({
    "add", "bool", "bytes", "items", "len", "n", "o", "out", "parent", "rows", "s", "tags",
})  # fmt: skip
_TAKEN_STARTS = ("encode_", "put_", "row_")
# Lengths up to this take one byte, with one added.
_ONE_BYTE_COUNT = 127


@dataclass(frozen=True)
class PlannedRow:
    """The row of a struct, and the layout of its packers where these depend on counts."""

    condition: str
    takes: tuple[Take, ...]
    row: Pack | RecordsRow
    layout: str

    def before(self, steps: tuple[Step, ...]) -> PackRow:
        """The step that tries the row before the ordinary steps."""
        return PackRow(self.condition, self.takes, self.row, steps)


def local_name(attribute: str) -> str:
    """Name of the local variable that holds a field's value."""
    is_taken = attribute in _TAKEN or attribute.startswith(_TAKEN_STARTS)
    return f"{attribute}_" if is_taken else attribute


def size_of(value: str) -> str:
    """Expression for the bytes that a value takes: a view of wider numbers has fewer elements.

    What has no `nbytes` stumbles, and the slow writer knows better.
    """
    return f"(len({value}) if {value}.__class__ is bytes else {value}.nbytes)"


def plan_row(layout: Layout, packers: PackerSet, name: str) -> PlannedRow | None:
    """The row of a layout, None where it has strings or nothing but fixed-width fields."""
    variable = [item for item in layout.items if item.kind != "fixed"]
    if not variable or not all(is_steady(item) for item in layout.items):
        return None
    last = variable[-1] if variable[-1] is layout.items[-1] else None
    records = last if last and last.kind == "records" else None
    cells = _Cells()
    for item in layout.items:
        if item is not records:
            cells.add(item)
    full = _records_row(records, cells, packers) if records else ()
    if records:
        cells.add(records, is_conditional=False)
    if layout.flexible:
        cells.codes.append("x")
    counted = f"{name}[{', '.join(cells.counts)}]"
    packer = counted if cells.counts else packers.name("put", cells.codes)
    pack = Pack(packer, ", ".join(cells.arguments))
    row = RecordsRow(local_name(records.attribute), full, pack) if records and full else pack
    return PlannedRow(
        condition=" and ".join(cells.conditions),
        takes=tuple(Take(local_name(each.attribute), f"o.{each.attribute}") for each in variable),
        row=row,
        layout=f">{''.join(cells.codes)}" if cells.counts else "",
    )


@dataclass
class _Cells:
    """What a row consists of, collected field by field."""

    codes: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)
    counts: list[str] = field(default_factory=list)

    def add(self, item: Item, *, is_conditional: bool = True) -> None:
        """Append one field."""
        if item.kind == "fixed":
            self.codes.append(FIXED[item.type].code)
            self.arguments.append(f"o.{item.attribute}")
            return
        local = local_name(item.attribute)
        is_numbers = item.kind == "array" and item.element == "fixed"
        self.codes.append("b" if item.compact else "i")
        self.arguments.append(_length(item, local, is_numbers))
        condition = _condition(item, local, is_numbers)
        if condition and is_conditional:
            self.conditions.append(condition)
        if is_numbers:
            self.codes.append(f"%d{FIXED[item.type].code}")
            self.arguments.append(f"*{local}")
            self.counts.append(f"len({local})")


def _records_row(item: Item, cells: _Cells, packers: PackerSet) -> tuple[Step, ...]:
    """The row for records that are there: they follow it, so they need not be empty."""
    if cells.counts:
        return ()
    local = local_name(item.attribute)
    codes, arguments = [*cells.codes], [*cells.arguments]
    if not item.compact:
        codes.append("i")
        arguments.append(size_of(local)[1:-1])
    steps: list[Step] = []
    if codes:
        ignore = "" if item.compact else "union-attr"
        steps.append(Pack(packers.name("put", codes), ", ".join(arguments), ignore))
    if not item.compact:
        return (*steps, Put(local))
    return (*steps, PutLengthOf(f"{size_of(local)} + 1", "union-attr"), Put(local), Zero())


def _condition(item: Item, local: str, is_numbers: bool) -> str:
    """Whether the row can hold the field; stumbles on None where that is not allowed."""
    if not is_numbers:
        return f"not {local}" if item.nullable else f"not len({local})"
    parts = [f"{local} is not None"] if item.nullable else []
    if item.compact:
        parts.append(f"len({local}) < {_ONE_BYTE_COUNT}")
    return " and ".join(parts)


def _length(item: Item, local: str, is_numbers: bool) -> str:
    if is_numbers:
        return f"len({local}) + 1" if item.compact else f"len({local})"
    empty, null = (1, 0) if item.compact else (0, -1)
    return f"{null} if {local} is None else {empty}" if item.nullable else str(empty)
