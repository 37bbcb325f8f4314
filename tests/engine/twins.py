"""Compares the engine with Python, message by message.

Wherever the engine falls back, the Python functions do the work, so there is nothing to
compare; what it accepts must give the same result as they do, or as the slow reader and writer.
"""

from __future__ import annotations

import random
from functools import cache
from typing import Any

from kraftwire import engine
from kraftwire.errors import WireError
from kraftwire.limits import ELEMENT_BYTES_MIN, ELEMENT_FREE_COUNT, STRING_SIZE_MAX
from kraftwire.wire.facts import FieldFacts, StructFacts
from kraftwire.wire.message import _BAD_BYTES, _BAD_VALUES, Message, Struct
from kraftwire.wire.plans import describe, python_decoder, python_encoder
from kraftwire.wire.reader import read_message
from kraftwire.wire.writer import write_message


class FellBack(Exception):
    """The plan left the decision to Python."""


def _fall_back(*_: Any) -> Any:
    raise FellBack


@cache
def plan_of(cls: type[Message], version: int) -> Any:
    """A plan that raises `FellBack` instead of calling the Python functions."""
    shapes = describe(cls.facts(), version)
    return engine.core.Plan(
        shapes, _fall_back, _fall_back, STRING_SIZE_MAX, ELEMENT_FREE_COUNT, ELEMENT_BYTES_MIN
    )


def compare_decoding(cls: type[Message], version: int, data: bytes) -> Message | None:
    """The message, if the plan accepts the bytes. Raises: AssertionError if Python differs."""
    budget = ELEMENT_FREE_COUNT + len(data) // ELEMENT_BYTES_MIN
    try:
        message, end = plan_of(cls, version).decode(data, 0, budget)
    except FellBack:
        return None
    expected, expected_end = _decode(cls, version, data, budget)
    assert end == expected_end, f"end {end}, not {expected_end}"
    assert alike(message, expected), f"{message}\nnot {expected}"
    made: Message = message
    return made


def _decode(cls: type[Message], version: int, data: bytes, budget: int) -> tuple[Any, int]:
    try:
        message, end = python_decoder(cls, version)(data, 0, budget)
        if end <= len(data):
            return message, end
    except _BAD_BYTES:
        pass
    try:
        return read_message(cls.facts(), data, version)
    except WireError as error:
        raise AssertionError(f"only the engine accepts it: {error}") from None


def compare_encoding(message: Message, version: int) -> bytes | None:
    """The bytes, if the plan accepts the message. Raises: AssertionError if Python differs."""
    cls: type[Message] = message.__class__
    try:
        written: bytes = plan_of(cls, version).encode(message)
    except FellBack:
        return None
    try:
        expected = python_encoder(cls, version)(message)
    except _BAD_VALUES:
        try:
            expected = write_message(cls.facts(), message, version)
        except WireError as error:
            raise AssertionError(f"only the engine writes it: {error}") from None
    assert written == expected, f"{written.hex()}\nnot {expected.hex()}"
    return written


def alike(one: Any, other: Any) -> bool:
    """Whether two values are equal and of the same classes, down to the leaves.

    Records may be a view or empty bytes, which the Python decoders make of equal neighbours.
    """
    if isinstance(one, Struct):
        return one.__class__ is other.__class__ and all(
            alike(getattr(one, name), getattr(other, name)) for name in one.__class__.__slots__
        )
    if isinstance(one, memoryview):
        return bytes(one) == bytes(other)
    if one.__class__ is not other.__class__:
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(alike, one, other))
    # A float that is not a number differs from itself, its text does not.
    return bool(one == other) or (isinstance(one, float) and repr(one) == repr(other))


class _Index:
    """A number that is not an int."""

    def __index__(self) -> int:
        return 3


class _Text(str):
    """A string of a subclass."""


_ODD = (
    None, True, False, 0, 1, -1, 2**31, 2**63, -(2**63) - 1, 1.5, float("nan"), _Index(), object(),
    "", "x", "x" * 32767, "x" * 32768, "\udc80", "é" * 20000, _Text("x"),
    b"", b"x" * 15, b"x" * 16, bytearray(16), bytearray(), memoryview(b"12345678"),
    b"x" * 1024, bytearray(20_000), memoryview(b"x" * 3000), {5: b"x" * 2000},
    memoryview(b"12345678").cast("i"), memoryview(b"123456")[::2],
    [], (), [None], [1], ["x"], [b""],
    {}, {5: b"x"}, {-1: b""}, {2**32: b""}, {1: "x"}, {0: b"1", 9: b"2"},
)  # fmt: skip


def spoil(message: Message, source: random.Random) -> None:
    """Give one attribute somewhere in a message a value that is odd, or delete it."""
    facts: StructFacts = message.__class__.facts().root
    held: Any = message
    while True:
        inner = [(each, part) for each in facts.fields for part in _structs(held, each)]
        if not inner or source.random() < 0.4:
            break
        field, held = source.choice(inner)
        assert field.struct is not None
        facts = field.struct
    name = source.choice(held.__class__.__slots__)
    if hasattr(held, name) and source.random() < 0.05:
        delattr(held, name)
    else:
        setattr(held, name, source.choice(_ODD))


def _structs(held: Any, field: FieldFacts) -> list[Any]:
    value = getattr(held, field.attribute, None)
    values = value if isinstance(value, list) else [value]
    return [part for part in values if field.struct and part.__class__ is field.struct.cls]
