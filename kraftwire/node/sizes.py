"""The size of a request: the elements of all its arrays."""

from __future__ import annotations

from kraftwire.limits import REQUEST_ELEMENTS_MAX
from kraftwire.node.limits import LONG_REQUEST_BYTES_MIN
from kraftwire.wire.message import Message, Struct

__all__ = ["is_too_much"]


def is_too_much(message: Message, size: int) -> bool:
    """Return whether a request of this size in bytes has more elements than any client sends."""
    if size < LONG_REQUEST_BYTES_MIN:
        return False
    left = REQUEST_ELEMENTS_MAX
    waiting: list[Struct] = [message]
    while waiting:
        one = waiting.pop()
        for name in one.__class__.__slots__:
            value = getattr(one, name)
            if isinstance(value, list | dict):
                left -= len(value)
                if left < 0:
                    return True
                if isinstance(value, list) and value and isinstance(value[0], Struct):
                    waiting += value
            elif isinstance(value, Struct):
                waiting.append(value)
    return False
