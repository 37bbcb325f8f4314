"""The functions of decoders, which hold the steps."""

from __future__ import annotations

from kraftwire.wire.functions.decoding.loops import Guess, PlainSweep, UnevenSweep
from kraftwire.wire.functions.steps import Function, Step

__all__ = ["DecodeArray", "DecodeRoot", "DecodeTags", "Spend", "TagBranch", "View"]


class TagBranch(Step):
    """The branch that reads one known tag; `word` is if or elif."""

    TEXT = """
{word} tag == {tag}:
    {steps}
"""
    word: str
    tag: int
    steps: tuple[Step, ...]

    @property
    def inner(self) -> tuple[Step, ...]:
        """The steps of the branch."""
        return self.steps


class DecodeTags(Function):
    """The function that reads the tagged fields of a struct."""

    TEXT = """
def {name}(
    o: {struct}, buf: bytes, pos: int, count: int{parameter}
) -> {result}:
    unknown: dict[int, bytes] = {{}}
    count, pos = tag_count(buf, pos, count)
    for _ in range(count):
        tag = buf[pos]
        pos += 1
        if tag > 127:
            tag, pos = read_uvarint(buf, pos - 1)
        size = buf[pos]
        pos += 1
        if size > 127:
            size, pos = read_uvarint(buf, pos - 1)
        end = pos + size
        if end > len(buf):
            raise ValueError
        {branches}
        else:
            unknown[tag] = buf[pos:end]
            pos = end
        if pos != end:
            raise ValueError
    if unknown:
        o.unknown_tagged_fields = unknown
    return pos{left}
"""
    branches: tuple[TagBranch, ...]
    takes_budget: bool
    left: str
    parameter: str
    result: str

    @property
    def inner(self) -> tuple[Step, ...]:
        """The branches for the known tags."""
        return self.branches

    @property
    def helpers(self) -> frozenset[str]:
        """The functions that read numbers and lengths of tags."""
        return frozenset({"read_uvarint", "tag_count"})


class View(Step):
    """Set the variable that records are sliced from."""

    TEXT = "view = memoryview(buf)"


class Spend(Step):
    """Subtract the elements of small structs from the budget."""

    TEXT = "left -= count"


class DecodeRoot(Function):
    """The function that reads a message; `left` is the budget of small structs."""

    TEXT = """
def {name}(buf: bytes, pos: int, left: int) -> tuple[{struct}, int]:
    # Versions {versions}.
    {view}
    o = next(blank_{struct})
    {steps}
    return o, pos
"""
    view: tuple[View, ...]
    steps: tuple[Step, ...]
    takes_budget = True

    @property
    def inner(self) -> tuple[Step, ...]:
        """The steps of the function, in order."""
        return self.steps


class DecodeArray(Function):
    """The function that reads `count` structs. The elements of small ones are counted in `left`."""

    TEXT = """
def {name}(
    buf: bytes, pos: int, count: int{parameter}
) -> tuple[list[{struct}], int{result}]:
    # Versions {versions}.
    if {absurd}:
        raise ValueError
    {spend}
    {view}
    out: list[{struct}] = []
    {sweep}
    {guess}
    for o in islice(blank_{struct}, count):
        {steps}
        out.append(o)
    return out, pos{left}
"""
    min_size: int
    absurd: str
    takes_budget: bool
    left: str
    parameter: str
    result: str
    spend: tuple[Spend, ...]
    view: tuple[View, ...]
    sweep: tuple[PlainSweep | UnevenSweep, ...]
    guess: tuple[Guess, ...]
    steps: tuple[Step, ...]

    @property
    def inner(self) -> tuple[Step, ...]:
        """The steps of the function, in order."""
        return (*self.sweep, *self.guess, *self.steps)

    @property
    def helpers(self) -> frozenset[str]:
        """The function that takes as many blank objects as are needed."""
        return frozenset({"islice"})

    @property
    def remarks(self) -> str:
        """The least size of an element, and whether elements are counted."""
        return f", at least {self.min_size} bytes" + (", budgeted" if self.spend else "")
