"""Chooses who decodes and encodes a version of a message: the engine's plan or generated code.

A plan is made from the message's facts when a version is first used. Its description, nested
tuples, is what the engine in C understands; `kraftwire/engine/plan.c` is the other side.
"""

from __future__ import annotations

from kraftwire import engine
from kraftwire.limits import ELEMENT_BYTES_MIN, STRING_SIZE_MAX
from kraftwire.wire.sizes import is_optional_struct, min_struct_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kraftwire.wire.facts import FieldFacts, MessageFacts, StructFacts

__all__ = ["choose", "describe"]


def choose(cls: Any, version: int) -> None:
    """Enter the functions of a version, which exists, into the class of a message."""
    decoder, encoder = cls._DECODERS[version], cls._ENCODERS[version]
    core = engine.core
    if core is not None:
        shapes = describe(cls.facts(), version)
        plan = core.Plan(shapes, decoder, encoder, STRING_SIZE_MAX)
        decoder, encoder = plan.decode, plan.encode
    cls._DECODE[version] = decoder
    cls._ENCODE[version] = encoder


def describe(facts: MessageFacts, version: int) -> tuple[tuple[Any, ...], ...]:
    """What a version has, in the form of the engine: structs, inner ones first.

    A struct is its class, whether it has tagged fields, whether its elements are counted, its
    least size, and three groups of fields: in wire order, absent, and tagged in order of tags.
    """
    describer = _Describer(version, version in facts.flexible)
    describer.add(facts.root)
    return tuple(describer.shapes)


class _Describer:
    """Describes the structs of one version of a message, each once."""

    def __init__(self, version: int, is_flexible: bool) -> None:
        self.shapes: list[tuple[Any, ...]] = []
        self._numbers: dict[str, int] = {}
        self._version = version
        self._is_flexible = is_flexible

    def add(self, facts: StructFacts) -> int:
        """Append a struct after those that it holds, unless it is there; returns its number."""
        if facts.name in self._numbers:
            return self._numbers[facts.name]
        version = self._version
        wire, absent, tagged = [], [], []
        for each in facts.fields:
            field = _field(each, version, self.add(each.struct) if each.struct else -1)
            if version not in each.versions:
                absent.append(field)
            elif version in each.tagged:
                tagged.append((each.tag, field))
            else:
                wire.append(field)
        size_min = min_struct_size(facts, version, self._is_flexible)
        in_order = tuple(field for _, field in sorted(tagged, key=lambda pair: pair[0]))
        self.shapes.append(
            (
                facts.cls, self._is_flexible, size_min < ELEMENT_BYTES_MIN, size_min,
                tuple(wire), tuple(absent), in_order,
            )
        )  # fmt: skip
        self._numbers[facts.name] = len(self.shapes) - 1
        return self._numbers[facts.name]


def _field(facts: FieldFacts, version: int, child: int) -> tuple[Any, ...]:
    return (
        facts.attribute,
        "struct" if facts.struct else facts.type,
        facts.is_array,
        version in facts.flexible,
        version in facts.nullable,
        version in facts.tagged,
        is_optional_struct(facts),
        facts.is_ignorable,
        max(facts.tag, 0),
        facts.default,
        child,
    )
