"""Checks that the bytes of a message are those that Kafka itself would write.

Owns the checks of the fast paths that go over the bytes of a message without making objects of
them. They take a message only if it is whole, follows its schema, has no tagged field that the
schema lacks, and is written as Kafka writes it; so there is nothing to find in it. Any other
message is left to the decoder that reports findings.
"""

from __future__ import annotations

import struct

from kraftwire.errors import WireError
from kraftwire.limits import STRING_SIZE_MAX
from kraftwire.wire.facts import FieldFacts
from kraftwire.wire.varint import read_uvarint

__all__ = [
    "UNSOUND",
    "UnsoundError",
    "body_start",
    "compact_length",
    "is_error_code",
]

_ERROR_SUFFIX = "rrorCode"
# Where the client id of a request begins, and its length if there is none.
_CLIENT_ID = 8
_NULL = 0xFFFF
# The largest number of bytes that a length takes.
_LENGTH_END = 4


class UnsoundError(ValueError):
    """Raised for bytes that the fast path does not take."""


# The exceptions by which the fast path refuses bytes.
UNSOUND = (UnsoundError, ValueError, IndexError, struct.error, WireError)


def compact_length(data: bytes, at: int) -> tuple[int, int]:
    """A compact length, -1 for null, and the position after it.

    Raises: UNSOUND if it takes more bytes than it needs.
    """
    value = data[at]
    if value < 0x80:
        return value - 1, at + 1
    value, end = read_uvarint(data, at)
    if not data[end - 1] or end - at > _LENGTH_END:
        raise UnsoundError
    return value - 1, end


def body_start(data: bytes, *, is_request: bool, has_tags: bool) -> int:
    """Where the body of a frame without its length begins.

    `has_tags` if the header ends with tagged fields. Raises: UNSOUND if there are any.
    """
    at = 4
    if is_request:
        at = _CLIENT_ID + 2
        size = data[_CLIENT_ID] << 8 | data[_CLIENT_ID + 1]
        if size != _NULL:
            at += size
            if size > STRING_SIZE_MAX or not data[_CLIENT_ID + 2 : at].isascii():
                raise UnsoundError
    if has_tags:
        if data[at]:
            raise UnsoundError
        at += 1
    if at > len(data):
        raise UnsoundError
    return at


def is_error_code(facts: FieldFacts) -> bool:
    """Whether a field is an error code."""
    return facts.type == "int16" and facts.name.endswith(_ERROR_SUFFIX)
