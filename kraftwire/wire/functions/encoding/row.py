"""Plan the row of a struct: it and its short arrays of numbers, packed by one call.

The counterpart of a sweep. Arrays of structs and records must be empty for it; where they are
not, the ordinary steps write the struct.
"""

from __future__ import annotations

from kraftwire.wire.functions.decoding.sweep import is_steady
from kraftwire.wire.functions.encoding.steps import (
    Pack,
    PackCounted,
    PackRow,
    Put,
    PutLengthOf,
    RecordsRow,
    StartRow,
    Take,
    Zero,
)
from kraftwire.wire.functions.layout import Item, Layout
from kraftwire.wire.functions.packers import CODES, PackerSet
from kraftwire.wire.functions.steps import Step
from kraftwire.wire.functions.values import Value

__all__ = ["PlannedRow", "ignored", "local_name", "plan_row", "size_of"]

# Names that the texts of steps use themselves.
_TAKEN = frozenset({
    "add", "bool", "bytes", "items", "len", "n", "o", "out", "parent", "row", "rows", "s", "tags",
})  # fmt: skip
_TAKEN_STARTS = ("encode_", "put_", "row_")
# A local variable with the first prefix holds how many values an array has; one with the second,
# how many the row has room for.
_COUNT = "_n"
_ROOM = "_room"
_TAKEN_ENDS = (_COUNT, _ROOM)
# Lengths up to this take one byte, with one added.
_ONE_BYTE_COUNT = 127


class PlannedRow(Value):
    """The row of a struct, and the layout of its packers where these depend on counts.

    `start` holds the steps before the loop over structs.
    """

    start: tuple[StartRow, ...]
    condition: str
    takes: tuple[Take, ...]
    row: Pack | PackCounted | RecordsRow
    layout: str

    def before(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        """Return the row, with the ordinary steps where it can fail."""
        if not self.condition:
            return (*self.takes, self.row)
        return (PackRow(self.condition, self.takes, self.row, steps),)


def local_name(attribute: str) -> str:
    """Return the name of the local variable that holds a field's value."""
    is_taken = attribute in _TAKEN or attribute.startswith(_TAKEN_STARTS)
    is_taken = is_taken or attribute.endswith(_TAKEN_ENDS)
    return f"{attribute}_" if is_taken else attribute


def ignored(complaint: str) -> str:
    """Return the remark that silences a type checker."""
    return f"  # type: ignore[{complaint}]" if complaint else ""


def size_of(value: str) -> str:
    """Return the expression for a value's size in bytes; a view may have wider elements.

    A value without `nbytes` fails here, and the slow writer reports it.
    """
    return f"(len({value}) if {value}.__class__ is bytes else {value}.nbytes)"


def plan_row(layout: Layout, packers: PackerSet, name: str) -> PlannedRow | None:
    """Return the row of a layout; None if it has strings, or only fixed-width fields."""
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
    row = cells.row(name, packers)
    if records and full:
        assert isinstance(row, Pack)
        row = RecordsRow(local_name(records.attribute), full, row)
    takes = [Take(local_name(each.attribute), f"o.{each.attribute}") for each in variable]
    return PlannedRow(
        start=cells.start(),
        condition=" and ".join(cells.conditions),
        takes=(*takes, *cells.counts),
        row=row,
        layout=f">{''.join(cells.codes)}" if cells.arrays else "",
    )


class _Cells:
    """The parts of a row, collected field by field."""

    def __init__(self) -> None:
        self.codes: list[str] = []
        self.arguments: list[str] = []
        self.conditions: list[str] = []
        self.arrays: list[str] = []
        self.counts: list[Take] = []

    def add(self, item: Item, *, is_conditional: bool = True) -> None:
        """Append one field."""
        if item.kind == "fixed":
            self.codes.append(CODES[item.type])
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
            self.codes.append(f"%d{CODES[item.type]}")
            self.arguments.append(f"*{local}")
            self.arrays.append(local)
            count = f"0 if {local} is None else len({local})" if item.nullable else f"len({local})"
            self.counts.append(Take(local + _COUNT, count))

    def start(self) -> tuple[StartRow, ...]:
        """Return the steps that the row needs before the loop."""
        rooms = "".join(f"{array}{_ROOM} = " for array in self.arrays)
        return (StartRow(rooms),) if rooms else ()

    def row(self, name: str, packers: PackerSet) -> Pack | PackCounted | RecordsRow:
        """Return the call that packs everything."""
        arguments = ", ".join(self.arguments)
        if not self.arrays:
            return Pack(packers.name("put", self.codes), arguments)
        return PackCounted(
            differs=" or ".join(f"{array}{_COUNT} != {array}{_ROOM}" for array in self.arrays),
            rooms=", ".join(array + _ROOM for array in self.arrays),
            counts=", ".join(array + _COUNT for array in self.arrays),
            rows=name,
            arguments=arguments,
        )


def _records_row(item: Item, cells: _Cells, packers: PackerSet) -> tuple[Step, ...]:
    """Return the row for records that are there: they follow the row, so they may have any size."""
    if cells.arrays:
        return ()
    local = local_name(item.attribute)
    codes, arguments = [*cells.codes], [*cells.arguments]
    if not item.compact:
        codes.append("i")
        arguments.append(size_of(local)[1:-1])
    steps: list[Step] = []
    if codes:
        ignore = "" if item.compact else ignored("union-attr")
        steps.append(Pack(packers.name("put", codes), ", ".join(arguments), ignore))
    if not item.compact:
        return (*steps, Put(local))
    return (*steps, PutLengthOf(f"{size_of(local)} + 1", ignored("union-attr")), Put(local), Zero())


def _condition(item: Item, local: str, is_numbers: bool) -> str:
    """Return the condition that the row can hold the field; fails on a None that is not allowed."""
    if not is_numbers:
        return f"not {local}" if item.nullable else f"not len({local})"
    parts = [f"{local} is not None"] if item.nullable else []
    if item.compact:
        parts.append(f"{local}{_COUNT} < {_ONE_BYTE_COUNT}")
    return " and ".join(parts)


def _length(item: Item, local: str, is_numbers: bool) -> str:
    if is_numbers:
        return f"{local}{_COUNT} + 1" if item.compact else f"{local}{_COUNT}"
    empty, null = (1, 0) if item.compact else (0, -1)
    return f"{null} if {local} is None else {empty}" if item.nullable else str(empty)
