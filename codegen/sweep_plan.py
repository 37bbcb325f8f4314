"""Plan the sweep over an array of structs: the elements of one size, unpacked by one call.

An array whose elements hold only fixed-width fields is one `iter_unpack`. Arrays of structs and
records inside them are assumed to be empty, and arrays of numbers as long as the first element's
(the partitions of a topic have equally many replicas). That is checked for each element; the first
that differs ends the sweep, and the ordinary loop goes on from there.
"""

from __future__ import annotations

from codegen.layout import Item, Layout
from codegen.packers import PackerSet
from codegen.steps import Sweep, SweepArray, SweepGroup
from codegen.types import FIXED

__all__ = ["is_steady", "plan_sweep"]


def plan_sweep(layout: Layout, packers: PackerSet) -> Sweep | None:
    """The sweep over a layout, None where its elements rarely have equal sizes."""
    if not layout.items or not all(is_steady(item) for item in layout.items):
        return None
    codes: list[str] = []
    targets: list[str] = []
    empty: list[SweepArray] = []
    groups: list[SweepGroup] = []
    group: list[SweepArray] = []
    gap = 0
    for item in (*layout.items, None):
        if item is not None and item.kind == "array" and item.element == "fixed":
            group.append(_array(item, f"r{sum(len(g.arrays) for g in groups) + len(group)}"))
            continue
        if group:
            name = f"b{len(groups)}"
            groups.append(SweepGroup(name, gap, tuple(group)))
            codes.append("%ds")
            targets.append(name)
            group, gap = [], 0
        if item is None:
            break
        if item.kind == "fixed":
            codes.append(FIXED[item.type].code)
            targets.append(f"o.{item.attribute}")
            gap += FIXED[item.type].size
            continue
        array = _array(item, f"n{len(empty)}")
        empty.append(array)
        codes.append("B" if item.compact else "i")
        targets.append(array.local)
        gap += 1 if item.compact else 4
    if len(empty) == len(layout.items):
        return None
    if layout.flexible:
        codes.append("B")
        targets.append("n")
    target_text = ", ".join(targets) + ("," if len(targets) == 1 else "")
    packer = "" if groups else packers.name("sweep", codes)
    text = ">" + "".join(codes)
    return Sweep(packer, target_text, layout.flexible, tuple(empty), tuple(groups), text)


def is_steady(item: Item) -> bool:
    """Whether elements tend to have this field in equal length: numbers, or mostly empty."""
    if item.kind in ("fixed", "records"):
        return True
    if item.kind != "array":
        return False
    return item.element == "struct" or (item.element == "fixed" and item.type != "uuid")


def _array(item: Item, local: str) -> SweepArray:
    kind = FIXED[item.type] if item.element == "fixed" else None
    return SweepArray(
        attribute=item.attribute,
        local=local,
        code=kind.code if kind else "",
        compact=item.compact,
        nullable=item.nullable,
        empty='b""' if item.kind == "records" else "[]",
    )
