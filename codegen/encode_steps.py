"""The steps of generated encoders: a class for each kind, a macro of `encode.j2` for each class.

An encoder has the object in `o` and appends bytes to `out`, by `add`; `n` is the last length that
was taken, `s` the last string in UTF-8. `ignore` is the complaint of a type checker that a line
earns because a field may hold None in other versions; at run time that stumbles, as it should.
"""

from __future__ import annotations

from dataclasses import dataclass

from codegen.steps import Function, Step, zero_uuid

__all__ = [
    "CheckBool", "CheckUuid", "EncodeArray", "EncodeRoot", "EncodeRows", "EncodeTags", "Pack",
    "PackLength", "PackRow", "Pass", "Put", "PutBytes", "PutLength", "PutLengthOf",
    "PutNullableStruct", "PutNumbers", "PutStruct", "PutStructs", "PutTags", "PutText",
    "PutUnknownTags", "PutValues", "RecordsRow", "Refuse", "TagBranch", "Take", "TakeLength",
    "TakeText", "Zero",
]  # fmt: skip


@dataclass(frozen=True)
class Pass(Step):
    """Nothing at all, where Python wants a statement."""


@dataclass(frozen=True)
class Refuse(Step):
    """Values that the version has no room for, or of the wrong type."""

    condition: str

    @property
    def helpers(self) -> frozenset[str]:
        """Values are compared with defaults."""
        return zero_uuid(self.condition)


@dataclass(frozen=True)
class CheckUuid(Step):
    """A uuid that is none."""

    source: str


@dataclass(frozen=True)
class CheckBool(Step):
    """A bool that is none."""

    source: str


@dataclass(frozen=True)
class Pack(Step):
    """Adjacent values of fixed width, by one `struct` call."""

    packer: str
    arguments: str
    ignore: str = ""


@dataclass(frozen=True)
class Zero(Step):
    """One zero byte."""


@dataclass(frozen=True)
class Put(Step):
    """Bytes in a local variable."""

    local: str


@dataclass(frozen=True)
class Take(Step):
    """A field into a local variable."""

    local: str
    source: str


@dataclass(frozen=True)
class TakeText(Step):
    """A string in UTF-8 and its length."""

    text: str
    length: str
    ignore: str


@dataclass(frozen=True)
class TakeLength(Step):
    """A field into a local variable, and its length."""

    local: str
    source: str
    length: str
    ignore: str


@dataclass(frozen=True)
class PutLength(Step):
    """A compact length, from the table of those."""

    table: str

    @property
    def helpers(self) -> frozenset[str]:
        """The table."""
        return frozenset({self.table})


@dataclass(frozen=True)
class PutLengthOf(Step):
    """A compact length that no variable holds."""

    length: str
    ignore: str

    @property
    def helpers(self) -> frozenset[str]:
        """The table."""
        return frozenset({"LENGTH"})


@dataclass(frozen=True)
class PackLength(Step):
    """Values of fixed width and the compact length after them, by one call if it is short."""

    packer: str
    arguments: str
    long_packer: str
    long_arguments: str
    table: str

    @property
    def helpers(self) -> frozenset[str]:
        """The table."""
        return frozenset({self.table})


@dataclass(frozen=True)
class PutText(Step):
    """The string in `s`."""


@dataclass(frozen=True)
class PutBytes(Step):
    """Bytes or records that may be empty or null."""

    local: str


@dataclass(frozen=True)
class PutNumbers(Step):
    """An array of numbers."""

    local: str
    code: str


@dataclass(frozen=True)
class PutValues(Step):
    """An array that a helper writes: of strings, bytes or uuids."""

    local: str
    helper: str
    arguments: str

    @property
    def helpers(self) -> frozenset[str]:
        """What writes it."""
        return frozenset({self.helper})


@dataclass(frozen=True)
class PutStructs(Step):
    """An array of structs."""

    local: str
    function: str


@dataclass(frozen=True)
class PutStruct(Step):
    """A struct by itself, written as an array of one."""

    source: str
    function: str


@dataclass(frozen=True)
class PutNullableStruct(Step):
    """The same for one that may be null."""

    source: str
    function: str


@dataclass(frozen=True)
class PutTags(Step):
    """Tagged fields, by the function of the struct."""

    condition: str
    function: str

    @property
    def helpers(self) -> frozenset[str]:
        """Values are compared with defaults."""
        return zero_uuid(self.condition)


@dataclass(frozen=True)
class PutUnknownTags(Step):
    """Tagged fields of a struct that knows none."""

    @property
    def helpers(self) -> frozenset[str]:
        """What writes them."""
        return frozenset({"put_tags"})


@dataclass(frozen=True)
class RecordsRow(Step):
    """A row whose last field is records, where they are there and where they are not."""

    local: str
    full: tuple[Step, ...]
    empty: Pack

    @property
    def inner(self) -> tuple[Step, ...]:
        """Both ways."""
        return (*self.full, self.empty)


@dataclass(frozen=True)
class PackRow(Step):
    """A struct and its short arrays of numbers by one call, where `condition` holds."""

    condition: str
    takes: tuple[Take, ...]
    row: Pack | RecordsRow
    steps: tuple[Step, ...]

    @property
    def inner(self) -> tuple[Step, ...]:
        """Both ways."""
        return (*self.takes, self.row, *(self.steps if self.condition else ()))


@dataclass(frozen=True)
class TagBranch:
    """How one tagged field is written, where it is not at its default."""

    tag: int
    condition: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class EncodeTags(Function):
    """The function that writes the tagged fields of a struct."""

    branches: tuple[TagBranch, ...]

    @property
    def inner(self) -> tuple[Step, ...]:
        """The steps of all branches."""
        return tuple(step for branch in self.branches for step in branch.steps)

    @property
    def helpers(self) -> frozenset[str]:
        """What writes them."""
        conditions = (branch.condition for branch in self.branches)
        return frozenset({"put_tags"}) | zero_uuid(*conditions)


@dataclass(frozen=True)
class EncodeRoot(Function):
    """The function that writes a message."""

    refusal: tuple[Refuse, ...]
    steps: tuple[Step, ...]

    @property
    def inner(self) -> tuple[Step, ...]:
        """All steps."""
        return (*self.refusal, *self.steps)


@dataclass(frozen=True)
class EncodeRows(Function):
    """The function that writes structs of values of fixed width, unless any is `odd`."""

    packed: str
    odd: str

    @property
    def helpers(self) -> frozenset[str]:
        """Values are compared with defaults."""
        return zero_uuid(self.odd)


@dataclass(frozen=True)
class EncodeArray(Function):
    """The function that writes structs; where `packed` is given, at once if none is `odd`."""

    packed: str
    odd: str
    steps: tuple[Step, ...]

    @property
    def inner(self) -> tuple[Step, ...]:
        """All steps."""
        return self.steps

    @property
    def helpers(self) -> frozenset[str]:
        """Values are compared with defaults."""
        return zero_uuid(self.odd)
