"""How much a message takes once it is shown: an estimate, made before it is.

JSON, trees and bytes by field need an object for each value, hundreds of bytes for one byte of the
frame. Messages of very many values are cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kraftwire.wire.message import Message, Struct

__all__ = ["Shown"]


@dataclass(frozen=True, slots=True)
class Shown:
    """What an output may take for one frame. Units: bytes; those of a struct, a value, all."""

    struct: int
    value: int
    free: int
    ratio: int

    def is_too_much(self, message: Message, size: int) -> bool:
        """Whether a message that came in so many bytes would take more."""
        left = self.free + self.ratio * size
        if size * self.value + size // 2 * self.struct <= left:
            return False
        waiting: list[Any] = [message]
        while waiting:
            one = waiting.pop()
            if isinstance(one, Struct):
                values = [getattr(one, name) for name in one.__class__.__slots__]
                left -= self.struct + self.value * len(values)
            else:
                values = list(one.values() if isinstance(one, dict) else one)
                left -= self.value * len(values)
            if left < 0:
                return True
            waiting += [each for each in values if isinstance(each, Struct | list | dict)]
        return False
