"""The varints of records as words: bytes that `struct` reads at once, and what they stand for."""

from __future__ import annotations

from functools import cache
from typing import Any

__all__ = [
    "NULL_LENGTH",
    "PAIR",
    "PAIR_WORDS",
    "WORD_CODES",
    "Stumble",
    "length_words",
    "read_raw",
    "size_words",
    "words",
]

_RAW_BITS = 32

# Bytes from this value on are continued by another, as is the first byte of a word of two.
PAIR = 0x80
PAIR_WORDS = 0x8000

# How `struct` reads a varint, by its size, to be looked up in `words`.
WORD_CODES = {1: "B", 2: "H", 3: "3s", 4: "4s", 5: "5s"}

# Far below any length, so that no sum with it looks like one.
NULL_LENGTH = -(1 << 32)

# Words of three bytes and more are kept once seen.
_WORDS_KEPT_MAX = 16_512


class Stumble(Exception):
    """The bytes are not what the fast code expects."""


def read_raw(data: bytes, p: int) -> tuple[int, int]:
    """Return the raw value of a varint of at most 32 bits and the position after it.

    Raises: IndexError or Stumble.
    """
    raw = data[p] & 0x7F
    if data[p] < 0x80:
        return raw, p + 1
    for shift in range(7, _RAW_BITS, 7):
        p += 1
        byte = data[p]
        raw |= (byte & 0x7F) << shift
        if byte < 0x80 and raw >> _RAW_BITS == 0:
            return raw, p + 1
    raise Stumble


def _value(raw: int) -> int:
    return (raw >> 1) ^ -(raw & 1)


# Values of varints of one byte; None stands where there is none.
_BYTES: list[Any] = [_value(byte) for byte in range(PAIR)] + [None] * PAIR


class _Words(dict[bytes, int]):
    """Values of varints of three bytes or more, by their bytes. Raises: Stumble."""

    def __missing__(self, word: bytes) -> int:
        # A further byte shows whether the varint ends where this one should.
        raw, end = read_raw(word + b"\x00", 0)
        if end != len(word):
            raise Stumble
        value = _value(raw)
        if len(self) < _WORDS_KEPT_MAX:
            self[word] = value
        return value


_WORDS = _Words()


def words(size: int) -> Any:
    """Return the values of varints of a size, by what WORD_CODES make of them.

    For one byte or two it is a list, in which None stands where there is no varint.
    """
    if size == 1:
        return _BYTES
    return _pairs() if size == 2 else _WORDS


@cache
def _pairs() -> list[Any]:
    table: list[int | None] = [None] * PAIR_WORDS
    for low in range(PAIR):
        table += [_value(low | high << 7) for high in range(PAIR)]
        table += [None] * PAIR
    return table


@cache
def size_words() -> list[Any]:
    """Values of varints of one byte or of two, by the byte or the word."""
    return _BYTES + _pairs()[len(_BYTES) :]


@cache
def length_words() -> list[Any]:
    """Lengths by the first two bytes of their varints, the second of which may be that of a value.

    NULL_LENGTH stands for the usual null, None where the length is another negative one or longer
    than two bytes.
    """
    lengths = [None if value is None or value < 0 else value for value in size_words()]
    lengths[1] = NULL_LENGTH
    singles = [value for value in lengths[:PAIR] for _ in range(2 * PAIR)]
    return singles + lengths[PAIR_WORDS:]
