"""The steps of decoders: a class for each kind.

A decoder has the input in `buf` and its position in `pos`; `n` is the last length that was read,
`o` the object that is filled. `at` and the starts are counted from `pos`.
"""

from __future__ import annotations

from kraftwire.wire.functions.steps import Step

__all__ = [
    "Advance", "Bytes", "KnownTags", "LongLength", "NoTags", "NullableStruct", "Numbers",
    "OneStruct", "OrNone", "ReadByte", "RecordsLength", "RefuseNull", "Structs", "Text",
    "UnknownTags", "Unpack", "Values",
]  # fmt: skip


class ReadByte(Step):
    """Read one byte: a length, or a number that has no sign."""

    TEXT = "{target} = buf[{start}]"
    target: str
    start: str


class Unpack(Step):
    """Read adjacent values of fixed width by one `struct` call."""

    TEXT = "{targets} = {packer}(buf, {start})"
    targets: str
    packer: str
    start: str


class Advance(Step):
    """Move the position past what was read."""

    TEXT = "pos += {size}"
    size: int


class RefuseNull(Step):
    """Refuse a length that stands for null."""

    TEXT = """
if n < 0:
    raise ValueError
"""


class LongLength(Step):
    """Read a compact length of more than one byte, or one that stands for null."""

    TEXT = """
if {condition}:
    n, pos = {helper}(buf, pos, {at}, n)
"""
    condition: str
    helper: str
    at: int

    @property
    def helpers(self) -> frozenset[str]:
        """The helper that reads the length."""
        return frozenset({self.helper})


class RecordsLength(Step):
    """Read the length before records, which mostly takes two bytes."""

    TEXT = """
if {condition}:
    second = buf[{start}]
    if 0 < second < 128:
        n += (second << 7) - 128
        pos += 1
    else:
        n, pos = long_length(buf, pos, {at}, n)
"""
    condition: str
    start: str
    at: int

    @property
    def helpers(self) -> frozenset[str]:
        """The helper that reads longer lengths."""
        return frozenset({"long_length"})


class Text(Step):
    """Read a string of `n` bytes."""

    TEXT = "{target} = buf[{start} : (pos := {stop})].decode()"
    target: str
    start: str
    stop: str


class Bytes(Step):
    """Read bytes or records: a slice of `source`, the input or a view of it."""

    TEXT = "{target} = {source}[{start} : (pos := {stop})]"
    target: str
    source: str
    start: str
    stop: str


class Numbers(Step):
    """Read an array of numbers."""

    TEXT = """
{target} = [*UNPACK_{code}[{count}](buf, {start})]
pos += {size}
"""
    target: str
    code: str
    count: str
    start: str
    size: str


class Values(Step):
    """Read an array of strings, bytes or uuids by a helper."""

    TEXT = "{target}, pos = {helper}(buf, {start}, {count})"
    target: str
    helper: str
    start: str
    count: str

    @property
    def helpers(self) -> frozenset[str]:
        """The helper that reads the array."""
        return frozenset({self.helper})


class Structs(Step):
    """Read an array of structs; `left` is ", left" where the function counts small ones."""

    TEXT = "{target}, pos{left} = {function}(buf, {start}, {count}{left})"
    target: str
    function: str
    start: str
    count: str
    left: str


class OneStruct(Step):
    """Read a struct by itself, as an array of one."""

    TEXT = "({target},), pos{left} = {function}(buf, {start}, 1{left})"
    target: str
    function: str
    start: str
    left: str


class NullableStruct(Step):
    """Read a struct that may be null."""

    TEXT = """
if {is_null}:
    {one.target} = None
    pos += {at}
else:
    {one}
"""
    is_null: str
    one: OneStruct
    at: int

    @property
    def inner(self) -> tuple[Step, ...]:
        """The step that reads the struct."""
        return (self.one,)


class OrNone(Step):
    """Read a value whose length may stand for null; `skip` moves past that length."""

    TEXT = """
if {condition}:
    {value}
else:
    {target} = None
    {skip}
"""
    condition: str
    value: Step
    target: str
    skip: tuple[Advance, ...]

    @property
    def inner(self) -> tuple[Step, ...]:
        """The steps that read the value."""
        return (self.value,)


class NoTags(Step):
    """Set the unknown tagged fields to None, in a version that cannot have any."""

    TEXT = "o.unknown_tagged_fields = None"


class UnknownTags(Step):
    """Read tagged fields of which none is known."""

    TEXT = """
o.unknown_tagged_fields = None
if n:
    o.unknown_tagged_fields, pos = unknown_tags(buf, pos, n)
"""

    @property
    def helpers(self) -> frozenset[str]:
        """The helper that reads tagged fields."""
        return frozenset({"unknown_tags"})


class KnownTags(Step):
    """Read tagged fields of which some are known, by a function of their own."""

    TEXT = """
o.unknown_tagged_fields = None
if n:
    pos{left} = {function}(o, buf, pos, n{left})
"""
    function: str
    left: str
