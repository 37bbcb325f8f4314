"""How much memory a message takes once it is decoded or shown, estimated in advance.

JSON, trees and bytes by field need an object for each value, hundreds of bytes for one byte of the
frame. Messages of very many values are cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kraftwire.capture.framing.message_bomb import DECODED_PACKED_FREE
from kraftwire.capture.limits import SHOWN_TEXT_RATIO
from kraftwire.wire.message import Message, Struct
from kraftwire.wire.size_estimate import RATIO_MAX

__all__ = ["LIGHT_BYTES", "Shown", "objects_of"]

# A body of fewer bytes is never a bomb, whatever it holds.
LIGHT_BYTES = DECODED_PACKED_FREE // RATIO_MAX

# What objects of messages and their values take; half of the values are small numbers, or empty.
_STRUCT_BYTES = 100
_VALUE_BYTES = 40


@dataclass(frozen=True, slots=True)
class Shown:
    """The memory that an output takes for a struct and for a value, and what a frame may take.

    A frame may take `free` bytes, and `ratio` more for each of its own. Units: bytes.
    """

    struct: int
    value: int
    free: int
    ratio: int

    def may_have(self, size: int, worth: int) -> int:
        """Return how many bytes a shown frame may have; `worth` are its bytes in the input."""
        return size if worth >= size else worth + self.free // SHOWN_TEXT_RATIO

    def is_too_much(self, message: Message, size: int, worth: int) -> bool:
        """Whether a message of `size` bytes, `worth` of them in the input, would take more."""
        if size > self.may_have(size, worth):
            return True
        most = self.free + self.ratio * min(size, worth)
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
