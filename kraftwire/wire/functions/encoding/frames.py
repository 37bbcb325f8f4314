"""The functions of encoders, which hold the steps."""

from __future__ import annotations

from kraftwire.wire.functions.encoding.steps import Refuse, StartRow
from kraftwire.wire.functions.steps import Function, Step, zero_uuid

__all__ = ["EncodeArray", "EncodeRoot", "EncodeRows", "EncodeTags", "TagBranch", "TryRows"]


class TagBranch(Step):
    """The branch that writes one tagged field, unless it is at its default."""

    TEXT = """
if {condition}:
    {out} = []
    add = out.append
    {steps}
    tags[{tag}] = b"".join(out)
"""
    tag: int
    condition: str
    out: str
    steps: tuple[Step, ...]

    @property
    def inner(self) -> tuple[Step, ...]:
        """The steps of the branch."""
        return self.steps

    @property
    def helpers(self) -> frozenset[str]:
        """The zero uuid, if the condition compares with it."""
        return zero_uuid(self.condition)


class EncodeTags(Function):
    """The function that writes the tagged fields of a struct."""

    TEXT = """
def {name}(o: {struct}, parent: Parts) -> None:
    tags: dict[int, bytes] = {{}}
    {branches}
    put_tags(parent, tags, o.unknown_tagged_fields)
"""
    branches: tuple[TagBranch, ...]

    @property
    def inner(self) -> tuple[Step, ...]:
        """The branches for the tagged fields."""
        return self.branches

    @property
    def helpers(self) -> frozenset[str]:
        """The helper that writes tagged fields."""
        return frozenset({"put_tags"})


class EncodeRoot(Function):
    """The function that writes a message."""

    TEXT = """
def {name}(o: {struct}) -> bytes:
    # Versions {versions}.
    {refusal}
    out: Parts = []
    add = out.append
    {steps}
    return b"".join(out)
"""
    refusal: tuple[Refuse, ...]
    steps: tuple[Step, ...]

    @property
    def inner(self) -> tuple[Step, ...]:
        """The steps of the function, in order."""
        return (*self.refusal, *self.steps)


class EncodeRows(Function):
    """The function that writes structs of fixed-width values, unless any is `odd`."""

    TEXT = """
def {name}(items: Sequence[{struct}], out: Parts) -> None:
    # Versions {versions}.
    rows = [{packed} for o in items if not ({odd})]
    if len(rows) != len(items):
        raise ValueError
    out += rows
"""
    packed: str
    odd: str

    @property
    def helpers(self) -> frozenset[str]:
        """The zero uuid, if the condition compares with it."""
        return zero_uuid(self.odd)


class TryRows(Step):
    """A first try at structs of fixed-width values, of which none may be `odd`."""

    TEXT = """
rows = [{packed} for o in items if not ({odd})]
if len(rows) == len(items):
    out += rows
    return
"""
    packed: str
    odd: str

    @property
    def helpers(self) -> frozenset[str]:
        """The zero uuid, if the condition compares with it."""
        return zero_uuid(self.odd)


class EncodeArray(Function):
    """The function that writes an array of structs."""

    TEXT = """
def {name}(items: Sequence[{struct}], out: Parts) -> None:
    # Versions {versions}.
    {rows}
    add = out.append
    {start}
    for o in items:
        {steps}
"""
    rows: tuple[TryRows, ...]
    start: tuple[StartRow, ...]
    steps: tuple[Step, ...]

    @property
    def inner(self) -> tuple[Step, ...]:
        """The steps of the function, in order."""
        return (*self.rows, *self.start, *self.steps)
