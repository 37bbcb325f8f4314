"""Plan how the fields of a struct are printed: which reads are fused, which lengths are refused."""

from __future__ import annotations

from kraftwire.wire.functions.decoding.reads import advance, flush, length_code
from kraftwire.wire.functions.decoding.steps import Advance, LongLength, RefuseNull
from kraftwire.wire.functions.packers import CODES, Run, offset
from kraftwire.wire.functions.printing.steps import (
    Gap,
    NoTopicName,
    OneStruct,
    OrNull,
    PrintBytes,
    PrintValue,
    RefuseOtherNull,
    Spend,
    StructOrNull,
    Structs,
    TopicName,
    Values,
)
from kraftwire.wire.sizes import FIXED_SIZES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from kraftwire.wire.facts import FieldFacts
    from kraftwire.wire.functions.layout import Item, Layout
    from kraftwire.wire.functions.packers import PackerSet
    from kraftwire.wire.functions.steps import Function, Step

__all__ = ["Fields", "holds_records"]

# Names that the functions use themselves.
_TAKEN = frozenset(
    {
        "buf", "pos", "count", "left", "gaps", "topic", "topic_id", "told", "n", "rows", "tag",
        "tags", "size", "end", "last", "text", "len", "range", "blob", "uuids",
    }
)  # fmt: skip
_TAKEN_STARTS = ("get_", "print_", "long_", "plain_", "compact_")

_BYTE = "B"
# Of a marker that is read as a byte: null is an int8 of -1, but within a tag an unsigned 0.
_NULL_MARKER, _NULL_TAG_MARKER = 255, 0


def holds_records(layout: Layout) -> bool:
    """Whether there are records in a struct, or in those inside it."""
    return any(item.kind == "records" for each in layout.walk() for item in each.items)


class Fields:
    """Collects the steps for fields of a struct, in order.

    `functions` are those of inner structs; `facts` belong to the fields, by attribute.
    """

    def __init__(
        self,
        packers: PackerSet,
        functions: Mapping[Layout, Function],
        facts: Mapping[str, FieldFacts],
    ) -> None:
        self.steps: list[Step] = []
        self._packers = packers
        self._functions = functions
        self._facts = facts
        self._run = Run()
        # Expressions for name and id of the topic around the next field.
        self._name, self._id = "topic", "topic_id"

    def add(self, item: Item) -> str:
        """Add a field; return what stands for it in a formatted string."""
        return f'"{self._facts[item.attribute].name}":{{{self._value(item)}}}'

    def end(self, *, has_tags: bool) -> None:
        """Read what is left, and the number of tagged fields into `n`."""
        if has_tags:
            self._run.add(_BYTE, "n")
        flush(self._run, self.steps, self._packers)
        advance(self._run, self.steps)

    @property
    def topic(self) -> str:
        """Return the arguments of functions for inner structs that hold records."""
        return f", gaps, {self._name}, {self._id}"

    def _topic_for(self, layout: Layout) -> str:
        return self.topic if holds_records(layout) else ""

    def _value(self, item: Item) -> str:
        """Add a field; return the expression of its text."""
        target = _local_name(item.attribute)
        if item.kind == "fixed":
            return self._fixed(item, target)
        if item.kind == "struct":
            self._struct(item, target)
        else:
            self._run.add(length_code(item), "n")
            flush(self._run, self.steps, self._packers)
            self._sized(item, target, self._run.at)
        self._run.at = 0
        return target

    def _fixed(self, item: Item, target: str) -> str:
        is_bool = item.type == "bool"
        self._run.add(_BYTE if is_bool else CODES[item.type], target)
        if item.type != "uuid":
            return f"BOOLS[{target}]" if is_bool else target
        if self._facts[item.attribute].tells_topic:
            self._id = target
        return f"UUIDS[{target}]"

    def _struct(self, item: Item, target: str) -> None:
        assert item.layout is not None
        if item.nullable:
            self._run.add(_BYTE, "n")
        flush(self._run, self.steps, self._packers)
        at = self._run.at
        function = self._functions[item.layout].name
        one = OneStruct(target, function, offset("pos", at), self._topic_for(item.layout))
        null = _NULL_TAG_MARKER if item.is_tagged else _NULL_MARKER
        self.steps.append(StructOrNull(target, one, null, at) if item.nullable else one)

    def _sized(self, item: Item, target: str, at: int) -> None:
        """Add steps for a value whose length was read."""
        self.steps += _length(item, at)
        is_told = item.kind == "string" and self._facts[item.attribute].tells_topic
        value = self._topic_name(target, item, at) if is_told else self._text(item, target, at)
        may_be_empty = item.kind in ("array", "records")
        if not item.nullable and not may_be_empty:
            self.steps += value
            return
        skip = (*((Advance(at),) if at else ()), *((NoTopicName(),) if is_told else ()))
        condition = _is_there(item) if not may_be_empty else f"n > {int(item.compact)}"
        empty = _empty(item) if may_be_empty else '"null"'
        self.steps.append(OrNull(condition, tuple(value), target, empty, skip))

    def _topic_name(self, target: str, item: Item, at: int) -> list[Step]:
        self._name = "told"
        return [TopicName(target, offset("pos", at), offset("pos", at - item.compact, "n"))]

    def _text(self, item: Item, target: str, at: int) -> list[Step]:
        """Return steps for a value that is there."""
        start, stop = offset("pos", at), offset("pos", at - item.compact, "n")
        if item.kind == "string":
            return [PrintValue(target, "TEXTS", start, stop)]
        if item.kind == "bytes":
            return [PrintBytes(target, "blob", start, stop)]
        if item.kind == "records":
            return [Gap(target, start, stop, f"{self._name}, {self._id}")]
        count = "n - 1" if item.compact else "n"
        if item.layout:
            function, more = self._functions[item.layout].name, self._topic_for(item.layout)
            return [Structs(target, function, start, count, more)]
        spend = Spend(count)
        if item.element == "fixed" and item.type != "uuid":
            size = FIXED_SIZES[item.type]
            length = f"{size} * n" if size > 1 else "n"
            stop = offset("pos", at - size * item.compact, length)
            return [spend, PrintValue(target, f"NUMBERS_{item.type}", start, stop)]
        return [spend, Values(target, _maker(item), start, count)]


def _local_name(attribute: str) -> str:
    """Return the name of the local variable that holds a field's value or its text."""
    is_taken = attribute in _TAKEN or attribute.startswith(_TAKEN_STARTS)
    return f"{attribute}_" if is_taken else attribute


def _length(item: Item, at: int) -> list[Step]:
    """Return steps for the rare forms of a length: several bytes, or a null that is not allowed."""
    if not item.compact:
        return [RefuseOtherNull() if item.nullable else RefuseNull()]
    condition = "n > 127" if item.nullable else "not 0 < n < 128"
    helper = "long_string" if item.kind == "string" else "long_length"
    return [LongLength(condition, helper, at)]


def _is_there(item: Item) -> str:
    """Return the condition that the length that was read is not that of null."""
    return "n" if item.compact else "n >= 0"


def _empty(item: Item) -> str:
    """Return the text of an array or of records without elements, or of null."""
    return f'"[]" if {_is_there(item)} else "null"' if item.nullable else '"[]"'


def _maker(item: Item) -> str:
    """Return the name of the helper for an array of strings, of byte strings or of uuids."""
    if item.type == "uuid":
        return "uuids"
    form = "compact" if item.compact else "plain"
    return f"{form}_{'strings' if item.element == 'string' else 'blobs'}"
