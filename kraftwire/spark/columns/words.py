"""Varints by columns: reads eight bytes at each position in one step, and decodes them.

Positions are int64 arrays, words uint64 arrays, little-endian on every machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Words", "shift", "split", "unzigzag"]

_WORD = 8

_BITS = 0x7F
_U = [np.uint64(number) for number in range(64)]
_PARTS = tuple(np.uint64(_BITS << 7 * index) for index in range(5))
_ONE = np.uint64(1)
_EIGHT = np.uint64(8)


class Words:
    """The eight bytes at any position of a buffer of at least eight bytes.

    Zeros stand for bytes after its end, however far a wrong length leads.
    """

    def __init__(self, data: bytes) -> None:
        self._last = len(data) - _WORD
        # Not aligned and not copied: a word begins at every byte.
        self._view = np.ndarray((self._last + 1,), "<u8", buffer=data, strides=(1,))

    def at(self, positions: Any) -> Any:
        """Return the words at some positions."""
        if positions.max(initial=0) <= self._last:
            return self._view[positions].view(np.uint64)
        places = np.minimum(positions, self._last)
        beyond = np.minimum(positions - places, _WORD).view(np.uint64)
        words = self._view[places].view(np.uint64)
        return np.where(beyond < _EIGHT, words >> (beyond % _EIGHT * _EIGHT), _U[0])


def split(words: Any, bytes_max: int) -> tuple[Any, Any, Any]:
    """Decode the unsigned varint at the start of each word.

    Returns the values, how many bytes they take (uint64), and 1 where the varint is longer
    than `bytes_max` (at most 5) and 0 elsewhere.
    """
    values = words & _PARTS[0]
    more = words >> _U[7] & _ONE
    sizes = more + _ONE
    for index in range(1, bytes_max):
        if not np.bitwise_or.reduce(more, initial=0):
            return values, sizes, more
        values |= (words >> _U[index] & _PARTS[index]) * more
        more = more & words >> _U[8 * index + 7]
        sizes += more
    return values, sizes, more


def shift(words: Any, sizes: Any) -> Any:
    """Return the words without their first bytes; `sizes` below 8."""
    return words >> sizes * _EIGHT


def unzigzag(values: Any) -> Any:
    """Convert unsigned varints to signed numbers, as int64."""
    signed = values.view(np.int64)
    return signed >> 1 ^ -(signed & 1)
