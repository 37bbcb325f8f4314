"""The steps of generated decoders: a class for each kind, a macro of `decode.j2` for each class.

A decoder has the input in `buf` and its position in `pos`; `n` is the last length that was read,
`o` the object that is filled. `at` and the starts are counted from `pos`.
"""

from __future__ import annotations

from dataclasses import dataclass

from codegen.steps import Default, Function, Step

__all__ = [
    "Advance", "Bytes", "DecodeArray", "DecodeRoot", "DecodeTags", "ExpectEmpty", "KnownTags",
    "LongLength", "NoTags", "NullableStruct", "Numbers", "OneStruct", "OrNone", "PlainSweep",
    "ReadByte", "RecordsLength", "RefuseNull", "Structs", "SweepGroup", "TagBranch", "Text",
    "UnevenSweep", "UnknownTags", "Unpack", "Values",
]  # fmt: skip


@dataclass(frozen=True)
class ReadByte(Step):
    """One byte, a length, into `n`."""

    start: str


@dataclass(frozen=True)
class Unpack(Step):
    """Adjacent values of fixed width, by one `struct` call."""

    targets: str
    packer: str
    start: str


@dataclass(frozen=True)
class Advance(Step):
    """The position moves over what was read."""

    size: int


@dataclass(frozen=True)
class RefuseNull(Step):
    """A length that says null is refused."""


@dataclass(frozen=True)
class LongLength(Step):
    """A compact length of more than one byte, or one that says null."""

    condition: str
    helper: str
    at: int

    @property
    def helpers(self) -> frozenset[str]:
        """What reads it."""
        return frozenset({self.helper})


@dataclass(frozen=True)
class RecordsLength(Step):
    """The same before records, whose lengths mostly take two bytes."""

    condition: str
    start: str
    at: int

    @property
    def helpers(self) -> frozenset[str]:
        """What reads still longer ones."""
        return frozenset({"long_length"})


@dataclass(frozen=True)
class Text(Step):
    """A string of `n` bytes."""

    target: str
    start: str
    stop: str


@dataclass(frozen=True)
class Bytes(Step):
    """Bytes or records: a slice of `source`, the input or a view of it."""

    target: str
    source: str
    start: str
    stop: str


@dataclass(frozen=True)
class Numbers(Step):
    """An array of numbers."""

    target: str
    code: str
    count: str
    start: str
    size: str


@dataclass(frozen=True)
class Values(Step):
    """An array that a helper reads: of strings, bytes or uuids."""

    target: str
    helper: str
    start: str
    count: str

    @property
    def helpers(self) -> frozenset[str]:
        """What reads it."""
        return frozenset({self.helper})


@dataclass(frozen=True)
class Structs(Step):
    """An array of structs."""

    target: str
    function: str
    start: str
    count: str
    takes_budget: bool


@dataclass(frozen=True)
class OneStruct(Step):
    """A struct by itself, read as an array of one."""

    target: str
    function: str
    start: str
    takes_budget: bool


@dataclass(frozen=True)
class NullableStruct(Step):
    """A struct that may be null."""

    is_null: str
    one: OneStruct
    at: int

    @property
    def inner(self) -> tuple[Step, ...]:
        """The struct."""
        return (self.one,)


@dataclass(frozen=True)
class OrNone(Step):
    """A value whose length may say null."""

    condition: str
    value: Step
    target: str
    at: int

    @property
    def inner(self) -> tuple[Step, ...]:
        """The value."""
        return (self.value,)


@dataclass(frozen=True)
class ExpectEmpty(Step):
    """An array that is taken to be empty; another one is left to the ordinary loop."""

    surprise: str
    target: str
    value: str


@dataclass(frozen=True)
class NoTags(Step):
    """A version without tagged fields."""


@dataclass(frozen=True)
class UnknownTags(Step):
    """Tagged fields of which none is known."""

    @property
    def helpers(self) -> frozenset[str]:
        """What reads them."""
        return frozenset({"unknown_tags"})


@dataclass(frozen=True)
class KnownTags(Step):
    """Tagged fields of which some are known, read by a function of their own."""

    function: str
    takes_budget: bool


@dataclass(frozen=True)
class TagBranch:
    """What to do with one known tag."""

    tag: int
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class DecodeTags(Function):
    """The function that reads the tagged fields of a struct."""

    branches: tuple[TagBranch, ...]
    takes_budget: bool

    @property
    def inner(self) -> tuple[Step, ...]:
        """The steps of all branches."""
        return tuple(step for branch in self.branches for step in branch.steps)

    @property
    def helpers(self) -> frozenset[str]:
        """What reads numbers and lengths of tags."""
        return frozenset({"read_uvarint", "tag_count"})


@dataclass(frozen=True)
class SweepGroup:
    """Arrays of numbers that stand together in a swept element, `gap` bytes after those before.

    `lists` reads them from their bytes, into `locals`, from which `values` are made.
    """

    lists: str
    arguments: str
    gap: int
    bytes: str
    locals: str
    values: tuple[Default, ...]


@dataclass(frozen=True)
class PlainSweep(Step):
    """Elements of a size known before, read by one `iter_unpack`."""

    struct: str
    packer: str
    size: int
    targets: str
    surprise: str
    defaults: tuple[Default, ...]

    @property
    def inner(self) -> tuple[Step, ...]:
        """The defaults."""
        return self.defaults


@dataclass(frozen=True)
class UnevenSweep(Step):
    """Elements with arrays of numbers, which are taken to be as long as the first element's."""

    name: str
    layout: str
    struct: str
    targets: str
    surprise: str
    groups: tuple[SweepGroup, ...]
    defaults: tuple[Default, ...]

    @property
    def inner(self) -> tuple[Step, ...]:
        """The values of the arrays and the defaults."""
        return (*(value for group in self.groups for value in group.values), *self.defaults)

    @property
    def helpers(self) -> frozenset[str]:
        """What reads rows and arrays."""
        return frozenset({"Sweep", "lists"})


@dataclass(frozen=True)
class DecodeRoot(Function):
    """The function that reads a message; it takes and counts the budget of small structs."""

    has_view: bool
    steps: tuple[Step, ...]
    takes_budget = True

    @property
    def inner(self) -> tuple[Step, ...]:
        """All steps."""
        return self.steps


@dataclass(frozen=True)
class DecodeArray(Function):
    """The function that reads `count` structs. The elements of small ones are counted in `left`."""

    min_size: int
    is_small: bool
    takes_budget: bool
    has_view: bool
    sweep: PlainSweep | UnevenSweep | None
    guess: tuple[Step, ...]
    steps: tuple[Step, ...]

    @property
    def inner(self) -> tuple[Step, ...]:
        """All steps."""
        sweep = (self.sweep,) if self.sweep else ()
        return (*sweep, *self.guess, *self.steps)

    @property
    def helpers(self) -> frozenset[str]:
        """What gives blank objects."""
        return frozenset({"islice"})

    @property
    def remarks(self) -> str:
        """The least size of an element, and whether elements are counted."""
        return f", at least {self.min_size} bytes" + ", budgeted" * self.is_small
