"""Plan the sweep over an array of structs: the elements of one size, unpacked by one call.

An array whose elements hold only fixed-width fields is one `iter_unpack`. Arrays of structs and
records inside them are assumed to be empty, and arrays of numbers as long as the first element's
(the partitions of a topic have equally many replicas). That is checked for each element; the first
that differs ends the sweep, and the ordinary loop goes on from there.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from codegen.decode_steps import PlainSweep, SweepGroup, UnevenSweep
from codegen.layout import Item, Layout
from codegen.packers import PackerSet
from codegen.steps import Default
from codegen.types import FIXED

__all__ = ["empty_value", "is_steady", "plan_sweep", "surprise"]


def plan_sweep(
    layout: Layout, packers: PackerSet, name: str, defaults: tuple[Default, ...]
) -> PlainSweep | UnevenSweep | None:
    """The sweep over a layout, None where its elements rarely have equal sizes."""
    if not layout.items or not all(is_steady(item) for item in layout.items):
        return None
    cells = _Cells()
    for item in layout.items:
        cells.add(item)
    cells.close_group()
    if len(cells.empty) == len(layout.items):
        return None
    if layout.flexible:
        cells.codes.append("B")
        cells.targets.append("n")
        cells.surprises.append("n")
    targets = ", ".join(cells.targets) + ("," if len(cells.targets) == 1 else "")
    condition = " or ".join(cells.surprises)
    values = (*cells.empty, *defaults)
    if not cells.groups:
        packer = packers.name("sweep", cells.codes)
        return PlainSweep(layout.name, packer, layout.min_size, targets, condition, values)
    text = f">{''.join(cells.codes)}"
    return UnevenSweep(name, text, layout.name, targets, condition, tuple(cells.groups), values)


def is_steady(item: Item) -> bool:
    """Whether elements tend to have this field in equal length: numbers, or mostly empty."""
    if item.kind in ("fixed", "records"):
        return True
    if item.kind != "array":
        return False
    return item.element == "struct" or _is_numbers(item)


def surprise(item: Item, local: str, *, is_bounded: bool = False) -> str:
    """Condition: an array or records field with this length is not empty.

    With `is_bounded` lengths that cannot be are taken for empty, as the slow reader does.
    """
    empty = 1 if item.compact else 0
    if item.nullable or is_bounded:
        return f"{local} > {empty}"
    return f"{local} != {empty}" if empty else local


def empty_value(item: Item, local: str, *, is_bounded: bool = False) -> str:
    """What an empty one becomes: nothing or null."""
    empty = 'b""' if item.kind == "records" else "[]"
    if not item.nullable:
        return empty
    present = local if item.compact else f"{local} == 0" if is_bounded else f"{local} >= 0"
    return f"{empty} if {present} else None"


@dataclass
class _Cells:
    """What a swept element consists of, collected field by field."""

    codes: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    surprises: list[str] = field(default_factory=list)
    empty: list[Default] = field(default_factory=list)
    groups: list[SweepGroup] = field(default_factory=list)
    numbers: list[Item] = field(default_factory=list)
    gap: int = 0
    count: int = 0

    def add(self, item: Item) -> None:
        """Append one field."""
        if _is_numbers(item):
            self.numbers.append(item)
            return
        self.close_group()
        if item.kind == "fixed":
            self.codes.append(FIXED[item.type].code)
            self.targets.append(f"o.{item.attribute}")
            self.gap += FIXED[item.type].size
            return
        local = f"n{len(self.empty)}"
        self.codes.append("B" if item.compact else "i")
        self.targets.append(local)
        self.gap += item.min_size
        self.surprises.append(surprise(item, local))
        self.empty.append(Default(f"o.{item.attribute}", empty_value(item, local)))

    def close_group(self) -> None:
        """Make a group of the arrays of numbers that stand together."""
        if not self.numbers:
            return
        # Their bytes; how many these are is known once there is an element.
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
    return FIXED[item.type].code + "c" * item.compact + "n" * item.nullable


def _description(item: Item) -> str:
    return f'("{FIXED[item.type].code}", {item.compact}, {item.nullable})'


def _copy(item: Item, local: str) -> Default:
    value = f"[*{local}] if {local} is not None else None" if item.nullable else f"[*{local}]"
    return Default(f"o.{item.attribute}", value)
