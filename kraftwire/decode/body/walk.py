"""The fields of a sound message and their bytes, without a tree of annotations.

Owns the fast path for byte views: a plan per struct and version walks the bytes and names every
innermost field. It checks nothing, so it is for messages that were decoded; tests hold it equal to
the annotating reader, which is asked about everything else.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any

from kraftwire.decode.body.layouts import Span
from kraftwire.errors import WireError
from kraftwire.wire.facts import FieldFacts, StructFacts
from kraftwire.wire.message import Message
from kraftwire.wire.sizes import FIXED_CODES, FIXED_SIZES, in_runs, tagged_fields
from kraftwire.wire.varint import read_uvarint

__all__ = ["FieldWalk", "ShowValue", "raw"]

# Makes what a span holds for a value, by the name and type of its field. The name of a length is
# empty, and its type that of the number; the name of an element is its index in brackets.
ShowValue = Callable[[str, str], Callable[[Any], Any]]
# Takes bytes, position and the path before the field's name, adds spans, returns the next position.
_Step = Callable[[bytes, int, str, list[Span]], int]

_UVARINT = "unsigned varint"
_LENGTHS = {16: struct.Struct(">h").unpack_from, 32: struct.Struct(">i").unpack_from}


def raw(_name: str, _type: str) -> Callable[[Any], Any]:
    """Return a function that leaves values as they are."""
    return lambda value: value


class FieldWalk:
    """Walks over messages; plans are kept.

    `show` turns values into what spans hold; the span of a field of type records holds None.
    The walk gives up on a message as soon as it has more than `most` spans.
    """

    def __init__(self, show: ShowValue = raw, most: int = 1 << 62) -> None:
        self._show = show
        self._most = most
        self._plans: dict[tuple[type, int], list[_Step]] = {}

    def spans(
        self, cls: type[Message], version: int, data: bytes, start: int
    ) -> list[Span] | None:
        """Return the spans of a message that begins at `start`, in order of their bytes.

        None if only the annotating reader can take the message apart.
        """
        facts = cls.facts()
        out: list[Span] = []
        try:
            at = start
            for step in self._plan(facts.root, version, version in facts.flexible):
                at = step(data, at, "", out)
        except (IndexError, UnicodeDecodeError, struct.error, WireError):
            return None
        return out

    # -- plans ---------------------------------------------------------------------------------

    def _plan(self, facts: StructFacts, version: int, is_flexible: bool) -> list[_Step]:
        key = facts.cls, version
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = list(self._steps(facts, version, is_flexible))
        return plan

    def _steps(self, facts: StructFacts, version: int, is_flexible: bool) -> Iterator[_Step]:
        for each in in_runs(facts, version):
            if isinstance(each, list):
                yield self._run(each)
            else:
                yield self._field(each, version, is_flexible)
        if is_flexible:
            tagged = tagged_fields(facts, version)
            yield self._tags({each.tag: self._field(each, version, is_flexible) for each in tagged})

    def _run(self, fields: list[FieldFacts]) -> _Step:
        """Return a step that unpacks adjacent fields of fixed size at once."""
        codes = ">" + "".join(FIXED_CODES[each.type][1:] for each in fields)
        unpack = struct.Struct(codes).unpack_from
        ends = list(accumulate(FIXED_SIZES[each.type] for each in fields))
        plan = [
            (each.name, start, end, self._show(each.name, each.type))
            for each, start, end in zip(fields, [0, *ends], ends, strict=False)
        ]
        size = ends[-1]

        def step(data: bytes, at: int, path: str, out: list[Span]) -> int:
            out += [
                Span(path + name, at + start, at + end, show(value))
                for (name, start, end, show), value in zip(plan, unpack(data, at), strict=True)
            ]
            return at + size

        return step

    def _field(self, facts: FieldFacts, version: int, is_flexible: bool) -> _Step:
        is_compact = version in facts.flexible
        if facts.is_array:
            return self._array(facts, version, is_flexible, is_compact)
        if facts.struct is not None:
            return self._struct(facts, facts.struct, version, is_flexible)
        return self._value(facts, facts.name, is_compact)

    def _value(self, facts: FieldFacts, name: str, is_compact: bool) -> _Step:
        """Return a step for one field, neither array nor struct; elements have an empty `name`."""
        show = self._show(name or "[]", facts.type)
        if facts.type in FIXED_SIZES:
            unpack = struct.Struct(FIXED_CODES[facts.type]).unpack_from
            size = FIXED_SIZES[facts.type]

            def fixed(data: bytes, at: int, path: str, out: list[Span]) -> int:
                out.append(Span(path + name, at, at + size, show(unpack(data, at)[0])))
                return at + size

            return fixed
        length = self._length(16 if facts.type == "string" else 32, is_compact)
        is_text, is_records = facts.type == "string", facts.type == "records"
        above = f"{name}.length" if name else ".length"

        def value(data: bytes, at: int, path: str, out: list[Span]) -> int:
            at, count = length(data, at, path + above, out)
            if count <= 0:
                return at
            end = at + count
            if end > len(data):
                raise WireError("the field continues after the end of the message")
            if is_records:
                out.append(Span(path + name, at, end, None))
            else:
                held = data[at:end]
                out.append(Span(path + name, at, end, show(held.decode() if is_text else held)))
            return end

        return value

    def _length(
        self, bits: int, is_compact: bool
    ) -> Callable[[bytes, int, str, list[Span]], tuple[int, int]]:
        """Return a reader of lengths: the position after one, and the length, -1 for null."""
        if is_compact:
            show = self._show("length", _UVARINT)

            def compact(data: bytes, at: int, path: str, out: list[Span]) -> tuple[int, int]:
                value, end = read_uvarint(data, at)
                out.append(Span(path, at, end, show(value)))
                return end, value - 1

            return compact
        show_plain, unpack, size = self._show("", f"int{bits}"), _LENGTHS[bits], bits // 8

        def plain(data: bytes, at: int, path: str, out: list[Span]) -> tuple[int, int]:
            (value,) = unpack(data, at)
            out.append(Span(path, at, at + size, show_plain(value)))
            return at + size, value

        return plain

    def _array(
        self, facts: FieldFacts, version: int, is_flexible: bool, is_compact: bool
    ) -> _Step:
        length = self._length(32, is_compact)
        name, above = facts.name, f"{facts.name}.length"
        dot = "." if facts.struct is not None else ""
        most = self._most
        if facts.struct is not None:
            steps = self._plan(facts.struct, version, is_flexible)
        else:
            steps = [self._value(facts, "", is_compact)]

        def step(data: bytes, at: int, path: str, out: list[Span]) -> int:
            at, count = length(data, at, path + above, out)
            for index in range(count):
                if len(out) > most:
                    raise WireError("more fields than are taken apart")
                inner = f"{path}{name}[{index}]{dot}"
                for each in steps:
                    at = each(data, at, inner, out)
            return at

        return step

    def _struct(
        self, facts: FieldFacts, inner: StructFacts, version: int, is_flexible: bool
    ) -> _Step:
        steps = self._plan(inner, version, is_flexible)
        is_nullable, is_tagged = version in facts.nullable, version in facts.tagged
        name, show = facts.name, self._show("", "int8")
        above = f"{name}.present"

        def step(data: bytes, at: int, path: str, out: list[Span]) -> int:
            if is_nullable:
                value = data[at]
                if is_tagged and value > 0x7F:
                    raise WireError("a marker of more than one byte")
                if not is_tagged and value > 0x7F:
                    value -= 0x100
                out.append(Span(path + above, at, at + 1, show(value)))
                at += 1
                if value < is_tagged:
                    return at
            for each in steps:
                at = each(data, at, f"{path}{name}.", out)
            return at

        return step

    def _tags(self, known: dict[int, _Step]) -> _Step:
        show = self._show("", _UVARINT)

        def step(data: bytes, at: int, path: str, out: list[Span]) -> int:
            count, end = read_uvarint(data, at)
            out.append(Span(f"{path}taggedFields", at, end, show(count)))
            for _ in range(count):
                at = end
                tag, end = read_uvarint(data, at)
                if tag not in known:
                    raise WireError("an unknown tagged field")
                out.append(Span(f"{path}tag", at, end, show(tag)))
                at = end
                size, end = read_uvarint(data, at)
                out.append(Span(f"{path}size", at, end, show(size)))
                end = known[tag](data, end, path, out)
            return end

        return step
