"""The steps of encoders: a class for each kind.

An encoder has the object in `o` and appends bytes to `out`, by `add`; `n` is the last length that
was taken, `s` the last string in UTF-8. `ignore` is the remark for type checkers that a line needs
because a field may hold None in other versions; at run time None fails there, as it should.
"""

from __future__ import annotations

from kraftwire.wire.functions.steps import Step, zero_uuid

__all__ = [
    "CheckBool", "CheckUuid", "Pack", "PackCounted", "PackLength", "PackRow", "Pass", "Put",
    "PutBytes", "PutLength", "PutLengthOf", "PutNullableStruct", "PutNumbers", "PutStruct",
    "PutStructs", "PutTags", "PutText", "PutUnknownTags", "PutValues", "RecordsRow", "Refuse",
    "StartRow", "Take", "TakeLength", "TakeText", "Zero",
]  # fmt: skip


class Pass(Step):
    """Do nothing, where Python requires a statement."""

    TEXT = "pass"


class Refuse(Step):
    """Refuse values that the version has no room for, or of the wrong type."""

    TEXT = """
if {condition}:
    raise ValueError
"""
    condition: str

    @property
    def helpers(self) -> frozenset[str]:
        """The zero uuid, if the condition compares with it."""
        return zero_uuid(self.condition)


class CheckUuid(Step):
    """Refuse a value that is not a uuid."""

    TEXT = """
if len({source}) != 16:
    raise ValueError
"""
    source: str


class CheckBool(Step):
    """Refuse a value that is not a bool."""

    TEXT = """
if {source}.__class__ is not bool:
    raise ValueError
"""
    source: str


class Pack(Step):
    """Write adjacent values of fixed width by one `struct` call."""

    TEXT = "add({packer}({arguments})){ignore}"
    packer: str
    arguments: str
    ignore: str = ""


class StartRow(Step):
    """Note before the first struct that the row has room for no counts yet."""

    TEXT = "{rooms}-1"
    rooms: str


class PackCounted(Step):
    """Write a struct and its arrays of numbers by the packer for their counts."""

    TEXT = """
if {differs}:
    {rooms} = {counts}
    row = {rows}[{counts}]
add(row({arguments}))
"""
    differs: str
    rooms: str
    counts: str
    rows: str
    arguments: str


class Zero(Step):
    """Write one zero byte."""

    TEXT = 'add(b"\\0")'


class Put(Step):
    """Write bytes from a local variable."""

    TEXT = "add({local})"
    local: str


class Take(Step):
    """Take a field into a local variable."""

    TEXT = "{local} = {source}"
    local: str
    source: str


class TakeText(Step):
    """Take a string in UTF-8 and its length."""

    TEXT = """
s = {text}{ignore}
n = {length}
"""
    text: str
    length: str
    ignore: str


class TakeLength(Step):
    """Take a field into a local variable, and its length."""

    TEXT = """
{local} = {source}
n = {length}{ignore}
"""
    local: str
    source: str
    length: str
    ignore: str


class PutLength(Step):
    """Write a compact length, from the table of lengths."""

    TEXT = "add({table}[n])"
    table: str

    @property
    def helpers(self) -> frozenset[str]:
        """The table of lengths."""
        return frozenset({self.table})


class PutLengthOf(Step):
    """Write a compact length that no variable holds."""

    TEXT = "add(LENGTH[{length}]){ignore}"
    length: str
    ignore: str

    @property
    def helpers(self) -> frozenset[str]:
        """The table of lengths."""
        return frozenset({"LENGTH"})


class PackLength(Step):
    """Write values of fixed width and the compact length after them, by one call if it is short."""

    TEXT = "add({packer}({arguments}) if n < 128 else {long_packer}({long_arguments}) + {table}[n])"
    packer: str
    arguments: str
    long_packer: str
    long_arguments: str
    table: str

    @property
    def helpers(self) -> frozenset[str]:
        """The table of lengths."""
        return frozenset({self.table})


class PutText(Step):
    """Write the string in `s`."""

    TEXT = "add(s)"


class PutBytes(Step):
    """Write bytes or records that may be empty or null."""

    TEXT = """
if {local}:
    add({local})
"""
    local: str


class PutNumbers(Step):
    """Write an array of numbers."""

    TEXT = """
if {local}:
    add(PACK_{code}[len({local})](*{local}))
"""
    local: str
    code: str


class PutValues(Step):
    """Write an array of strings, bytes or uuids by a helper."""

    TEXT = """
if {local}:
    {helper}({arguments})
"""
    local: str
    helper: str
    arguments: str

    @property
    def helpers(self) -> frozenset[str]:
        """The helper that writes the array."""
        return frozenset({self.helper})


class PutStructs(Step):
    """Write an array of structs."""

    TEXT = """
if {local}:
    {function}({local}, out)
"""
    local: str
    function: str


class PutStruct(Step):
    """Write a struct by itself, as an array of one."""

    TEXT = "{function}(({source},), out)"
    source: str
    function: str


class PutNullableStruct(Step):
    """Write a struct that may be null, as an array of one."""

    TEXT = """
if {source} is not None:
    {function}(({source},), out)
"""
    source: str
    function: str


class PutTags(Step):
    """Write tagged fields by the function of the struct."""

    TEXT = """
if {condition}:
    {function}(o, out)
"""
    condition: str
    function: str

    @property
    def helpers(self) -> frozenset[str]:
        """The zero uuid, if the condition compares with it."""
        return zero_uuid(self.condition)


class PutUnknownTags(Step):
    """Write the tagged fields of a struct that knows none."""

    TEXT = """
if o.unknown_tagged_fields:
    put_tags(out, {{}}, o.unknown_tagged_fields)
"""

    @property
    def helpers(self) -> frozenset[str]:
        """The helper that writes tagged fields."""
        return frozenset({"put_tags"})


class RecordsRow(Step):
    """Write a row whose last field is records, present or not."""

    TEXT = """
if {local}:
    {full}
else:
    {empty}
"""
    local: str
    full: tuple[Step, ...]
    empty: Pack

    @property
    def inner(self) -> tuple[Step, ...]:
        """The steps for both cases."""
        return (*self.full, self.empty)


class PackRow(Step):
    """Write a struct and its short arrays of numbers by one call, where `condition` holds."""

    TEXT = """
{takes}
if {condition}:
    {row}
else:
    {steps}
"""
    condition: str
    takes: tuple[Take, ...]
    row: Pack | PackCounted | RecordsRow
    steps: tuple[Step, ...]

    @property
    def inner(self) -> tuple[Step, ...]:
        """The steps for both cases."""
        return (*self.takes, self.row, *self.steps)
