"""Varints read by `struct`, and tables of the values of all those of one byte or two."""

from __future__ import annotations

from functools import cache
from typing import Any

__all__ = ["VARINT_CODES", "Unusual", "read_raw", "varint_values"]

_RAW_BITS = 32

# A byte from this value on is not the last one of a varint.
_MORE = 0x80

# How `struct` reads a varint, by its size, to be looked up in `varint_values`.
VARINT_CODES = {1: "B", 2: "H", 3: "3s", 4: "4s", 5: "5s"}

# Varints of three bytes and more are kept once seen.
_KEPT_MAX = 16_512


class Unusual(Exception):
    """The bytes are not what the fast code expects."""


def read_raw(data: bytes, p: int) -> tuple[int, int]:
    """Return the raw value of a varint of at most 32 bits and the position after it.

    Raises: IndexError or Unusual.
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
    raise Unusual


def _value(raw: int) -> int:
    return (raw >> 1) ^ -(raw & 1)


# Values of varints of one byte; None stands where there is none.
_SHORT: list[Any] = [_value(byte) for byte in range(_MORE)] + [None] * _MORE


class _Long(dict[bytes, int]):
    """Values of varints of three bytes or more, by their bytes. Raises: Unusual."""

    def __missing__(self, varint: bytes) -> int:
        # A further byte shows whether the varint ends where this one should.
        raw, end = read_raw(varint + b"\x00", 0)
        if end != len(varint):
            raise Unusual
        value = _value(raw)
        if len(self) < _KEPT_MAX:
            self[varint] = value
        return value


_LONG = _Long()


def varint_values(size: int) -> Any:
    """Return the values of varints of a size, by what VARINT_CODES make of them.

    For one byte or two it is a list, in which None stands where there is no varint.
    """
    if size == 1:
        return _SHORT
    return _pairs() if size == 2 else _LONG


@cache
def _pairs() -> list[Any]:
    table: list[int | None] = [None] * (_MORE << 8)
    for low in range(_MORE):
        table += [_value(low | high << 7) for high in range(_MORE)]
        table += [None] * _MORE
    return table
