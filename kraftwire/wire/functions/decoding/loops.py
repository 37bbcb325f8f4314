"""Faster loops over structs that assume that their elements are alike: sweeps and guesses."""

from __future__ import annotations

from kraftwire.wire.functions.steps import Default, Step

__all__ = ["Break", "ExpectEmpty", "Guess", "PlainSweep", "SweepGroup", "UnevenSweep"]


class Break(Step):
    """End a fast loop at an element unlike its neighbours, which the ordinary loop reads."""

    TEXT = """
if {surprise}:
    break
"""
    surprise: str


class ExpectEmpty(Step):
    """Assume that an array is empty; any other is left to the ordinary loop."""

    TEXT = """
if {surprise}:
    break
{target} = {value}
"""
    surprise: str
    target: str
    value: str


class SweepGroup(Step):
    """Adjacent arrays of numbers in a swept element, `gap` bytes after those before.

    `lists` reads them from their bytes, into `locals`, from which `values` are made.
    """

    TEXT = """
found = {lists}[{bytes}]
if found is None:
    break
{locals} = found
{values}
"""
    lists: str
    arguments: str
    gap: int
    bytes: str
    locals: str
    values: tuple[Default, ...]


class PlainSweep(Step):
    """A sweep over elements of a known size, read by one `iter_unpack`."""

    TEXT = """
if count > 1:
    for row in {packer}(buf[pos : pos + {size} * count]):
        o = next(blank_{struct})
        {targets} = row
        {surprise}
        {defaults}
        o.unknown_tagged_fields = None
        out.append(o)
    pos += {size} * len(out)
    count -= len(out)
"""
    struct: str
    packer: str
    size: int
    targets: str
    surprise: tuple[Break, ...]
    defaults: tuple[Default, ...]

    @property
    def inner(self) -> tuple[Step, ...]:
        """The steps that set defaults."""
        return self.defaults


class UnevenSweep(Step):
    """A sweep over elements whose arrays of numbers are assumed to be as long as the first's."""

    TEXT = """
if count > 3:
    rows, size = {name}.rows(buf, pos, count)
    for row in rows:
        o = next(blank_{struct})
        {targets} = row
        {surprise}
        {groups}
        {defaults}
        o.unknown_tagged_fields = None
        out.append(o)
    pos += size * len(out)
    count -= len(out)
"""
    name: str
    layout: str
    struct: str
    targets: str
    surprise: tuple[Break, ...]
    groups: tuple[SweepGroup, ...]
    defaults: tuple[Default, ...]

    @property
    def inner(self) -> tuple[Step, ...]:
        """The steps that set the values of the arrays and the defaults."""
        return (*(value for group in self.groups for value in group.values), *self.defaults)

    @property
    def helpers(self) -> frozenset[str]:
        """The classes that read rows and arrays."""
        return frozenset({"Sweep", "lists"})


class Guess(Step):
    """A first try at structs whose arrays are assumed to be empty."""

    TEXT = """
for count in range(count, 0, -1):
    o = next(blank_{struct})
    {steps}
    out.append(o)
else:
    return out, pos{left}
"""
    struct: str
    steps: tuple[Step, ...]
    left: str

    @property
    def inner(self) -> tuple[Step, ...]:
        """The steps of the loop, in order."""
        return self.steps
