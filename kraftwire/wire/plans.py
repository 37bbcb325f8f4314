"""Chooses what decodes and encodes a version of a message: the engine's plan, or Python.

A plan is made from the message's facts when a version is first used. The engine in C reads its
description, nested tuples; `kraftwire/engine/plan.c` is the counterpart.
"""

from __future__ import annotations

from kraftwire import engine
from kraftwire.limits import ELEMENT_BYTES_MIN, ELEMENT_FREE_COUNT, STRING_SIZE_MAX
from kraftwire.wire.sizes import is_optional_struct, min_struct_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from kraftwire.wire.facts import FieldFacts, MessageFacts, StructFacts
    from kraftwire.wire.fast import Parts

    Decoder = Callable[[bytes, int, int], tuple[Any, int]]
    Encoder = Callable[[Any], bytes]


def choose_decoder(cls: Any, version: int) -> None:
    """Add the function that decodes a version, which must exist, to the class of a message."""
    if engine.core is None:
        cls._DECODE[version] = python_decoder(cls, version)
    else:
        _enter_plan(cls, version)


def choose_encoder(cls: Any, version: int) -> None:
    """Add the function that encodes a version, which must exist, to the class of a message."""
    if engine.core is None:
        cls._ENCODE[version] = python_encoder(cls, version)
    else:
        _enter_plan(cls, version)


def engine_plan(cls: Any, version: int) -> Any:
    """Return the engine's plan of a version, which must exist; None without the engine."""
    if engine.core is None:
        return None
    choose_decoder(cls, version)
    return getattr(cls._DECODE[version], "__self__", None)


def python_decoder(cls: Any, version: int) -> Decoder:
    """Return the function in Python that decodes a version."""
    read = cls._read

    def decode(buf: bytes, position: int, left: int) -> tuple[Any, int]:
        (message,), end = read(buf, position, 1, version, [left])
        return message, end

    return decode


def python_encoder(cls: Any, version: int) -> Encoder:
    """Return the function in Python that encodes a version."""
    write = cls._write

    def encode(message: Any) -> bytes:
        out: Parts = []
        write(message, out, version)
        return b"".join(out)

    return encode


def _enter_plan(cls: Any, version: int) -> None:
    """Add both functions of the engine's plan, which falls back to those in Python."""
    plan = engine.core.Plan(
        describe(cls.facts(), version),
        python_decoder(cls, version),
        python_encoder(cls, version),
        STRING_SIZE_MAX,
        ELEMENT_FREE_COUNT,
        ELEMENT_BYTES_MIN,
    )
    cls._DECODE[version] = plan.decode
    cls._ENCODE[version] = plan.encode


def describe(facts: MessageFacts, version: int) -> tuple[tuple[Any, ...], ...]:
    """Describe a version in the form of the engine: structs, inner ones first.

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
        facts.is_error_code,
        max(facts.tag, 0),
        facts.default,
        child,
    )
