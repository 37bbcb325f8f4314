"""Plan the sweep over an array of structs: the elements of one size, unpacked by one call.

An array whose elements hold only fixed-width fields is one `iter_unpack`. Where they also hold
arrays of numbers, or arrays of structs and records that are mostly empty, the elements of one
array still tend to have equal lengths (the partitions of a topic have equally many replicas), so
the first element's lengths are assumed for all, and checked for each; the first that differs ends
the sweep and the ordinary loop goes on from there.
"""

from __future__ import annotations

from codegen.layout import Item, Layout
from codegen.packers import PackerSet
from codegen.steps import Sweep, SweepArray
from codegen.types import FIXED

__all__ = ["is_steady", "plan_sweep"]


def plan_sweep(layout: Layout, packers: PackerSet) -> Sweep | None:
    """The sweep over a layout, None where its elements rarely have equal sizes."""
    if not layout.items or not all(is_steady(item) for item in layout.items):
        return None
    codes: list[str] = []
    targets: list[str] = []
    arrays: list[SweepArray] = []
    for item in layout.items:
        if item.kind == "fixed":
            codes.append(FIXED[item.type].code)
            targets.append(f"o.{item.attribute}")
            continue
        array = _array(item, len(arrays))
        arrays.append(array)
        codes.append("B" if item.compact else "i")
        targets.append(array.length)
        if array.size:
            # The size in bytes is filled in when the first element is known.
            codes.append("%ds")
            targets.append(array.data)
    if layout.flexible:
        codes.append("B")
        targets.append("n")
    target_text = ", ".join(targets) + ("," if len(targets) == 1 else "")
    if arrays:
        return Sweep("", target_text, layout.flexible, tuple(arrays), ">" + "".join(codes))
    return Sweep(packers.name("sweep", codes), target_text, layout.flexible)


def is_steady(item: Item) -> bool:
    """Whether elements tend to have this field in equal length: numbers, or mostly empty."""
    if item.kind in ("fixed", "records"):
        return True
    if item.kind != "array":
        return False
    return item.element == "struct" or (item.element == "fixed" and item.type != "uuid")


def _array(item: Item, index: int) -> SweepArray:
    is_numbers = item.kind == "array" and item.element == "fixed"
    kind = FIXED[item.type] if is_numbers else None
    return SweepArray(
        attribute=item.attribute,
        length=f"n{index}",
        data=f"b{index}",
        code=kind.code if kind else "",
        size=kind.size if kind else 0,
        compact=item.compact,
        nullable=item.nullable,
        empty='b""' if item.kind == "records" else "[]",
    )
