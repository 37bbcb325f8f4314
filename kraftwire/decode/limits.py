"""Limits of what decoding keeps and shows, and the memory of messages, estimated in advance.

JSON, trees and bytes by field need an object for each value, hundreds of bytes for one byte of the
frame. Messages of very many values are cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kraftwire.wire.message import Message, Struct
from kraftwire.wire.size_estimate import DECODED_PACKED_FREE, RATIO_MAX

# How many records of a frame, or of a batch of a file, get their JSON form at once: JSON_ROWS_FREE,
# and one more for each JSON_ROW_BYTES_MIN bytes of it. Further records get theirs one by one when
# they are written. In this form a record takes a few hundred bytes to a thousand.
JSON_ROWS_FREE = 8 * 1024
JSON_ROW_BYTES_MIN = 256

# The memory of a frame as JSON, as a tree, or as bytes by field, by an estimate: SHOWN_BYTES_FREE,
# and SHOWN_BYTES_RATIO times its length. Of a frame that would take more, and of one that stops
# somewhere, the first ANNOTATIONS_MAX fields are taken apart, half a kilobyte each.
SHOWN_BYTES_FREE = 24 * 1024 * 1024
SHOWN_BYTES_RATIO = 4
# The memory of each byte of a frame in these forms, however few values the frame has.
SHOWN_TEXT_RATIO = 10
# The first fields of a message of too many values, in a frame that is longer than its capture.
TAKEN_APART_BYTES_MAX = SHOWN_BYTES_FREE // SHOWN_TEXT_RATIO
ANNOTATIONS_MAX = 40_000

# Requests that outputs hold back until their responses come; those of stories keep their decoded
# objects. Above the limit the oldest are shown alone.
PENDING_BYTES_MAX = 16 * 1024 * 1024

# A body of fewer bytes is never a bomb, whatever it holds.
LIGHT_BYTES = DECODED_PACKED_FREE // RATIO_MAX

# The memory of a struct and a value in messages; half of the values are small numbers, or empty.
_STRUCT_BYTES = 100
_VALUE_BYTES = 40


@dataclass(frozen=True, slots=True)
class FrameBudget:
    """The memory that an output takes for a struct and for a value, and what a frame may take.

    A frame may take `free` bytes, and `ratio` more for each of its own. Units: bytes.
    """

    struct: int
    value: int
    free: int
    ratio: int

    def may_have(self, size: int, input_bytes: int) -> int:
        """Return how many bytes a shown frame may have that takes `input_bytes` in the input."""
        return size if input_bytes >= size else input_bytes + self.free // SHOWN_TEXT_RATIO

    def is_too_much(self, message: Message, size: int, input_bytes: int) -> bool:
        """Whether a message of `size` bytes, which takes `input_bytes` in the input, takes more."""
        if size > self.may_have(size, input_bytes):
            return True
        most = self.free + self.ratio * min(size, input_bytes)
        if size * self.value + size // 2 * self.struct <= most:
            return False
        return _walk(message, self.struct, self.value, most) > most


def objects_of(message: Message) -> int:
    """Estimate the memory that the objects of a decoded message take. Units: bytes."""
    return _walk(message, _STRUCT_BYTES, _VALUE_BYTES)


def _walk(message: Message, struct: int, value: int, most: int = 1 << 62) -> int:
    """Add up what the structs and values of a message take; stops beyond `most`."""
    total = 0
    waiting: list[Any] = [message]
    while waiting and total <= most:
        one = waiting.pop()
        if isinstance(one, Struct):
            values = [getattr(one, name) for name in one.__class__.__slots__]
            total += struct + value * len(values)
        else:
            values = list(one.values() if isinstance(one, dict) else one)
            total += value * len(values)
        waiting += [each for each in values if isinstance(each, Struct | list | dict)]
    return total
