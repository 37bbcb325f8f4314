"""The text of a field straight from its bytes, for fields whose text depends on nothing else.

Owns the steps that `tree` in this folder uses for numbers, strings, bytes and arrays of them. Each
step reads and checks the bytes of a field and adds its line; the texts of repeated bytes are kept.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from kraftwire.decode.body.sound import UnsoundError, compact_length, is_error_code
from kraftwire.inspect.trees.fields import NUMBERS_SHOWN
from kraftwire.inspect.values import is_plain_number, plain_value_text, uuid_text
from kraftwire.limits import STRING_SIZE_MAX
from kraftwire.printable import printable
from kraftwire.wire.facts import FieldFacts
from kraftwire.wire.sizes import FIXED_CODES, FIXED_SIZES

__all__ = [
    "KEPT_MAX",
    "KEPT_TEXT_MAX",
    "Step",
    "blob_step",
    "has_topic_id",
    "keep",
    "null_line",
    "read_length",
    "run_step",
    "string_step",
    "values_step",
]

# The number of texts that are kept for a field or a run of fields, and the largest sizes of the
# bytes and texts that are kept.
KEPT_MAX = 400
_KEPT_BYTES_MAX = 256
KEPT_TEXT_MAX = 2000

# Reads a field at a position and adds its text; returns the position after it. Raises: `UNSOUND`.
Step = Callable[[bytes, int, list[str]], int]
_Text = Callable[[Any], str]
# Reads a number of elements; returns the text of those that are shown, and the position after all.
_Elements = Callable[[bytes, int, int], tuple[str, int]]

_INT = struct.Struct(">i").unpack_from
_SHORT = struct.Struct(">h").unpack_from


def run_step(fields: list[FieldFacts], indent: str) -> Step:
    """Return the step that prints a run of fields of fixed size."""
    codes = "".join(FIXED_CODES[each.type][1:] for each in fields).replace("?", "B")
    unpack, size = struct.Struct(">" + codes).unpack, struct.calcsize(">" + codes)
    line = "".join(f"{indent}{each.name}: %s\n" for each in fields)
    makers = [None if is_plain_number(each) else checked(each) for each in fields]
    are_plain = not any(makers)
    kept: dict[bytes, str] = {}
    find = kept.get

    def step(data: bytes, at: int, out: list[str]) -> int:
        end = at + size
        held = data[at:end]
        text = find(held)
        if text is None:
            values = unpack(held)
            if are_plain:
                text = line % values
            else:
                text = line % tuple(
                    [
                        value if make is None else make(value)
                        for make, value in zip(makers, values, strict=True)
                    ]
                )
            keep(kept, held, text, KEPT_MAX)
        out.append(text)
        return end

    return step


def checked(facts: FieldFacts) -> _Text:
    """Return a function that makes the text of a value of fixed size.

    The function raises UnsoundError for an error code or a wrong value; slower paths report these.
    """
    if facts.type == "uuid":
        return uuid_text
    if is_error_code(facts):

        def error(value: int) -> str:
            if value:
                raise UnsoundError
            return plain_value_text(facts, value)

        return error
    if facts.type == "bool":

        def yes_or_no(value: int) -> str:
            if value > 1:
                raise UnsoundError
            return "true" if value else "false"

        return yes_or_no
    return lambda value: plain_value_text(facts, value)


def string_step(
    facts: FieldFacts, indent: str, *, is_compact: bool, is_nullable: bool
) -> Step:
    """Return the step that prints a string; the texts of its first values are kept."""
    head = f"{indent}{facts.name}: "
    kept: dict[bytes, str] = {}
    find = kept.get

    def step(data: bytes, at: int, out: list[str]) -> int:
        if is_compact:
            size = data[at] - 1
            at += 1
            if size > 126:
                size, at = compact_length(data, at - 1)
        else:
            (size,) = _SHORT(data, at)
            at += 2
        if size < 0:
            out.append(null_line(head, size, is_nullable=is_nullable))
            return at
        end = at + size
        held = data[at:end]
        text = find(held)
        if text is None:
            if size > STRING_SIZE_MAX:
                raise UnsoundError
            text = f"{head}{printable(plain_value_text(facts, held.decode()))}\n"
            keep(kept, held, text, KEPT_MAX)
        out.append(text)
        return end

    return step


def blob_step(facts: FieldFacts, indent: str, *, is_compact: bool, is_nullable: bool) -> Step:
    """Return the step that prints a field of bytes that are not records."""
    head = f"{indent}{facts.name}: "
    if facts.type == "records":
        raise UnsoundError

    def step(data: bytes, at: int, out: list[str]) -> int:
        size, at = read_length(data, at, is_compact=is_compact)
        if size < 0:
            out.append(null_line(head, size, is_nullable=is_nullable))
            return at
        end = at + size
        out.append(f"{head}{printable(plain_value_text(facts, data[at:end]))}\n")
        return end

    return step


def values_step(
    facts: FieldFacts, indent: str, *, is_compact: bool, is_nullable: bool
) -> Step:
    """Return the step that prints an array of numbers, strings or bytes."""
    head = f"{indent}{facts.name}: "
    if is_error_code(facts) or facts.name == "topicId":
        raise UnsoundError
    if facts.type in FIXED_SIZES:
        read = _numbers(facts)
    else:
        read = _texts(facts, is_compact=is_compact)

    def step(data: bytes, at: int, out: list[str]) -> int:
        count, at = read_length(data, at, is_compact=is_compact)
        if count < 0:
            out.append(null_line(head, count, is_nullable=is_nullable))
            return at
        texts, at = read(data, at, count)
        more = f", ... {count - NUMBERS_SHOWN} more" if count > NUMBERS_SHOWN else ""
        out.append(f"{head}[{texts}{more}]\n")
        return at

    return step


def _numbers(facts: FieldFacts) -> _Elements:
    size = FIXED_SIZES[facts.type]
    code = FIXED_CODES[facts.type].replace("?", "B")
    make = checked(facts)
    kept: dict[bytes, str] = {}

    def read(data: bytes, at: int, count: int) -> tuple[str, int]:
        end = at + size * count
        held = data[at:end]
        text = kept.get(held)
        if text is None:
            if len(held) != size * count:
                raise UnsoundError
            texts = [make(value) for (value,) in struct.iter_unpack(code, held)]
            text = ", ".join(texts[:NUMBERS_SHOWN])
            keep(kept, held, text, KEPT_MAX)
        return text, end

    return read


def _texts(facts: FieldFacts, *, is_compact: bool) -> _Elements:
    is_string = facts.type == "string"

    def read(data: bytes, at: int, count: int) -> tuple[str, int]:
        texts = []
        for index in range(count):
            if is_string and not is_compact:
                size, at = _SHORT(data, at)[0], at + 2
            else:
                size, at = read_length(data, at, is_compact=is_compact)
            held = data[at : at + size]
            if size < 0 or len(held) != size or (is_string and size > STRING_SIZE_MAX):
                raise UnsoundError
            at += size
            value = held.decode() if is_string else held
            if index < NUMBERS_SHOWN:
                texts.append(printable(plain_value_text(facts, value)))
        return ", ".join(texts), at

    return read


def read_length(data: bytes, at: int, *, is_compact: bool) -> tuple[int, int]:
    """Return the length of bytes or an array, -1 for null, and the position after the length."""
    if is_compact:
        return compact_length(data, at)
    return _INT(data, at)[0], at + 4


def null_line(head: str, size: int, *, is_nullable: bool) -> str:
    """Return the line of a null field. Raises: UnsoundError if the field cannot be null."""
    if size != -1 or not is_nullable:
        raise UnsoundError
    return f"{head}null\n"


def keep(kept: dict[bytes, str], data: bytes, text: str, most: int) -> None:
    """Keep a text for bytes that may repeat, if both are short."""
    if len(data) <= _KEPT_BYTES_MAX and len(text) <= KEPT_TEXT_MAX:
        if len(kept) >= most:
            kept.clear()
        kept[data] = text


def has_topic_id(facts: FieldFacts) -> bool:
    """Return whether a field is the id of a topic, or contains one."""
    if facts.struct is None:
        return facts.name == "topicId"
    return any(map(has_topic_id, facts.struct.fields))
