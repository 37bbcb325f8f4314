"""Estimates the memory of a decoded message from its bytes, without decoding it.

A plan for each struct and version walks over the bytes and adds up the sizes that the objects would
have in CPython. It stops as soon as a budget is spent.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeVar

from kraftwire.errors import WireError
from kraftwire.wire.facts import FieldFacts, StructFacts
from kraftwire.wire.message import Message
from kraftwire.wire.sizes import (
    FIXED_CODES,
    FIXED_SIZES,
    in_runs,
    is_optional_struct,
    tagged_fields,
)
from kraftwire.wire.varint import read_uvarint

# A message in a record, or in a field of another message, may take this much memory once it is
# decoded, plus this many times its length. What Kafka and its clients write takes far less.
INNER_DECODED_FREE = 4 * 1024 * 1024
INNER_DECODED_RATIO = 2

# The memory of a decoded message: DECODED_BYTES_FREE, and DECODED_BYTES_RATIO times its length.
# Metadata of 75,000 partitions take fourteen times their 3 MiB, and are within that; few messages
# are denser. A message that is longer than its compressed capture may take DECODED_PACKED_FREE, and
# as many times the length of the capture.
DECODED_BYTES_FREE = 26 * 1024 * 1024
DECODED_BYTES_RATIO = 6
DECODED_PACKED_FREE = 18 * 1024 * 1024

M = TypeVar("M", bound=Message)
# Takes bytes, a position and the budget; returns the next position.
_Step = Callable[[bytes, int, "_Budget"], int]

# Sizes of objects in bytes: an empty list, a pointer to an element, a number that Python does not
# share, an empty string or bytes, a view of records, a dictionary of tags, an entry of it.
_LIST = 64
_POINTER = 8
_NUMBER = 32
_TEXT = 64
_VIEW = 208
_TAGS = 256
_TAG = 112
_OBJECT = 16
_SHARED = range(-5, 257)
# A byte of UTF-8 may take up to four bytes in a string.
_WIDEST = 4
# Numbers in longer arrays count in full, whether or not Python shares them.
_LOOKED_AT_MAX = 64

# No message takes more for each of its bytes: empty lists of one byte are the worst.
RATIO_MAX = 72
# Messages in records and in fields of others are never too dense below this many bytes.
SHORT_BYTES = INNER_DECODED_FREE // RATIO_MAX

_LENGTHS = {16: struct.Struct(">h").unpack_from, 32: struct.Struct(">i").unpack_from}
# Sizes by type, where they do not depend on the value.
_COSTS = {"bool": 0, "int8": 0, "uuid": _TEXT}


class _OverBudgetError(Exception):
    """Raised when the limit is exceeded."""


class _Budget:
    """The bytes of memory that a message may still take."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def add(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise _OverBudgetError


def decode_bounded(
    cls: type[M],
    data: bytes,
    version: int,
    start: int,
    *,
    free: int = INNER_DECODED_FREE,
    ratio: int = INNER_DECODED_RATIO,
) -> tuple[M, int]:
    """Decode like ``cls.decode``. Raises: WireError also if the message is too dense; see
    `is_too_dense`.

    By default the bounds are those of messages in records and in fields of others.
    """
    is_known = version in cls.VERSIONS
    if is_known and is_too_dense(cls, data, version, start, free=free, ratio=ratio):
        raise WireError(
            "a message of so many values that they would take far more memory than its bytes",
            message=cls.NAME,
            version=version,
            offset=start,
            expected=f"at most {free + ratio * (len(data) - start)} bytes of objects",
            found="more",
        )
    return cls.decode(data, version, start)


def is_too_dense(
    cls: type[Message], data: bytes, version: int, start: int, *, free: int, ratio: int
) -> bool:
    """Return whether a message that begins at `start` would take more memory than `free` bytes and
    `ratio` more for each of its own.

    False for bytes that cannot be read; decoding reports what is wrong with them.
    """
    size = len(data) - start
    limit = free + ratio * size
    return size * RATIO_MAX >= free and estimated_size(cls, data, version, start, limit) < 0


def is_message_bomb(
    cls: type[Message], data: bytes, version: int, start: int, *, input_bytes: int | None = None
) -> bool:
    """Whether a body would take far more memory than its bytes account for, in any output.

    `input_bytes` is the size in the input, where the data is longer: in a compressed capture.
    """
    free, ratio = DECODED_BYTES_FREE, DECODED_BYTES_RATIO
    size = len(data) - start
    if input_bytes is not None and input_bytes < size:
        free, ratio = DECODED_PACKED_FREE + ratio * input_bytes, 0
    return is_too_dense(cls, data, version, start, free=free, ratio=ratio)


def estimated_size(cls: type[Message], data: bytes, version: int, start: int, most: int) -> int:
    """Return the size of a message's objects in bytes of memory; negative above `most`.

    For damaged bytes, the size of the objects before the damage.
    """
    facts = cls.facts()
    budget = _Budget(most)
    with suppress(_OverBudgetError, IndexError, OverflowError, WireError, struct.error):
        _plan(facts.root, version, version in facts.flexible)(data, start, budget)
    return most - budget.left if budget.left >= 0 else -1


_plans: dict[tuple[type, int], _Step] = {}


def _plan(facts: StructFacts, version: int, is_flexible: bool) -> _Step:
    """Return the step that walks a struct, built once."""
    key = facts.cls, version
    found = _plans.get(key)
    if found is None:
        found = _plans[key] = _struct(facts, version, is_flexible)
    return found


def _struct(facts: StructFacts, version: int, is_flexible: bool) -> _Step:
    own = facts.cls.__basicsize__ + _OBJECT
    for each in facts.fields:
        is_here = version in each.versions and version not in each.tagged
        if not is_here and each.default == () and not is_optional_struct(each):
            own += _LIST
    steps = list(_steps(facts, version, is_flexible))

    def step(data: bytes, at: int, budget: _Budget) -> int:
        budget.add(own)
        for each in steps:
            at = each(data, at, budget)
        return at

    return step


def _steps(facts: StructFacts, version: int, is_flexible: bool) -> Iterator[_Step]:
    for each in in_runs(facts, version):
        yield _numbers(each) if isinstance(each, list) else _field(each, version, is_flexible)
    if is_flexible:
        tagged = tagged_fields(facts, version)
        yield _tags({each.tag: _field(each, version, is_flexible) for each in tagged})


def _numbers(fields: list[FieldFacts]) -> _Step:
    """Return a step for consecutive fields of fixed size."""
    own = sum(_COSTS.get(each.type, 0) for each in fields)
    parts = struct.Struct(
        ">" + "".join(
            f"{FIXED_SIZES[each.type]}x" if each.type in _COSTS else FIXED_CODES[each.type][1:]
            for each in fields
        )
    )  # fmt: skip
    unpack, size = parts.unpack_from, parts.size

    def step(data: bytes, at: int, budget: _Budget) -> int:
        cost = own
        for value in unpack(data, at):
            if value not in _SHARED:
                cost += _NUMBER
        budget.add(cost)
        return at + size

    return step


def _field(facts: FieldFacts, version: int, is_flexible: bool) -> _Step:
    is_compact = version in facts.flexible
    if facts.is_array:
        return _array(facts, version, is_flexible, is_compact)
    if facts.struct is not None:
        return _inner(facts, facts.struct, version, is_flexible)
    return _value(facts, is_compact)


def _value(facts: FieldFacts, is_compact: bool) -> _Step:
    """Return a step for a field that is neither an array nor a struct."""
    if facts.type in FIXED_SIZES:
        return _numbers([facts])
    length = _length(16 if facts.type == "string" else 32, is_compact)
    is_text, is_records = facts.type == "string", facts.type == "records"

    def step(data: bytes, at: int, budget: _Budget) -> int:
        at, size = length(data, at)
        end = at + max(size, 0)
        if is_records:
            budget.add(_VIEW if size >= 0 else 0)
        elif size <= 1:
            return end
        elif is_text and not data[at:end].isascii():
            budget.add(_TEXT + _WIDEST * size)
        else:
            budget.add(_TEXT + size)
        return end

    return step


def _length(bits: int, is_compact: bool) -> Callable[[bytes, int], tuple[int, int]]:
    """Return a reader of lengths: the position after one, and the length, negative for null."""
    if is_compact:

        def compact(data: bytes, at: int) -> tuple[int, int]:
            value = data[at]
            if value < 0x80:
                return at + 1, value - 1
            value, end = read_uvarint(data, at)
            return end, value - 1

        return compact
    unpack, size = _LENGTHS[bits], bits // 8

    def plain(data: bytes, at: int) -> tuple[int, int]:
        return at + size, unpack(data, at)[0]

    return plain


def _array(facts: FieldFacts, version: int, is_flexible: bool, is_compact: bool) -> _Step:
    length = _length(32, is_compact)
    if facts.struct is not None:
        element = _plan(facts.struct, version, is_flexible)
    else:
        element = _value(facts, is_compact)
    width = FIXED_SIZES.get(facts.type, 0) if facts.struct is None else 0
    cost = _COSTS.get(facts.type, _NUMBER)

    def step(data: bytes, at: int, budget: _Budget) -> int:
        at, count = length(data, at)
        if count < 0:
            return at
        if count > len(data) - at:
            raise WireError("an array of more elements than there are bytes")
        budget.add(_LIST + _POINTER * count)
        if width and count > _LOOKED_AT_MAX:
            budget.add(cost * count)
            return at + width * count
        for _ in range(count):
            at = element(data, at, budget)
        return at

    return step


def _inner(facts: FieldFacts, inner: StructFacts, version: int, is_flexible: bool) -> _Step:
    """Return a step for a struct in a field."""
    walk = _plan(inner, version, is_flexible)
    if version not in facts.nullable:
        return walk
    is_tagged = version in facts.tagged

    def step(data: bytes, at: int, budget: _Budget) -> int:
        if is_tagged:
            marker, at = read_uvarint(data, at)
            return walk(data, at, budget) if marker else at
        marker = data[at]
        return walk(data, at + 1, budget) if marker < 0x80 else at + 1

    return step


def _tags(known: dict[int, _Step]) -> _Step:
    def step(data: bytes, at: int, budget: _Budget) -> int:
        count = data[at]
        if not count:
            return at + 1
        count, at = read_uvarint(data, at)
        budget.add(_TAGS)
        for _ in range(count):
            tag, at = read_uvarint(data, at)
            size, at = read_uvarint(data, at)
            if tag in known:
                known[tag](data, at, budget)
            else:
                budget.add(_TAG + size)
            at += size
        return at

    return step
