"""Plan the sweep over an array of structs: the elements of one size, unpacked by one call.

An array whose elements hold only fixed-width fields is one `iter_unpack`. Arrays of structs and
records inside them are assumed to be empty, and arrays of numbers as long as the first element's
(the partitions of a topic have equally many replicas). That is checked for each element; the first
that differs ends the sweep, and the ordinary loop goes on from there.
"""

from __future__ import annotations

from kraftwire.wire.functions.decoding.loops import Break, PlainSweep, SweepGroup, UnevenSweep
from kraftwire.wire.functions.layout import Item, Layout
from kraftwire.wire.functions.packers import CODES, PackerSet
from kraftwire.wire.functions.steps import Default
from kraftwire.wire.sizes import FIXED_SIZES

__all__ = ["empty_value", "is_steady", "plan_sweep", "surprise"]


def plan_sweep(
    layout: Layout, packers: PackerSet, name: str, defaults: tuple[Default, ...]
) -> tuple[PlainSweep | UnevenSweep, ...]:
    """Return the sweep over a layout; empty where its elements rarely have equal sizes."""
    if not layout.items or not all(is_steady(item) for item in layout.items):
        return ()
    cells = _Cells()
    for item in layout.items:
        cells.add(item)
    cells.close_group()
    if len(cells.empty) == len(layout.items):
        return ()
    if layout.flexible:
        cells.codes.append("B")
        cells.targets.append("n")
        cells.surprises.append("n")
    targets = ", ".join(cells.targets) + ("," if len(cells.targets) == 1 else "")
    odd = " or ".join(cells.surprises)
    condition = (Break(odd),) if odd else ()
    values = (*cells.empty, *defaults)
    if not cells.groups:
        packer = packers.name("sweep", cells.codes)
        size = layout.min_size
        return (PlainSweep(layout.name, packer, size, targets, condition, values),)
    text = f">{''.join(cells.codes)}"
    groups = tuple(cells.groups)
    return (UnevenSweep(name, text, layout.name, targets, condition, groups, values),)


def is_steady(item: Item) -> bool:
    """Whether a field mostly has the same length in all elements: numbers, or mostly empty."""
    if item.kind in ("fixed", "records"):
        return True
    if item.kind != "array":
        return False
    return item.element == "struct" or _is_numbers(item)


def surprise(item: Item, local: str, *, is_bounded: bool = False) -> str:
    """Return the condition that an array or records field of this length is not empty.

    With `is_bounded`, impossible lengths count as empty, as for the slow reader.
    """
    empty = 1 if item.compact else 0
    if item.nullable or is_bounded:
        return f"{local} > {empty}"
    return f"{local} != {empty}" if empty else local


def empty_value(item: Item, local: str, *, is_bounded: bool = False) -> str:
    """Return the value of an empty field: an empty one or null."""
    empty = 'b""' if item.kind == "records" else "[]"
    if not item.nullable:
        return empty
    present = local if item.compact else f"{local} == 0" if is_bounded else f"{local} >= 0"
    return f"{empty} if {present} else None"


class _Cells:
    """The parts of a swept element, collected field by field."""

    def __init__(self) -> None:
        self.codes: list[str] = []
        self.targets: list[str] = []
        self.surprises: list[str] = []
        self.empty: list[Default] = []
        self.groups: list[SweepGroup] = []
        self.numbers: list[Item] = []
        self.gap = 0
        self.count = 0

    def add(self, item: Item) -> None:
        """Append one field."""
        if _is_numbers(item):
            self.numbers.append(item)
            return
        self.close_group()
        if item.kind == "fixed":
            self.codes.append(CODES[item.type])
            self.targets.append(f"o.{item.attribute}")
            self.gap += FIXED_SIZES[item.type]
            return
        local = f"n{len(self.empty)}"
        self.codes.append("B" if item.compact else "i")
        self.targets.append(local)
        self.gap += item.min_size
        self.surprises.append(surprise(item, local))
        self.empty.append(Default(f"o.{item.attribute}", empty_value(item, local)))

    def close_group(self) -> None:
        """Make a group of the adjacent arrays of numbers that were added last."""
        if not self.numbers:
            return
        # The bytes of the arrays; their number is known once an element is read.
        data = f"b{len(self.groups)}"
        self.codes.append("%ds")
        self.targets.append(data)
        names = [f"r{self.count + at}" for at in range(len(self.numbers))]
        self.groups.append(
            SweepGroup(
                lists="_".join(["lists", *map(_letters, self.numbers)]),
                arguments=", ".join(map(_description, self.numbers)),
                gap=self.gap,
                bytes=data,
                locals=", ".join(names) + ("," if len(names) == 1 else ""),
                values=tuple(map(_copy, self.numbers, names)),
            )
        )
        self.count += len(names)
        self.numbers = []
        self.gap = 0


def _is_numbers(item: Item) -> bool:
    return item.kind == "array" and item.element == "fixed" and item.type != "uuid"


def _letters(item: Item) -> str:
    return CODES[item.type] + "c" * item.compact + "n" * item.nullable


def _description(item: Item) -> str:
    return f'("{CODES[item.type]}", {item.compact}, {item.nullable})'


def _copy(item: Item, local: str) -> Default:
    value = f"[*{local}] if {local} is not None else None" if item.nullable else f"[*{local}]"
    return Default(f"o.{item.attribute}", value)
